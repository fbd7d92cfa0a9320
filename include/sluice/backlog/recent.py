"""What a look at a crowded folder has just found, for the next one of the same process.

A run looks at a folder twice: before Spark starts, and as its step begins. Of 100,000 files a look
is a fifteenth of such a run, so while no folder has changed the first one holds.
"""

import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from ..checkpoint.log import Checkpoint
from ..spec import FileSource
from .files import find_file
from .unchanged import Place, Times, are_unchanged, find_settled, place_of
from .waiting import Look, look_for_files

_TRUSTED = 600.0
"""Seconds: more than Spark takes to start."""


class _Recent(NamedTuple):
    at: float
    place: Place
    folders: Times
    look: Look


_recent: dict[str, _Recent] = {}
"""By the checkpoint's folder."""


def look_and_remember(source: FileSource, checkpoint: Checkpoint) -> Look:
    """Look at all files, as `look_for_files`, and remember what waits of a crowded folder."""
    began, at = datetime.now(UTC), time.monotonic()
    look, name = look_for_files(source, checkpoint), str(checkpoint.folder)
    _recent.pop(name, None)
    if look.is_named and look.waiting and checkpoint.newest_commit is not None:
        with suppress(OSError):
            folders = find_settled(source, began)
            if folders is not None:
                _recent[name] = _Recent(at, place_of(source, checkpoint), folders, look)
    return look


def look_or_recall(source: FileSource, checkpoint: Checkpoint) -> Look:
    """The look that this process has just remembered, where no folder has changed since, with the
    waiting files as they are now; else a new one."""
    recent = _recent.pop(str(checkpoint.folder), None)
    if recent is None or not _holds(recent, source, checkpoint):
        return look_for_files(source, checkpoint)
    now = [find_file(file.path) for file in recent.look.waiting]
    if not all(now):
        return look_for_files(source, checkpoint)
    return recent.look._replace(waiting=[file for file in now if file])


def _holds(recent: _Recent, source: FileSource, checkpoint: Checkpoint) -> bool:
    with suppress(OSError):
        known = time.monotonic() - recent.at < _TRUSTED
        same = known and recent.place == place_of(source, checkpoint)
        return same and are_unchanged(recent.folders)
    return False
