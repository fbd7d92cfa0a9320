"""Hides the values of columns marked `pii`, in rows and in the records that rows came as."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..spec import Step

HIDDEN = "hidden: pii"
_RECORD, _BYTES, _RESCUED, _ORIGIN = "row", "raw", "_rescued", "_source"
_UNTOLD = ("key", "headers", "value")
"""Of a topic's record: nobody says which columns they hold values of."""


def hide_values(
    names: Sequence[str], row: tuple, pii: Sequence[str], refused: Step | None = None
) -> tuple:
    """A row without values of columns marked `pii`; NULL stays NULL.

    Args: names: of the columns. refused: the step, for a row of its quarantine table.
    """
    hidden = {name.casefold() for name in pii}
    return tuple(
        _hide_in_column(name, value, hidden, refused)
        for name, value in zip(names, row, strict=True)
    )


def _hide_in_column(name: str, value: object, hidden: set[str], refused: Step | None) -> object:
    if value is None or not hidden:
        return value
    if refused is not None and name == _RECORD:
        return _hide_in_record(str(value), hidden, refused)
    if refused is not None and name == _BYTES:
        return HIDDEN
    if name == _ORIGIN:
        return _hide_in_origin(value)
    if name == _RESCUED:
        return _hide_in_json(str(value), hidden, None)
    return _hide({name: value}, hidden, "")[name]


def _hide_in_origin(origin: object) -> object:
    """Where a row came from: a file's path, or place, key and more of a topic's record, in a
    quarantine table as JSON."""
    if isinstance(origin, Mapping):
        kept = {name: HIDDEN for name in _UNTOLD if origin.get(name) is not None}
        return {**origin, **kept}
    if not str(origin).startswith("{"):
        return origin
    try:
        return json.dumps(_hide_in_origin(json.loads(str(origin))))
    except ValueError:  # cut by whoever asked
        return HIDDEN


def _hide(value: Any, hidden: set[str], within: str) -> Any:
    """A value without the fields that are hidden, by their own names or by their whole paths."""
    if isinstance(value, Mapping):
        kept = {}
        for name, inner in value.items():
            path = f"{within}.{name}".removeprefix(".").casefold()
            secret = inner is not None and hidden & {path, str(name).casefold()}
            kept[name] = HIDDEN if secret else _hide(inner, hidden, path)
        return kept
    if isinstance(value, list):
        return [_hide(inner, hidden, within) for inner in value]
    return value


def _hide_in_record(text: str, hidden: set[str], step: Step) -> str:
    """A refused record. All of it is hidden where nothing says which part of it is which column:
    it is no JSON, a transform made the column from others, or the record has no such field."""
    declared = {name.casefold() for name in step.columns}
    if step.transform is not None and not hidden <= declared:
        return HIDDEN
    wanted = hidden & declared if declared else hidden
    return _hide_in_json(text, hidden, wanted)


def _hide_in_json(text: str, hidden: set[str], wanted: set[str] | None) -> str:
    """An object without hidden fields. Args: wanted: fields of which it must have one."""
    try:
        record = json.loads(text)
        kept = _hide(record, hidden, "")
    except (ValueError, RecursionError):
        return HIDDEN
    if not isinstance(record, dict):
        return HIDDEN
    if wanted and not wanted & {str(name).casefold() for name in record}:
        return HIDDEN
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
