"""Names of the columns the engine adds; the user's columns never start with `_`."""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from ..spec import GROUP_PREFIX, SYSTEM_COLUMNS

RAW = "_raw"
"""The record as it came (text formats), else NULL."""
DEFECT = "_defect"
"""Why the record could not be parsed; NULL when it was."""
RESCUED = "_rescued"
"""JSON of the fields outside the schema; NULL when there are none."""
SOURCE = "_source"
"""URI of the file."""
TIME = "_event_time"
"""Event time, never NULL: a time that is missing or too far ahead reads as year 1, which moves no
watermark."""
STAGE = "_stage"
"""`entered`: the row takes part. `filtered`: the transform's WHERE left it out. `parsed`: counted
before a transform that changes the number of rows. `rejected`: its input's rules or event time
kept it out of the transform."""
REASONS = "_reasons"
"""Why the row is refused; empty when it is not."""
CHECKS = "_checks"
"""Struct of two booleans a rule: e<i> (evaluated), u<i> (unexpected)."""
BATCH_KEY = "_batch_key"
"""Pipeline, step, checkpoint generation and batch as one text: no other batch ever has it."""
LATE_BY = "_late_by_seconds"
"""Of the late table: how far behind the watermark the row was."""
COPIES = "_copies"
"""Of a row that stands for its key: how many rows of its batch it stands for, itself included."""
CONTENT, DIFFERS = "_content", "_differs"
"""Of a row that stands for its key: what it says, as one number; whether another row of the key in
its batch said something else."""

INPUT = "_input"
"""Of a record of one of several inputs: its name. NULL of a row that was made of them."""
CHANGE = "_change"
"""Of a record of a step with `groups`: the input it is of, and the group by the names of the
result's columns. NULL of a row that was computed."""

ENTERED, FILTERED, PARSED, REJECTED = "entered", "filtered", "parsed", "rejected"
MALFORMED, NULL_KEY, NULL_TIME, FUTURE_TIME, UNREADABLE = (
    "malformed",
    "null_key",
    "null_time",
    "future_time",
    "unreadable_file",
)

ENGINE_COLUMNS = (RAW, DEFECT, RESCUED, SOURCE, TIME, STAGE, REASONS, CHECKS, INPUT, CHANGE)


KEY_HASH = "_key_hash"
"""A number that rows of equal keys share."""


def quote(name: str) -> str:
    """A column name that may hold spaces or dots, safe in SQL text."""
    return "`" + name.replace("`", "``") + "`"


def hash_key(keys: Sequence[str]) -> Column:
    """The number that rows of equal keys share, as SQL compares keys."""
    return F.xxhash64(*[col(key) for key in keys])


def source_text(kind: DataType) -> Column:
    """Where a row came from, as text: of a record of a topic JSON without its value. Args: kind:
    of the column `_source`."""
    if not isinstance(kind, StructType):
        return F.col(SOURCE)
    key = F.make_valid_utf8(F.col(f"{SOURCE}.key").cast("string"))
    return F.to_json(F.col(SOURCE).dropFields("value").withField("key", key))


def col(name: str) -> Column:
    """The column called `name`, whatever characters it has."""
    return F.col(quote(name))


def field(row: str, name: str) -> Column:
    """The field called `name` of a column that holds structs."""
    return F.col(f"{row}.{quote(name)}")


def own_columns(names: Sequence[str]) -> list[str]:
    """Those columns of a table of a step that are the user's."""
    ours = {*SYSTEM_COLUMNS, *ENGINE_COLUMNS, LATE_BY}
    return [name for name in names if name not in ours and not name.startswith(GROUP_PREFIX)]
