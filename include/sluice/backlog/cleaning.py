"""Takes files that were read out of the landing folder: only those of batches that Spark has
committed, whose rows the target therefore holds.

Where it stands is noted beside the checkpoint after the files are gone, so a run that is killed on
the way leaves the rest to the next one.
"""

import json
import logging
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from itertools import groupby
from operator import attrgetter

from ..checkpoint.log import Checkpoint
from ..checkpoint.seen import SeenFile
from ..errors import LeaseLost, ParentLost, SluiceError
from ..spec import FileSource, Pipeline, Step
from ..storage import (
    in_bucket,
    is_remote,
    move_file,
    open_path,
    open_remote,
    remove_file,
    replace_file,
    resolve_path,
)

_log = logging.getLogger(__name__)
_SAME_TIME = 1000
"""Milliseconds by which two times of one file may differ: S3 tells whole seconds."""
_POSITION, _KEPT = "cleaned.json", "unreadable"


def keep_unreadable(source: FileSource, checkpoint: Checkpoint, paths: Iterable[str]) -> None:
    """Note files whose rows are in no table, before the batch that says so is written: they stay
    where they are. Raises OSError."""
    if source.clean_source is None:
        return
    for path in paths:
        folder = checkpoint.beside(_KEPT)
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / _note_name(path), path)


def clean_step(
    step: Step, checkpoint: str, others: Iterable[Pipeline], may_go_on: Callable[[], bool]
) -> list[str]:
    """Clean what the inputs of a step have read; sentences about files that stay although they
    should not.

    Args:
        others: the pipelines beside the step's own; asked only where there is something to clean.
        may_go_on: whether there is time; raises LeaseLost where another run has taken over.
    """
    cleaned, told = step.cleaned, []
    known = list(others) if cleaned else []
    for number, name in enumerate(step.streams):
        if name not in cleaned:
            continue
        source = cleaned[name]
        reader = next((other.name for other in known if other.reads_files_of(source)), None)
        if reader is None:
            told += _clean(source, Checkpoint.below(checkpoint, number), may_go_on)
        else:
            told.append(_say_why_kept(source, reader))
    return told


def _say_why_kept(source: FileSource, reader: str) -> str:
    """That no file is taken away, because another pipeline may not have read it."""
    return (
        f"files stay below {source.fixed_folder} in spite of `clean_source: {source.clean_source}`:"
        f" pipeline {reader} reads them as well, and would miss what is taken away; clean in "
        "neither, or give each its own `pattern`"
    )


def _clean(source: FileSource, checkpoint: Checkpoint, may_go_on: Callable[[], bool]) -> list[str]:
    """Nothing that goes wrong here is a reason to fail: the files are read, and the next run tries
    again."""
    try:
        return _clean_batches(source, checkpoint, may_go_on)
    except (LeaseLost, ParentLost):
        raise
    except (OSError, SluiceError, ValueError) as error:
        return [f"files that were read could not be cleaned, the next run tries again: {error}"]


def _clean_batches(
    source: FileSource, checkpoint: Checkpoint, may_go_on: Callable[[], bool]
) -> list[str]:
    committed, done = checkpoint.log_offset(checkpoint.newest_commit), _read_position(checkpoint)
    if done > committed:  # the checkpoint was set back
        done = -1
    if done == committed:
        return []
    unreadable = _read_kept(checkpoint)
    seen = [file for file in checkpoint.seen_files(after=done) if file.log_id <= committed]
    by_batch = attrgetter("log_id")
    failed: list[str] = []
    for position, files in groupby(sorted(seen, key=by_batch), by_batch):
        if not may_go_on():
            break
        whole = [file for file in files if _note_name(file.path) not in unreadable]
        failed += _clean_files(source, whole)
        if not failed:
            done = position
    if done != _read_position(checkpoint):
        replace_file(checkpoint.beside(_POSITION), json.dumps({"position": done}))
    verb = "archived" if source.clean_source == "archive" else "deleted"
    return (
        [
            f"{len(failed)} file(s) that were read could not be {verb}, and each run tries again: "
            f"{failed[0]}"
        ]
        if failed
        else []
    )


def _clean_files(source: FileSource, files: list[SeenFile]) -> list[str]:
    """Files of one batch; why some of them could not be cleaned."""
    with ThreadPoolExecutor(16 if is_remote(source.path) else 1) as pool:
        return [why for why in pool.map(lambda file: _clean_file(source, file), files) if why]


def _clean_file(source: FileSource, file: SeenFile) -> str:
    """Archive or delete one file, unless it is another one by now; why that failed."""
    path = file.path
    try:
        if not _is_as_read(file):
            return ""
        if source.clean_source == "archive":
            move_file(path, archived_path(source, path))
        else:
            remove_file(path)
    except FileNotFoundError:
        return ""
    except FileExistsError as error:
        return f"{path}: the archive holds another file of this name, {error.filename}"
    except (OSError, SluiceError) as error:
        return f"{path}: {error}"
    _log.info("%s: %s", source.clean_source, path)
    return ""


def _is_as_read(file: SeenFile) -> bool:
    """False for a file that was written anew after it was read, whose rows nobody has, and for a
    link, which would lead nowhere from another folder. Raises FileNotFoundError."""
    if in_bucket(file.path):
        remote = open_remote(file.path)
        modified = remote.fs.info(remote.path)["LastModified"].timestamp()
    else:
        modified = open_path(file.path).lstat().st_mtime
        if os.path.islink(file.path):
            return False
    return abs(modified * 1000 - file.modified_ms) <= _SAME_TIME


def archived_path(source: FileSource, path: str) -> str:
    """Where a file goes that was read: below the archive as it lay below the landing folder."""
    root = _absolute(source.fixed_folder)
    relative = _absolute(path).removeprefix(root).lstrip("/") or path.rpartition("/")[2]
    return f"{_absolute(source.archive or '')}/{relative}"


def archive_of(source: FileSource) -> FileSource | None:
    """The archive as a source of its own; None where there is none yet."""
    if source.archive is None or not open_path(_absolute(source.archive)).exists():
        return None
    return source.model_copy(update={"path": _absolute(source.archive)})


def _absolute(path: str) -> str:
    return resolve_path(path, os.getcwd()).replace("s3://", "s3a://", 1)


def _read_position(checkpoint: Checkpoint) -> int:
    """Up to where the source's log is cleaned; -1 where nothing is noted."""
    try:
        return json.loads(checkpoint.beside(_POSITION).read_text())["position"]
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError):
        return -1


def _note_name(path: str) -> str:
    return sha256(path.encode()).hexdigest()


def _read_kept(checkpoint: Checkpoint) -> set[str]:
    """Names of the notes: that one is there says it all, so none can be damaged."""
    try:
        return {note.name for note in checkpoint.beside(_KEPT).iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        return set()
