"""Folders and buckets: whether they can be listed, read and written; and the queue of a bucket."""

import os
import shutil
import tempfile
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from uuid import uuid4

from ..backlog.buckets import walk_bucket
from ..backlog.files import LandedFile, is_wanted, list_files, source_root
from ..backlog.notices import waiting_count
from ..errors import SinkError, SourceError
from ..spec import FileSource
from ..storage import in_bucket, is_remote, open_path, open_remote, replace_file

_ENOUGH = 1000
"""Objects of a bucket that are listed: one request, however many there are."""


def look_at_files(source: FileSource) -> str:
    """How many files a source would read, after the newest was opened.

    Raises SluiceError for a folder that is absent, or that may not be listed or read.
    """
    found, more = _list_some(source)
    if not found:
        return f"can be listed; no name like {source.pattern!r} yet"
    newest = max(found, key=lambda file: file.modified)
    try:
        with open_path(newest.path).open("rb") as file:
            file.read(1)
    except OSError as error:
        raise SourceError(
            f"the file cannot be read: {error.strerror or error}",
            where=newest.path,
            do="Give the user of the run the right to read it",
        ) from None
    at = datetime.fromtimestamp(newest.modified, UTC)
    count = f"{len(found):,} file{'' if len(found) == 1 else 's'}{' or more' if more else ''}"
    return f"{count} like {source.pattern!r}, the newest of {at:%Y-%m-%d %H:%M} UTC, readable"


def _list_some(source: FileSource) -> tuple[list[LandedFile], bool]:
    """Files of a source, and whether there may be more."""
    root = source_root(source)
    if not in_bucket(root):
        return list_files(source), False
    listed = [LandedFile(*one) for one in islice(walk_bucket(root), _ENOUGH)]
    return [f for f in listed if is_wanted(source, f.name)], len(listed) == _ENOUGH


def look_at_queue(queue: str) -> str:
    """About how many messages wait. Raises SourceError or TransientError.

    None is taken: it would be hidden from the next run.
    """
    return f"{waiting_count(queue):,} messages wait (none was taken)"


def try_writing(folder: str) -> str:
    """Write a file and remove it. Raises SluiceError where that cannot be done."""
    try:
        return _try_remote(folder) if is_remote(folder) else _try_local(open_path(folder))
    except OSError as error:
        raise SinkError(
            f"cannot be written: {error.strerror or error}",
            where=str(folder),
            do="Give the user of the run the right to write there, or name another place "
            "($SLUICE_ROOT, `sink.table`, `sink.path`)",
        ) from None


def _try_local(folder: Path) -> str:
    nearest = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    with tempfile.TemporaryFile(dir=nearest):  # it has no name that anybody could meet
        free = shutil.disk_usage(nearest).free
    will = "" if nearest == folder else "; the first run makes it"
    return f"can be written, {free / 10**9:,.0f} GB free{will}"


def _try_remote(folder: str) -> str:
    place = f"{folder.rstrip('/')}/.sluice-check-{uuid4().hex}"
    replace_file(open_path(place), "")
    probe = open_remote(place)
    probe.fs.rm(probe.path)
    return "an object could be put and removed"
