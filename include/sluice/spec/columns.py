"""Names and types of columns: which can be declared, and which cannot be written or compared."""

import re

from .model import FieldError

GROUP_PREFIX = "_group_"
"""Of the name of a group that the result of a query does not show: it is kept in a column beside
the user's."""
SYSTEM_COLUMNS = ("_run_id", "_batch_id", "_batch_key", "_source", "_ingested_at")
"""What every target has beside the user's columns. `_batch_key` (pipeline, step, checkpoint
generation, batch) is the one by which a batch's rows are found again."""

_TYPE = re.compile(
    r"(string|binary|boolean|byte|tinyint|short|smallint|int|integer|long|bigint|float|double|date"
    r"|timestamp|timestamp_ntz|variant"
    r"|decimal\(\s*\d+\s*,\s*\d+\s*\)|array<.+>|map<.+>|struct<.+>)",
    re.IGNORECASE,
)
_TIME = re.compile(r"string|date|timestamp|timestamp_ntz", re.IGNORECASE)
_MAP, _VARIANT = (re.compile(rf"\b{name}\b", re.IGNORECASE) for name in (r"map(?=\s*<)", "variant"))
_QUOTED = re.compile(r"`([^`]*)`")
_UNWRITABLE = re.compile(r"[ ,;{}()\n\t=]")
"""What Delta, like Parquet, has in no column's name, unless the table maps its columns."""


def check_columns(columns: dict[str, str]) -> None:
    """Raise ValueError for columns that no source can have."""
    if not columns:
        raise ValueError("no columns; `sluice infer` proposes a schema from a sample")
    for name, type_ in columns.items():
        if name.startswith("_"):
            raise ValueError(
                f"column {name!r}: names that start with `_` are kept for system columns; rename it"
            )
        if not _TYPE.fullmatch(type_.strip()):
            raise unknown_type(name, type_)
    if len({name.lower() for name in columns}) < len(columns):
        raise ValueError("two columns differ only in case; Spark does not tell them apart")


def unknown_type(name: str, type_: str, *at: str) -> FieldError:
    """The error of a column's type that Spark does not have. Args: at: what leads to the column."""
    from .types import suggest_type

    return FieldError(
        f"column {name!r} has unknown type {type_!r}; write a Spark SQL type such as string, "
        "bigint, double, timestamp",
        *at,
        name,
        do=suggest_type(type_),
    )


def check_time(name: str, columns: dict[str, str]) -> None:
    """Raise ValueError for a column that no event time can be."""
    if is_time(columns[name]):
        return
    times = [c for c, type_ in columns.items() if type_.strip().lower().startswith("timestamp")]
    meant = f"Did you mean {times[0]!r}? " if times else ""
    raise FieldError(
        f"event_time.column names column {name!r}, which is {columns[name]}, and an event time is "
        "a timestamp, a date or text that reads as one",
        *("event_time", "column"),
        do=f"{meant}A column of another type is cast in a `transform`",
    )


def check_comparable(name: str, type_: str, is_key: bool, remembered: bool) -> None:
    """Raise ValueError for a column by which rows cannot be known, or told apart.

    Args: remembered: the target tells rows of one key apart by what they say.
    """
    why = why_incomparable(type_)
    if why and is_key:
        raise ValueError(
            f"dedup.keys compares column {name!r}, which is {type_}, and {why}; name other "
            "columns as keys, or write to_json in a `transform`"
        )
    why = why_unhashable(type_)
    if why and remembered:
        raise ValueError(
            f"column {name!r} is {type_}, and {why}, by which rows of one key are told apart; "
            "write to_json in a `transform`"
        )


def is_time(type_: str) -> bool:
    """True for a type that an event time can be of."""
    return _TIME.fullmatch(type_.strip()) is not None


def is_atomic(type_: str) -> bool:
    """True for a type whose values a text can hold: neither nested nor bytes."""
    return not re.match(r"array|map|struct|variant|binary", type_.strip(), re.IGNORECASE)


def is_unwritable(name: str, type_: str) -> bool:
    """True for a column that Delta refuses for its own name, or for one within its type."""
    return any(map(_UNWRITABLE.search, [name, *_QUOTED.findall(type_)]))


def why_incomparable(type_: str) -> str | None:
    """Why no two values of a type can be compared as a key; None where they can."""
    if _MAP.search(type_):
        return "Spark compares no maps"
    return "Spark compares no variants" if _VARIANT.search(type_) else None


def why_unhashable(type_: str) -> str | None:
    """Why rows with a column of a type cannot be told apart by what they say; None where they can.

    Nested values are compared as JSON, a map as the sorted list of its entries.
    """
    text = type_.strip()
    if _VARIANT.fullmatch(text):
        return "Spark hashes no variants"
    within = text.partition("<")[2] if _MAP.match(text) else ""
    return "Spark sorts no maps of such values" if why_incomparable(within) else None
