"""The files of a folder that no batch has read yet."""

from heapq import nlargest
from typing import NamedTuple

from ..checkpoint.log import Checkpoint
from ..checkpoint.seen import SeenFile
from ..checkpoint.shorten import refuse_other_archive
from ..spec import FileSource
from .files import (
    LandedFile,
    can_be_named,
    list_files,
    sort_by_age,
    source_root,
    walk_files,
)

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
    `told`: what a person should know about the others; `listed`: how many files there are, at
    least; `shortened`: whether Spark's log does not know all that were read."""

    waiting: list[LandedFile]
    told: list[str]
    listed: int
    shortened: bool = False

    @property
    def is_named(self) -> bool:
        """True where who knows what waits should tell Spark: it must not list, because it would
        take old files for new ones, or should not, because few wait among many."""
        return self.shortened or (len(self.waiting) <= _FEW and self.listed >= _MANY)


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
    seen, after = _recall(source, checkpoint, committed)
    waiting, changed, listed = {}, {}, 0
    for landed in walk_files(source, after):  # a million of them are not kept
        known = seen.get(landed.path)
        listed += 1
        if known is None or known.log_id > committed:
            waiting[landed.path] = landed
        elif abs(landed.modified * 1000 - known.modified_ms) > _SAME_TIME:
            changed[landed.path] = landed
    told = _describe_changed(sort_by_age(changed.values()))
    count = listed if after is None else max(listed, len(seen))
    shortened = bool(checkpoint.archive.segments)
    return Look(sort_by_age(waiting.values()), told, count, shortened)


def _describe_changed(changed: list[LandedFile]) -> list[str]:
    if not changed:
        return []
    shown = ", ".join(file.name for file in changed[:3])
    return [
        f"{len(changed)} file(s) changed after they were read and are not read again: {shown}; "
        "land a correction under a new name"
    ]


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


def _recall(
    source: FileSource, checkpoint: Checkpoint, committed: int
) -> tuple[dict[str, SeenFile], str | None]:
    """The files that are known, and behind which path a listing may start. None lists everything;
    else those behind it are known, and of the others it does not matter."""
    refuse_other_archive(checkpoint)
    if source.ordered_by is not None:
        noted = checkpoint.noted_files()  # first: what is moved meanwhile is then in both
        last, since = checkpoint.archive.read_end()
        known = {file.path: file for file in (*last, *noted)}
        after = _list_after(source, known, committed)
        if after is not None and after >= since:
            return known, after
    known = {file.path: file for file in checkpoint.seen_files()}
    return known, _list_after(source, known, committed)


def _list_after(source: FileSource, seen: dict[str, SeenFile], committed: int) -> str | None:
    """Where a listing may start when the user says that names or folders sort by arrival; None
    lists everything.

    Before every file that was planned and not read, and some way before the greatest one that was
    read: an upload that took long shows up behind its successors.
    """
    root = source_root(source).rstrip("/") + "/"
    if source.ordered_by is None or not can_be_named(source):
        return None
    known = [file for file in seen.values() if file.path.startswith(root)]
    first = min((file.path for file in known if file.log_id > committed), default=None)
    read = (file.path for file in known if first is None or file.path < first)
    ends: dict[str, str] = {}  # names, or folders by their first name
    for path in read:
        end = path if source.ordered_by == "name" else path.rpartition("/")[0] + "/"
        ends[end] = min(path, ends.get(end, path))
    margin = _LISTED_AGAIN[source.ordered_by]
    return min(nlargest(margin, ends, key=ends.__getitem__)) if len(ends) >= margin else None
