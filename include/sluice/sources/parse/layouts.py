"""The columns of each waiting file: matched by name, so that a reordered, added or removed one
moves no value into a neighbour's place."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ...backlog import LandedFile
from ...errors import SourceError
from ...spec import FileSource, Records
from .headers import UNREADABLE, read_csv_header, read_schema

EMBEDDED = ("parquet", "orc", "avro")
"""Formats whose files carry their schema."""


@dataclass(frozen=True)
class Layout:
    """The columns of some files. `line`: the CSV header (or the schema) as it stands in them;
    `names`: their own; `columns`: the schema's, None for an unknown one."""

    line: str
    names: tuple[str, ...]
    columns: tuple[str | None, ...]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Columns the schema does not have."""
        return tuple(n for n, c in zip(self.names, self.columns, strict=True) if c is None)

    def missing(self, schema: Iterable[str]) -> list[str]:
        """Schema columns the files do not have; they read as NULL."""
        return [c for c in schema if c not in self.columns]


def match_names(line: str, names: tuple[str, ...], source: FileSource) -> Layout:
    """Match a file's columns with the schema: by name, else by name without regard to case; a
    name's second use is unknown."""
    exact, folded = set(source.columns), {c.lower(): c for c in source.columns}
    found: list[str | None] = []
    for name in names:
        column = name if name in exact else folded.get(name.lower())
        found.append(column if column not in found else None)
    return Layout(line, names, tuple(found))


def _read_names(path: str, source: FileSource) -> tuple[str, tuple[str, ...]] | None:
    try:
        return (
            read_csv_header(path, source)
            if source.format == "csv"
            else read_schema(path, source.format)
        )
    except UNREADABLE:
        return None  # empty, broken or gone: the stream says why


def reads_whole_files(source: Records) -> bool:
    """True where a record may span lines, and where a line break is more than one byte: such a file
    is one value in memory before it is split."""
    return source.format not in EMBEDDED and (
        source.spans_lines
        or source.encoding.upper().startswith(("UTF-16", "UTF-32", "UTF16", "UTF32"))
    )


def has_layouts(source: FileSource) -> bool:
    """True where files say which columns they have."""
    return source.format in EMBEDDED or (source.format == "csv" and source.header)


def find_layouts(files: list[LandedFile], source: FileSource) -> dict[Layout, list[str]]:
    """Group files by their columns: layout -> paths, the most frequent first; files that cannot be
    read are left out.

    Raises SourceError for unknown columns under `unknown_fields: fail`, before a row is read.
    """
    if not has_layouts(source):
        return {}
    with ThreadPoolExecutor(16) as pool:
        headers = list(pool.map(lambda f: _read_names(f.path, source), files))
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for landed, header in zip(files, headers, strict=True):
        if header is not None:
            groups.setdefault(header, []).append(landed.path)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    layouts = {match_names(line, names, source): paths for (line, names), paths in ordered}
    for layout, paths in layouts.items():
        if layout.unknown and source.unknown_fields == "fail":
            raise SourceError(
                f"{len(paths)} file(s) have columns the schema does not declare",
                where=paths[0],
                value=", ".join(layout.unknown),
                do="Declare them in `schema`, write `unknown_fields: rescue`, or move the files "
                "out of the landing folder",
            )
    return layouts
