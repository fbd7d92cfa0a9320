"""Values -> Spark types, without Spark.

JSON and CSV by looking at values; Parquet, ORC and Avro by reading what the file says of itself.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Union

from . import filetypes
from .files import unreadable
from .records import Record

_INTEGER = re.compile(r"[+-]?(0|[1-9]\d*)")
_NUMBER = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)? ?(Z|[+-]\d{2}:?\d{2})?"
)
_LEADING_ZERO = re.compile(r"[+-]?0\d+")
_DATA = re.compile(
    r"\d+|[0-9a-fA-F]{8,}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|\d{4}-\d{2}(-\d{2})?|[^@\s]+@[^@\s]+|\d{1,3}(\.\d{1,3}){3}"
)
"""Keys of an object that are data and not names: numbers, hashes, UUIDs, dates, addresses."""
_MANY = 50
"""So many keys of one type are no struct that anybody designed."""
_WIDENS = [("bigint", "double"), ("date", "timestamp")]
NULL = "null"
Type = Union[str, dict[str, "Type"], list["Type"]]  # noqa: UP007 (it names itself)
"""Spark type of a value: text, or a dict for a struct, a one-element list for an array."""


def infer_types(records: Iterable[Record], *, text: bool = False) -> dict[str, str]:
    """Column -> Spark type, in the order the columns were first seen. `text`: numbers too arrive as
    text (CSV)."""
    merged: dict[str, Type] = {}
    for record in records:
        merged = _merge(merged, {name: _type_of(value, text) for name, value in record.items()})
    return {name: _render(type_) for name, type_ in merged.items()}


def read_types(files: list[Path], format: str) -> dict[str, str]:
    """Column -> Spark type as Parquet, ORC or Avro files state it.

    Raises SourceError for a file that is not of this format.
    """
    merged: dict[str, Type] = {}
    for file in files:
        try:
            merged = _merge(merged, getattr(filetypes, f"read_{format}")(file))
        except (ValueError, OSError, EOFError, KeyError) as error:
            raise unreadable(file, format, error) from None
    return {name: _render(type_) for name, type_ in merged.items()}


def format_schema(columns: dict[str, str], indent: int = 0) -> str:
    """The YAML of a `schema:` field."""
    pad = " " * indent
    lines = [f"{pad}  {_quote(name)}: {_quote(type_)}" for name, type_ in columns.items()]
    return "\n".join([f"{pad}schema:", *lines])


def _quote(text: str) -> str:
    plain = (
        re.fullmatch(r"[A-Za-z][\w<>(),: ]*", text)
        and ": " not in text
        and text.lower() not in ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
    )
    return text if plain else json.dumps(text, ensure_ascii=False)


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
        if _holds_data_as_keys(type_):
            held: Type = NULL
            for inner in type_.values():
                held = _merge_types(held, inner)
            return f"map<string, {_render(held)}>"
        fields = ", ".join(f"{_field(name)}: {_render(inner)}" for name, inner in type_.items())
        return f"struct<{fields}>"
    if isinstance(type_, list):
        return f"array<{_render(type_[0])}>"
    return "string" if type_ == NULL else type_


def _holds_data_as_keys(type_: dict[str, Type]) -> bool:
    """True for an object without keys, and where keys read like data or are many of one type."""
    if all(_DATA.fullmatch(name) for name in type_):
        return True
    return len(type_) > _MANY and len({json.dumps(inner) for inner in type_.values()}) == 1


def _field(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else f"`{name}`"
