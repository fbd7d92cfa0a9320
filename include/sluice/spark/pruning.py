"""Which part of a table can hold rows of some groups, said so that Delta compares it with the
statistics of files: ranges of the column that a group follows from."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from .columns import col, quote
from .day_lists import Days, read_days
from .windows import read_window

FEW = 100
"""Groups that are told one by one; of more only the smallest and the largest are."""
WHOLE_NUMBERS = (ByteType, ShortType, IntegerType, LongType)
_PLAIN = (*WHOLE_NUMBERS, StringType, DecimalType, DateType, TimestampType, TimestampNTZType)
_TIMES = (TimestampType, TimestampNTZType)
_NO_CHARACTER = "\ufffd"
"""What text shows in place of bytes that are no UTF-8, which sort elsewhere."""
_COLUMN = re.compile(r"`?(\w+)`?")
_DATE = re.compile(r"(?:to_)?date\(\s*`?(\w+)`?\s*\)|cast\(\s*`?(\w+)`?\s+as\s+date\s*\)", re.I)
_TRUNC = re.compile(
    r"date_trunc\(\s*'(year|quarter|month|week|day|hour|minute|second)'\s*,\s*`?(\w+)`?\s*\)", re.I
)
_DATE_OF_TRUNC = re.compile(
    r"(?:to_)?date\(\s*(date_trunc\(\s*'(?:year|quarter|month|week|day)'.*\))\s*\)", re.I
)
_TRUNC_DATE = re.compile(
    r"trunc\(\s*(?:date\(\s*`?(\w+)`?\s*\)|`?(\w+)`?)\s*,\s*'(year|quarter|month|week)'\s*\)", re.I
)


@dataclass(frozen=True)
class Spans:
    """What groups hold. `kinds`: of their columns. `values`: of each column, in order: all of
    them, or the smallest and the largest where `all_told` is false; as SQL literals. `nulls`:
    columns that are NULL in one of them. `count`: of groups."""

    kinds: Mapping[str, DataType]
    values: Mapping[str, Sequence[str]]
    nulls: frozenset[str]
    count: int
    all_told: bool

    @classmethod
    def of(cls, groups: DataFrame) -> "Spans":
        """What some groups hold, one row each."""
        kinds = {field.name: field.dataType for field in groups.schema.fields}
        known = [name for name, kind in kinds.items() if isinstance(kind, _PLAIN)]
        shown = [_raw(col(name), kinds[name]).alias(name) for name in known]
        nothing = [col(name).isNull().alias(f"no {name}") for name in kinds]
        rows = groups.select(*shown, *nothing).limit(FEW + 1).collect()
        if len(rows) <= FEW:
            told = {n: sorted({row[n] for row in rows} - {None}) for n in known}
            nulls = {n for n in kinds if any(row[f"no {n}"] for row in rows)}
            return cls(kinds, _write(told, kinds), frozenset(nulls), len(rows), True)
        return cls.ends(groups, known)

    @classmethod
    def ends(cls, groups: DataFrame, known: Sequence[str]) -> "Spans":
        """How many groups there are, and the ends of some columns. In one pass, which also takes
        rows: then they are the rows' own."""
        kinds = {field.name: field.dataType for field in groups.schema.fields}
        measures = [F.count(F.lit(1)), *[F.count_if(col(name).isNull()) for name in kinds]]
        ends = [_raw(end(col(name)), kinds[name]) for name in known for end in (F.min, F.max)]
        count, *found = groups.agg(*measures, *ends).collect()[0]
        nulls = {name for name, rows in zip(kinds, found, strict=False) if rows}
        pairs = found[len(kinds) :]
        ranges = {n: pairs[2 * i : 2 * i + 2] for i, n in enumerate(known)}
        told = {n: [v for v in pair if v is not None] for n, pair in ranges.items()}
        return cls(kinds, _write(told, kinds), frozenset(nulls), count, False)

    def of_columns(self, named: Mapping[str, str], schema: StructType, alias: str = "") -> str:
        """SQL that holds for every row of these groups, and reads file statistics; TRUE where
        nothing is known.

        Args:
            named: column of a group -> SQL that it follows from.
            schema: of the rows. alias: of their table.
        """
        kinds = {field.name.lower(): field.dataType for field in schema.fields}
        terms = (self._term(name, said, kinds, alias) for name, said in named.items())
        return " AND ".join(f"({term})" for term in terms if term) or "TRUE"

    def of_list(self, name: str, said: str) -> str:
        """SQL that holds where a list has the value of one of these groups; TRUE where they are not
        told one by one. Args: said: SQL of the list."""
        if not self.all_told or name not in self.values:
            return "TRUE"
        tests = [f"one IN ({', '.join(self.values[name])})"] if self.values[name] else []
        tests += ["one IS NULL"] if name in self.nulls else []
        return f"exists({said}, one -> {' OR '.join(tests) or 'FALSE'})"

    def _term(self, name: str, said: str, kinds: Mapping[str, DataType], alias: str) -> str:
        listed, found = read_days(said), _read(said)
        if listed is not None and name in self.values:
            return self._in_days(name, listed, kinds, alias)
        if found is None or name not in self.values:
            return ""
        column, unit = found
        kind, ours = kinds.get(column.lower()), self.kinds[name]
        if unit and not isinstance(kind, (*_TIMES, DateType)):
            return ""
        if not unit and kind != ours:
            return ""
        place = _place(column, alias)
        ranges = [self._range(place, low, high, unit) for low, high in self._ends(name)]
        ranges += [f"{place} IS NULL"] if name in self.nulls else []
        return " OR ".join(ranges) or "FALSE"

    def _in_days(self, name: str, listed: Days, kinds: Mapping[str, DataType], alias: str) -> str:
        """Where a row belongs to the days from some before its own to some behind it."""
        kind = kinds.get(listed.column.lower())
        if not isinstance(kind, (*_TIMES, DateType)) or not isinstance(self.kinds[name], DateType):
            return ""
        place = _place(listed.column, alias)
        return (
            " OR ".join(
                f"({place} >= {low} - INTERVAL {listed.last} DAY "
                f"AND {place} < {high} - INTERVAL {listed.first - 1} DAY)"
                for low, high in self._ends(name)
            )
            or "FALSE"
        )

    def _ends(self, name: str) -> list[tuple[str, str]]:
        values = self.values[name]
        if self.all_told:
            return [(value, value) for value in values]
        return [(values[0], values[1])] if values else []

    @staticmethod
    def _range(place: str, low: str, high: str, unit: str) -> str:
        if not unit:
            return f"{place} = {low}" if low == high else f"{place} BETWEEN {low} AND {high}"
        return f"({place} >= {low} AND {place} < {high} + INTERVAL {unit})"


def _place(column: str, alias: str) -> str:
    return f"{alias}.{quote(column)}" if alias else quote(column)


def length_of(said: str) -> str:
    """How long a range of a column one group of these takes, as SQL's INTERVAL has it; empty where
    it takes one value, or nobody knows."""
    if read_days(said) is not None:
        return "1 DAY"
    found = _read(said)
    return found[1] if found is not None else ""


def _read(said: str) -> tuple[str, str] | None:
    """The column that a group follows from, and the length of the range of it that one group
    takes (empty for the column itself); None for SQL of another shape."""
    text = said.strip()
    if (window := read_window(text)) is not None:
        return window
    if found := _COLUMN.fullmatch(text):
        return found[1], ""
    if found := _DATE.fullmatch(text):
        return found[1] or found[2], "1 DAY"
    if found := _DATE_OF_TRUNC.fullmatch(text):
        return _read(found[1])
    if found := _TRUNC.fullmatch(text):
        return found[2], _length(found[1])
    if found := _TRUNC_DATE.fullmatch(text):
        return found[1] or found[2], _length(found[3])
    return None


def _length(unit: str) -> str:
    return "3 MONTH" if unit.upper() == "QUARTER" else f"1 {unit.upper()}"


def _raw(value: Column, kind: DataType) -> Column:
    """A value as Python holds it whatever the time zone of either."""
    if isinstance(kind, TimestampType):
        return F.unix_micros(value)
    return value if isinstance(kind, WHOLE_NUMBERS) else value.cast("string")


def _write(values: Mapping[str, list], kinds: Mapping[str, DataType]) -> dict[str, list[str]]:
    """Values as SQL literals; none of a column that has one which Python cannot hold as it is."""
    return {
        name: [_literal(one, kinds[name]) for one in some]
        for name, some in values.items()
        if not any(isinstance(one, str) and _NO_CHARACTER in one for one in some)
    }


def _literal(value: object, kind: DataType) -> str:
    if isinstance(kind, TimestampType):
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(str(value)))
        return f"TIMESTAMP '{time.year:04d}-{time:%m-%d %H:%M:%S.%f}+00:00'"
    if isinstance(kind, WHOLE_NUMBERS):
        return f"{value}"
    text = str(value).replace("\\", "\\\\").replace("'", "\\'")
    text = text.replace("$", "\\u0024")  # Spark puts its settings into SQL, where they are named
    return (
        f"'{text}'" if isinstance(kind, StringType) else f"CAST('{text}' AS {kind.simpleString()})"
    )
