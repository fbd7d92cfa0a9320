"""How files are written: what a reader must be told before it sees the first record.

Separator and quote of CSV are found by CleverCSV (van den Burg, Nazábal, Sutton, "Wrangling messy
CSV files by detecting row and type patterns", 2019), the encoding of what is not UTF-8 by chardet.
"""

import codecs
import csv
import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .files import open_bytes

_LOOKED_AT = 1 << 18
_BOMS = (
    (codecs.BOM_UTF8, "UTF-8"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


@dataclass(frozen=True)
class Layout:
    """What a source says of its files.

    `options`: Spark's own, by its names. `notes`: what was guessed, and what to look at.
    """

    format: str
    encoding: str = "UTF-8"
    header: bool = True
    multi_line: bool = False
    options: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def noting(self, *notes: str) -> "Layout":
        """The same with more to say."""
        return replace(self, notes=self.notes + notes)

    def with_options(self, **options: str) -> "Layout":
        """The same with further options."""
        return replace(self, options=self.options | options)


def describe_layout(file: Path, format: str) -> Layout:
    """Encoding, separator, quote, header and line breaks within values, from the head of a file."""
    layout = Layout(format)
    if format not in ("json", "csv", "text"):
        return layout
    with open_bytes(file) as stream:
        data = stream.read(_LOOKED_AT)
    layout = _find_encoding(layout, data)
    text = data.decode(layout.encoding, errors="replace").removeprefix("\ufeff")
    if format == "json":
        return _describe_json(layout, text)
    return _describe_csv(layout, text, cut=len(data) == _LOOKED_AT) if format == "csv" else layout


def _find_encoding(layout: Layout, data: bytes) -> Layout:
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return replace(layout, encoding=encoding)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)  # which may end within a character
    except UnicodeDecodeError:
        found = _guess_encoding(data)
        return replace(layout, encoding=found).noting(
            f"the bytes are not UTF-8; {found} is a guess: look at letters beyond ASCII"
        )
    return layout


def _guess_encoding(data: bytes) -> str:
    """What chardet is sure of; else the one that Windows wrote in most of Europe and America, since
    few letters do not tell the Latin ones apart."""
    import chardet

    found = chardet.detect(data)
    sure = (found["confidence"] or 0) > 0.9 and sum(byte > 127 for byte in data) > 50
    return found["encoding"] if sure and found["encoding"] else "windows-1252"


def _describe_json(layout: Layout, text: str) -> Layout:
    """One object a line, or one document over several lines or as one array."""
    lines = [line for line in text.splitlines() if line.strip()]
    if any(_is_object(line) for line in lines[:50]) or not lines:
        return layout
    return replace(layout, multi_line=True).noting(
        "a file is one JSON document: `multi_line` reads it whole, so it must fit into memory"
    )


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _describe_csv(layout: Layout, text: str, *, cut: bool) -> Layout:
    import clevercsv

    lines = text.splitlines(keepends=True)
    head = "".join((lines[:-1] if cut else lines)[:500])
    found = clevercsv.Detector().detect(head)
    if found is None or not found.delimiter:
        layout = layout.noting("no separator was found: each line is one column")
    elif found.delimiter != ",":
        layout = layout.with_options(sep=found.delimiter)
    if found and found.quotechar and found.quotechar != '"':
        layout = layout.with_options(quote=found.quotechar)
    if found and found.escapechar:
        layout = layout.with_options(escape=found.escapechar)
    rows = list(csv.reader(head.splitlines(keepends=True), **dialect(layout)))
    if any("\n" in cell for row in rows for cell in row):
        layout = replace(layout, multi_line=True).noting(
            "quoted values hold line breaks: `multi_line` reads a file whole"
        )
    if rows and not _names_columns(rows):
        layout = replace(layout, header=False).noting(
            "the first line holds values: columns are named by their place, give them names"
        )
    return layout


def dialect(layout: Layout) -> dict[str, Any]:
    """A layout as Python's csv module wants it."""
    named = {"sep": "delimiter", "quote": "quotechar", "escape": "escapechar"}
    return {named[name]: value for name, value in layout.options.items() if name in named}


def _names_columns(rows: list[list[str]]) -> bool:
    """True where the first record reads like names: each a text of its own that is no number and
    no date, and that its column does not hold again."""
    first, rest = rows[0], rows[1:]
    if len(set(first)) < len(first) or any(not name.strip() for name in first):
        return False
    if any(re.match(r"[+-]?[\d.,]+$|\d{1,4}[-./]\d", name.strip()) for name in first):
        return False
    return not any(name == cell for row in rest for name, cell in zip(first, row, strict=False))
