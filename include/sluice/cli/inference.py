"""Files -> Spark types, without Spark.

JSON and CSV by looking at values; Parquet, ORC and Avro by reading what the file says of itself.
"""

import bz2
import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Union

from ..errors import SourceError
from . import filetypes

_INTEGER = re.compile(r"[+-]?(0|[1-9]\d*)")
_NUMBER = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)? ?(Z|[+-]\d{2}:?\d{2})?"
)
_LEADING_ZERO = re.compile(r"[+-]?0\d+")
_WIDENS = [("bigint", "double"), ("date", "timestamp")]
NULL = "null"
Type = Union[str, dict[str, "Type"], list["Type"]]  # noqa: UP007 (it names itself)
"""Spark type of a value: text, or a dict for a struct, a one-element list for an array."""


def infer_columns(files: list[Path], format: str, rows: int = 50_000) -> dict[str, str]:
    """Column -> Spark type, in the order the columns were first seen.

    `rows` are looked at in all, as many in each file. Raises SourceError when a file is not of this
    format.
    """
    if format == "text":
        return {"value": "string"}
    merged: dict[str, Type] = {}
    share = max(rows // len(files), 1)
    for file in files:
        try:
            if format in ("json", "csv"):
                records = _read_json(file) if format == "json" else _read_csv(file)
                for record in islice(records, share):
                    merged = _merge(
                        merged,
                        {
                            name: _type_of(value, text=format == "csv")
                            for name, value in record.items()
                        },
                    )
            else:
                merged = _merge(merged, getattr(filetypes, f"read_{format}")(file))
        except (ValueError, OSError, EOFError, csv.Error) as error:
            raise SourceError(
                f"cannot be read as {format}: {error}",
                where=str(file),
                do="Name its format with --format, or leave the file out",
            ) from None
    if not merged:
        raise SourceError(
            "no rows to learn from",
            where=", ".join(map(str, files[:3])),
            do="Name files that hold data",
        )
    return {name: _render(type_) for name, type_ in merged.items()}


def format_schema(columns: dict[str, str], indent: int = 0) -> str:
    """The YAML of a `schema:` field."""
    pad = " " * indent
    lines = [f"{pad}  {_quote(name)}: {_quote(type_)}" for name, type_ in columns.items()]
    return "\n".join([f"{pad}schema:", *lines])


def sample_value(type_: str) -> object:
    """A value of a Spark type, as JSON writes it."""
    if type_.startswith("array<"):
        return []
    if type_.startswith(("struct<", "map<")):
        return {}
    known = {
        "string": "a",
        "boolean": True,
        "timestamp": "2026-01-01T00:00:00Z",
        "timestamp_ntz": "2026-01-01T00:00:00",
        "date": "2026-01-01",
        "binary": "",
    }
    return known.get(type_, 1)


def _quote(text: str) -> str:
    plain = (
        re.fullmatch(r"[A-Za-z][\w<>(),: ]*", text)
        and ": " not in text
        and text.lower() not in ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
    )
    return text if plain else json.dumps(text, ensure_ascii=False)


def open_text(file: Path) -> io.TextIOBase:
    """A file as text, unpacked by its name: .gz, .bz2, .zst."""
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
    if file.suffix == ".zst":
        import zstandard

        return io.TextIOWrapper(
            zstandard.ZstdDecompressor().stream_reader(file.open("rb"), closefd=True),
            encoding="utf-8-sig",
            newline="",
        )
    return openers.get(file.suffix, open)(file, "rt", encoding="utf-8-sig", newline="")


def _read_json(file: Path) -> Iterator[dict]:
    """Objects of JSON lines; lines that are not JSON are left out.

    Of one array or object over several lines where the first line alone is not JSON.
    """
    with open_text(file) as lines:
        first = next((line for line in lines if line.strip()), "")
        try:
            head = json.loads(first or "null")
        except ValueError:
            rest = lines.read()
            try:
                whole = json.loads(first + rest)
            except ValueError:
                yield from _objects(_parsed(rest.splitlines()))
                return
            yield from _objects(whole if isinstance(whole, list) else [whole])
            return
        yield from _objects(head if isinstance(head, list) else [head])
        yield from _objects(_parsed(lines))


def _parsed(lines: Iterable[str]) -> Iterator[object]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue  # malformed rows go to quarantine in a run; they say nothing of the schema


def _objects(values: Iterable[object]) -> Iterator[dict]:
    return (value for value in values if isinstance(value, dict))


def _read_csv(file: Path) -> Iterator[dict]:
    with open_text(file) as lines:
        for row in csv.DictReader(lines, restkey="_beyond_header"):
            row.pop("_beyond_header", None)
            yield row


def _type_of(value: object, text: bool) -> Type:
    """Spark type of a value. `text`: numbers too arrive as text (CSV)."""
    if value is None or (text and value == ""):
        return NULL
    if isinstance(value, dict):
        return {name: _type_of(inner, text) for name, inner in value.items()}
    if isinstance(value, list):
        element: Type = NULL
        for inner in value:
            element = _merge_types(element, _type_of(inner, text))
        return [element]
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return _type_of_integer(value)
    if isinstance(value, float):
        return "double"
    return _type_of_text(str(value), text)


def _type_of_integer(value: int) -> str:
    return "bigint" if -(2**63) <= value < 2**63 else "string"


def _type_of_text(value: str, numbers: bool) -> str:
    if _TIMESTAMP.fullmatch(value):
        return "timestamp"
    if _DATE.fullmatch(value):
        return "date"
    if not numbers or _LEADING_ZERO.fullmatch(value):  # 00123 is a code, not a number
        return "string"
    if value.lower() in ("true", "false"):
        return "boolean"
    if _INTEGER.fullmatch(value):
        return _type_of_integer(int(value))
    return "double" if _NUMBER.fullmatch(value) else "string"


def _merge(left: dict[str, Type], right: Mapping[str, Type]) -> dict[str, Type]:
    merged = dict(left)
    for name, type_ in right.items():
        merged[name] = _merge_types(merged.get(name, NULL), type_)
    return merged


def _merge_types(left: Type, right: Type) -> Type:
    """The narrowest type that holds both; `string` where nothing else does."""
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    if isinstance(left, dict) and isinstance(right, dict):
        return _merge(left, right)
    if isinstance(left, list) and isinstance(right, list):
        return [_merge_types(left[0], right[0])]
    for narrow, wide in _WIDENS:
        if (left, right) in ((narrow, wide), (wide, narrow)):
            return wide
    return "string"


def _render(type_: Type) -> str:
    if isinstance(type_, dict):
        return (
            "struct<"
            + ", ".join(f"{_field(name)}: {_render(inner)}" for name, inner in type_.items())
            + ">"
            if type_
            else "map<string, string>"
        )
    if isinstance(type_, list):
        return f"array<{_render(type_[0])}>"
    return "string" if type_ == NULL else type_


def _field(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"`{name}`"
