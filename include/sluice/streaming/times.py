"""Ranges of time as SQL that Delta compares with the statistics of a table's files, so that of the
table only files are read in which such a row may lie."""

from datetime import UTC, datetime, timedelta

from pyspark.sql.types import DataType

_DAY = 86_400_000_000
"""Microseconds; a date stands for any moment of its day."""
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, microseconds."""


def within_times(column: str, kind: DataType, oldest: int, newest: int) -> str:
    """SQL that holds for every row of a column whose time lies within a range; for others it may.

    Args: column: quoted. kind: of the column, a timestamp or a date. oldest, newest: epoch
    microseconds.
    """
    low, high = max(oldest - _DAY, _FIRST), min(newest + _DAY, _LAST)
    return f"{column} >= {_literal(low, kind)} AND {column} <= {_literal(high, kind)}"


def _literal(micros: int, kind: DataType) -> str:
    """A time as a SQL literal of the column's type, so that the comparison reads the file
    statistics."""
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return f"CAST('{time.year:04d}-{time:%m-%d %H:%M:%S.%f}' AS {kind.simpleString()})"
