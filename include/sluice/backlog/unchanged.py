"""Folders on a disk that are as they were when a look at all their files found nothing new.

A folder gets a new time whenever a name comes into it or goes. So where no folder has one, no file
has to be looked at: with 100,000 files that is most of an idle check.
"""

import json
import os
from datetime import UTC, datetime, timedelta
from typing import TypedDict

from ..checkpoint.log import Checkpoint
from ..spec import FileSource
from ..storage import is_remote, replace_file
from .files import is_hidden_folder, source_root
from .globs import has_magic

_NOTE = "unchanged.json"
_TRUSTED = timedelta(days=1)
"""For so long; then all files are looked at once more, also for those that were overwritten where
they lie, which no folder tells."""
_TICK = timedelta(seconds=2)
"""Two changes so close to each other may leave a folder one time."""
_FILE_SYSTEMS = frozenset({"ext2", "ext3", "ext4", "xfs", "tmpfs", "overlay"})
"""Those of one machine. A folder of another machine or of a bucket may be shown with an old time,
or with none of its own."""
Times = dict[str, list[int]]
"""Folder -> its device, its number there, when a name of it changed and when anything did
(nanoseconds). The latter cannot be set: `rsync -a` gives a folder an old time for the former."""
Place = list[str | int | None]
"""What `place_of` says."""


class _Note(TypedDict):
    at: str
    place: Place
    folders: Times


def is_unchanged(source: FileSource, checkpoint: Checkpoint) -> bool:
    """True where a look at all files found nothing new, and neither the folders nor the checkpoint
    have changed since."""
    try:
        note: _Note = json.loads(checkpoint.beside(_NOTE).read_text())
        age = datetime.now(UTC) - datetime.fromisoformat(note["at"])
        same = note["place"] == place_of(source, checkpoint)
        if not (same and timedelta(0) <= age < _TRUSTED and checkpoint.open_batch is None):
            return False
        return are_unchanged(note["folders"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False


def note_unchanged(source: FileSource, checkpoint: Checkpoint, began: datetime) -> None:
    """Note that a look which began then found nothing new. Nothing is noted where the times of the
    folders would not tell a change. Raises OSError."""
    # Of several inputs one may not have been looked at: its note holds, and gets no younger.
    if checkpoint.newest_commit is None or is_unchanged(source, checkpoint):
        return
    folders = find_settled(source, began)
    if folders is None or checkpoint.open_batch is not None:
        return
    note = _Note(at=began.isoformat(), place=place_of(source, checkpoint), folders=folders)
    replace_file(checkpoint.beside(_NOTE), json.dumps(note))


def place_of(source: FileSource, checkpoint: Checkpoint) -> Place:
    """Which files are read, of which stream, and how far it has come. Raises OSError."""
    stream = (checkpoint.folder / "metadata").read_text()
    return [source_root(source), source.pattern, stream, checkpoint.newest_commit]


def find_settled(source: FileSource, began: datetime) -> Times | None:
    """The folders of a source that have been as they are since a while before `began`; None where
    one has not, and where the times of the folders would not tell a change."""
    root = source_root(source)
    if is_remote(root) or has_magic(root) or not os.path.isdir(root):
        return None
    folders = _find_folders(root)
    latest = (began - _TICK).timestamp() * 1e9
    if folders is None or any(max(times[2:]) > latest for times in folders.values()):
        return None
    return None if began > datetime.now(UTC) else folders  # a clock that was set back


def are_unchanged(folders: Times) -> bool:
    """True where folders are as they were. Raises OSError for one that is gone."""
    return all(_time_of(folder) == known for folder, known in folders.items())


def _time_of(folder: str) -> list[int]:
    info = os.stat(folder)
    return [info.st_dev, info.st_ino, info.st_mtime_ns, info.st_ctime_ns]


def _find_folders(root: str) -> Times | None:
    """The folders that a look goes through. None where a change of one might not be seen: below a
    link, which may begin to lead elsewhere, and on file systems of which it is not known."""
    kinds, found, left = _file_systems(), {}, [root]
    while left:
        folder = left.pop()
        found[folder] = _time_of(folder)
        if kinds.get(found[folder][0]) not in _FILE_SYSTEMS:
            return None
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    return None
                if entry.is_dir() and not is_hidden_folder(entry.name):
                    left.append(entry.path)
    return found


def _file_systems() -> dict[int, str]:
    """Device -> the kind of file system on it; none but on Linux (proc(5), mountinfo)."""
    try:
        with open("/proc/self/mountinfo") as told:
            lines = [line.split() for line in told]
    except FileNotFoundError:
        return {}
    devices = [(line[2].split(":"), line[line.index("-") + 1]) for line in lines]
    return {os.makedev(int(major), int(minor)): kind for (major, minor), kind in devices}
