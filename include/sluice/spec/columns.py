"""Names and types of columns: which can be declared, and which cannot be written or compared."""

import re

SYSTEM_COLUMNS = ("_run_id", "_batch_id", "_batch_key", "_source", "_ingested_at")
"""What every target has beside the user's columns. `_batch_key` (pipeline, step, checkpoint
generation, batch) is the one by which a batch's rows are found again."""

_TYPE = re.compile(
    r"(string|binary|boolean|byte|tinyint|short|smallint|int|integer|long|bigint|float|double|date"
    r"|timestamp|timestamp_ntz|variant"
    r"|decimal\(\s*\d+\s*,\s*\d+\s*\)|array<.+>|map<.+>|struct<.+>)",
    re.IGNORECASE,
)
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
            raise ValueError(
                f"column {name!r} has unknown type {type_!r}; write a Spark SQL type such as "
                "string, bigint, double, timestamp"
            )
    if len({name.lower() for name in columns}) < len(columns):
        raise ValueError("two columns differ only in case; Spark does not tell them apart")


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
