"""Rows as text: a table for eyes, CSV and JSON for programs."""

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any

from rich.cells import cell_len, set_cell_size

from ..errors import SpecError

WIDEST = 60
"""Cells of a terminal beyond which a value is cut in a table."""


class Format(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def format_rows(names: Sequence[str], rows: Iterable[tuple], format_: Format) -> Iterator[str]:
    """Lines: a table; CSV with a header (RFC 4180), in which NULL is nothing and an empty text is
    `""`; or a JSON object a row.

    Raises SpecError for columns of one name where an object has place for one of them.
    """
    if format_ is Format.TABLE:
        yield from _lay_out(names, rows)
    elif format_ is Format.CSV:
        yield ",".join(map(_quote, names))
        for row in rows:
            yield ",".join("" if value is None else _quote(_as_text(value)) for value in row)
    else:
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            do = "Write `AS another_name` behind one of them, or --format csv"
            raise SpecError("two columns have one name", where="--format", value=twice, do=do)
        for row in rows:
            yield json.dumps(_as_json(dict(zip(names, row, strict=True))), ensure_ascii=False)


def _lay_out(names: Sequence[str], rows: Iterable[tuple]) -> Iterator[str]:
    header = [_cut(name) for name in names]
    cells = [header, *([_cut(_as_cell(value)) for value in row] for row in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    for line in cells:
        padded = (set_cell_size(text, width) for text, width in zip(line, widths, strict=True))
        yield "  ".join(padded).rstrip()


def _as_cell(value: object) -> str:
    """A value as a person reads it; times as reports print them."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        text = value.astimezone(UTC) if value.tzinfo else value
        return f"{text.replace(tzinfo=None)}{' UTC' if value.tzinfo else ''}"
    return _as_text(value)


def _cut(text: str) -> str:
    """A text on one line, without what a terminal would obey."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if cell_len(text) <= WIDEST else f"{set_cell_size(text, WIDEST - 1)}…"


def _as_text(value: object) -> str:
    told = _as_json(value)
    if isinstance(told, str):
        return told
    return json.dumps(told, ensure_ascii=False)


def _as_json(value: Any) -> Any:
    """A value as JSON has it: times as ISO 8601, bytes in base64, decimals and numbers that are
    none as text."""
    if isinstance(value, dict):
        return {str(name): _as_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(inner) for inner in value]
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and abs(value) < float("inf"):
        return value
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(value), str(value))


def _quote(text: str) -> str:
    """A CSV value, in quotes where it needs them."""
    plain = text and text == text.strip() and not any(mark in text for mark in ',"\r\n')
    return text if plain else '"' + text.replace('"', '""') + '"'
