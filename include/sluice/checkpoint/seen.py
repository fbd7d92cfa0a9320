"""The files that a stream has read and that Spark's log of them does not hold any more.

Whenever a stream starts, Spark reads its log of every file it ever read. So what lies behind the
newest finished batch is moved into segments of ours, within Spark's folder: they go where it goes.
A segment is named by the last position in it. It holds a line a file, by path, and one more that
says how many.
"""

import os
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from ..errors import PreflightError
from ..storage import is_remote, replace_file

_TAIL = 1 << 18
"""Bytes of a segment in which the files that sort last are looked for: of most paths 2,000."""


def normalize_uri(uri: str) -> str:
    """A file's URI as Spark logs it -> the path a listing shows: `file:///a%20b` -> `/a b`; other
    schemes keep their bucket."""
    path = unquote(uri) if "%" in uri else uri
    if path.startswith("file:"):
        return "/" + path.removeprefix("file:").lstrip("/")
    return path


class SeenFile(NamedTuple):
    """One entry of the file source's log. A tuple, because there may be a million of them."""

    path: str
    modified_ms: int
    log_id: int


class Entry(NamedTuple):
    """The same to the letter of Spark's log, whose addresses hold neither tabs nor line breaks."""

    uri: str
    modified_ms: str
    log_id: str

    @classmethod
    def of(cls, noted: dict) -> "Entry":
        """A line of Spark's log."""
        return cls(noted["path"], str(noted["timestamp"]), str(noted["batchId"]))

    @property
    def noted(self) -> dict:
        """As Spark's log has it."""
        told = {"timestamp": int(self.modified_ms), "batchId": int(self.log_id)}
        return {"path": self.uri, **told}

    @property
    def path(self) -> str:
        """As a listing shows it."""
        return normalize_uri(self.uri)


def list_folder(folder: Path) -> list[Path]:
    """What lies in a folder; nothing when it is absent, which a bucket says in its own way. In a
    bucket each question costs a request, so none is asked before."""
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def numbered(files: list[Path]) -> dict[int, Path]:
    """Number -> file of that name, without hidden temporary and checksum files."""
    return {int(p.name): p for p in files if p.name.isdigit()}


class SeenArchive:
    """The segments in a folder, as they are when it is asked first. Where there is one, Spark must
    not list the source: it would take every file in them for a new one. Each question raises
    PreflightError for a segment that is damaged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def segments(self) -> dict[int, Path]:
        """Last position -> segment, in the order of the positions."""
        return dict(sorted(numbered(list_folder(self.folder)).items()))

    @property
    def newest(self) -> int:
        """The last position of all; -1 where there is none."""
        return max(self.segments, default=-1)

    def read_entries(self) -> list[Entry]:
        """Every entry."""
        return [entry for segment in self.segments.values() for entry in _read(segment)]

    def read(self, after: int = -1) -> list[SeenFile]:
        """Every file; of one path the last tells what is so. Args: after: only those of later
        positions."""
        later = [segment for number, segment in self.segments.items() if number > after]
        files = [file for segment in later for file in _parse(_lines(segment), segment)]
        return [file for file in files if file.log_id > after] if after >= 0 else files

    def read_end(self) -> tuple[list[SeenFile], str]:
        """The files that sort last, and a path: all that sort behind it are among them."""
        found: list[SeenFile] = []
        since = ""
        for segment in self.segments.values():
            lines, whole = _end(segment)
            files = _parse(lines, segment)
            since = since if whole else max(since, files[0].path)
            found += files
        return found, since

    def add(self, entries: Iterable[Entry], position: int) -> None:
        """Keep entries of positions up to one. Raises OSError.

        A segment that is less than twice what comes behind it is merged with it, so there are
        few.
        """
        new = list(entries)
        size, merged, behind = sum(map(_length, new)), [new], {}
        for number, segment in reversed(self.segments.items()):
            if number == position or segment.stat().st_size < 2 * size:
                behind[number] = segment
                merged.append(_read(segment))
                size += segment.stat().st_size
        told = dict.fromkeys(entry for part in reversed(merged) for entry in part)
        lines = ["\t".join(entry) for entry in sorted(told, key=lambda entry: entry.path)]
        if not is_remote(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.folder / str(position), "\n".join([*lines, _count(lines)]))
        for number, segment in behind.items():
            if number != position:
                segment.unlink(missing_ok=True)


def _length(entry: Entry) -> int:
    return sum(map(len, entry)) + len(entry)


def _count(lines: list[str]) -> str:
    return f"v1 {len(lines)}"


def _lines(segment: Path) -> list[str]:
    *lines, last = segment.read_text(encoding="utf-8").split("\n")
    if last != _count(lines):
        raise _damaged(segment)
    return lines


def _end(segment: Path) -> tuple[list[str], bool]:
    """Its last lines, and whether they are all."""
    with segment.open("rb") as file:
        begin = max(0, file.seek(0, os.SEEK_END) - _TAIL)
        file.seek(begin)
        text = file.read()
    if begin:  # most likely within a line
        text = text.partition(b"\n")[2]
    *lines, last = text.decode().split("\n")
    if not last.startswith("v1 ") or (not lines and begin):
        raise _damaged(segment)
    return lines, not begin


def _read(segment: Path) -> list[Entry]:
    try:
        return [Entry(*line.split("\t")) for line in _lines(segment)]
    except TypeError:
        raise _damaged(segment) from None


def _parse(lines: list[str], segment: Path) -> list[SeenFile]:
    try:
        parts = (line.split("\t") for line in lines)
        return [SeenFile(normalize_uri(uri), int(ms), int(log_id)) for uri, ms, log_id in parts]
    except ValueError:
        raise _damaged(segment) from None


def _damaged(segment: Path) -> PreflightError:
    return PreflightError(
        "the checkpoint's list of files that were read is damaged, and without it they would all "
        "be read again",
        where=str(segment),
        do="Restore the checkpoint as a whole from a backup. Where there is none, `sluice reset` "
        "says what beginning anew costs",
    )
