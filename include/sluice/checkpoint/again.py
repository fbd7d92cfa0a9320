"""Batches that are planned by hand: all that a checkpoint has read as one batch of another one, so
that a run there reads the same records once more; and one that reads nothing."""

import json
from collections.abc import Iterator
from pathlib import Path

from ..storage import is_remote, open_path, replace_file, spark_folder
from .log import Checkpoint


def plan_again(checkpoint: str, batch: int, other: str) -> None:
    """Write the plan of one batch that has everything up to a finished batch of a checkpoint.

    Args: other: folder of an empty checkpoint. Raises OSError.

    A batch that was planned and not committed Spark takes as it finds it. Its offsets say where
    each source stands afterwards; before the first batch each stands where it began, which its own
    files below `sources/` say.
    """
    done, place = Checkpoint.below(checkpoint), open_path(spark_folder(other))
    version, head, *offsets = done.offsets[batch].read_text(encoding="utf-8").split("\n")
    first = {**json.loads(head), "batchWatermarkMs": 0}
    for file in (done.folder / "metadata", *_list_tree(done.folder / "sources")):
        _write(place / file.relative_to(done.folder), file.read_text(encoding="utf-8"))
    planned = "\n".join([version, json.dumps(first), *offsets])
    _write(place / "offsets" / "0", planned)  # last: without it there is no plan


def plan_end(checkpoint: str, batch: int, other: str) -> None:
    """Plan batch 1 behind a finished batch 0 that has everything: nothing is new in it, and its
    watermark is that of a finished batch of another checkpoint, so that what was closed there is
    closed here. Args and errors as of `plan_again`."""
    said = Checkpoint.below(checkpoint).offsets[batch].read_text(encoding="utf-8")
    _write(open_path(spark_folder(other)) / "offsets" / "1", said)


def plan_nothing(checkpoint: str) -> None:
    """Plan one more batch behind the newest finished one, in which no source has anything new: its
    offsets are those before it. Raises OSError."""
    done = Checkpoint.below(checkpoint)
    newest = max(done.commits)
    said = done.offsets[newest].read_text(encoding="utf-8")
    _write(done.folder / "offsets" / str(newest + 1), said)


def _list_tree(folder: Path) -> Iterator[Path]:
    """The files below a folder, without Spark's hidden ones."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.is_dir():
            yield from _list_tree(entry)
        elif not entry.name.startswith("."):
            yield entry


def _write(path: Path, text: str) -> None:
    if not is_remote(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text)
