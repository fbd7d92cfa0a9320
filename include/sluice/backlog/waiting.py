"""The files of a folder that no batch has read yet."""

from itertools import takewhile
from typing import NamedTuple

from ..checkpoint.log import Checkpoint, SeenFile
from ..spec import FileSource
from ..storage import in_bucket
from .files import LandedFile, list_files, source_root

_SAME_TIME = 2000
"""Milliseconds by which two times of one file may differ: stores keep them in seconds or in
milliseconds."""
_LISTED_AGAIN = {"name": 900, "folder": 2}
"""Files, or folders, before the end of what was read that an ordered listing starts at: nine tenths
of a page, so that one request shows what is new."""


_FEW, _MANY = 1_000, 5_000
"""Files that are quickly told one by one, and files that are not quickly listed."""


class Look(NamedTuple):
    """What a look at a folder found. `waiting`: files the next run would read, oldest first;
    `told`: what a person should know about the others; `listed`: how many files there are."""

    waiting: list[LandedFile]
    told: list[str]
    listed: int

    @property
    def is_crowded(self) -> bool:
        """True where few files wait among so many that one who knows them should not list."""
        return len(self.waiting) <= _FEW and self.listed >= _MANY


def waiting_files(source: FileSource, checkpoint: Checkpoint) -> tuple[list[LandedFile], list[str]]:
    """What a look says of the files that wait, and of the others."""
    look = look_for_files(source, checkpoint)
    return look.waiting, look.told


def look_for_files(source: FileSource, checkpoint: Checkpoint) -> Look:
    """Find the files that no batch has read.

    A file is known by its path: one that was overwritten after it was read is not read again, and
    says so here (with `ordered_by` only the newest are looked at).
    """
    committed = checkpoint.log_offset(checkpoint.newest_commit)
    seen = {f.path: f for f in checkpoint.seen_files()}
    waiting, changed = [], []
    listed = list_files(source, _list_after(source, seen, committed))
    for landed in listed:
        known = seen.get(landed.path)
        if known is None or known.log_id > committed:
            waiting.append(landed)
        elif abs(landed.modified * 1000 - known.modified_ms) > _SAME_TIME:
            changed.append(landed.name)
    note = (
        f"{len(changed)} file(s) changed after they were read and are not read again: "
        f"{', '.join(changed[:3])}; land a correction under a new name"
    )
    return Look(waiting, [note] if changed else [], len(listed))


def find_altered(source: FileSource, checkpoint: Checkpoint, batch: int) -> list[str]:
    """Names of the files that were read up to a batch, and are gone or not as they were."""
    last = checkpoint.log_offset(batch)
    landed = {file.path: file.modified * 1000 for file in list_files(source)}
    read = (file for file in checkpoint.seen_files() if file.log_id <= last)
    return sorted(
        file.path
        for file in read
        if abs(landed.get(file.path, float("-inf")) - file.modified_ms) > _SAME_TIME
    )


def _list_after(source: FileSource, seen: dict[str, SeenFile], committed: int) -> str | None:
    """Where a listing may start when the user says that names or folders sort by arrival; None
    lists everything.

    Before every file that was planned and not read, and some way before the greatest one that was
    read: an upload that took long shows up behind its successors.
    """
    root = source_root(source).rstrip("/") + "/"
    if source.ordered_by is None or not in_bucket(root):
        return None
    known = sorted(
        (f for f in seen.values() if f.path.startswith(root)), key=lambda f: f.path.encode()
    )  # as S3 sorts: by the bytes of UTF-8
    read = [f.path for f in takewhile(lambda f: f.log_id <= committed, known)]
    if source.ordered_by == "folder":
        read = list(dict.fromkeys(path.rpartition("/")[0] + "/" for path in read))
    margin = _LISTED_AGAIN[source.ordered_by]
    return read[-margin] if len(read) >= margin else None
