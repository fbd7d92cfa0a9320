"""The header of each waiting CSV file: columns are matched by name, so a reordered, added or removed one moves no value into a neighbour's place."""

import bz2
import csv
import gzip
import io
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import zstandard

from ..backlog import LandedFile
from ..spec import FileSource, open_path

_OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".zst": zstandard.open, ".zstd": zstandard.open}
_HEADER_LIMIT = 1 << 20


@dataclass(frozen=True)
class Layout:
    """The header of some files. `line`: as it stands in them; `columns`: schema column or None (unknown) for each field; `names`: the header's own."""

    line: str
    names: tuple[str, ...]
    columns: tuple[str | None, ...]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Header fields the schema does not have."""
        return tuple(n for n, c in zip(self.names, self.columns, strict=True) if c is None)

    def missing(self, schema: Iterable[str]) -> list[str]:
        """Schema columns the header does not have; they read as NULL."""
        return [c for c in schema if c not in self.columns]


def match_header(line: str, source: FileSource) -> Layout:
    """Match a header line with the schema: by name, else by name without regard to case; a name's second use is unknown."""
    options = {k.lower(): v for k, v in source.options.items()}
    reader = csv.reader(io.StringIO(line), delimiter=options.get("sep", options.get("delimiter", ",")), quotechar=options.get("quote", '"') or None)
    names = tuple(name.strip() for name in next(reader, []))
    exact, folded = set(source.columns), {c.lower(): c for c in source.columns}
    found: list[str | None] = []
    for name in names:
        column = name if name in exact else folded.get(name.lower())
        found.append(column if column not in found else None)
    return Layout(line, names, tuple(found))


def read_header(path: str, encoding: str) -> str | None:
    """The first line of a file, decompressed, without byte order mark; None when the file is empty or cannot be read (the stream will say why)."""
    handle = open_path(path)
    opener = _OPENERS.get(handle.suffix.lower())
    try:
        with handle.open("rb") as raw:
            stream = opener(raw, "rb") if opener else raw
            text = io.TextIOWrapper(io.BufferedReader(stream) if opener else stream, encoding=encoding, errors="replace", newline=None)
            line = text.readline(_HEADER_LIMIT).lstrip("\ufeff").rstrip("\n")
    except (OSError, EOFError, zstandard.ZstdError):
        return None
    return line or None


def find_layouts(files: list[LandedFile], source: FileSource) -> dict[Layout, list[str]]:
    """Group files by header: layout -> paths, the most frequent first. Files without a readable header are left out."""
    with ThreadPoolExecutor(16) as pool:
        lines = list(pool.map(lambda f: read_header(f.path, source.encoding), files))
    groups: dict[str, list[str]] = {}
    for landed, line in zip(files, lines, strict=True):
        if line is not None:
            groups.setdefault(line, []).append(landed.path)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return {match_header(line, source): paths for line, paths in ordered}
