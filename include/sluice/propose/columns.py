"""Which columns tell rows apart, and which says when they happened."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from .records import Record

_KEY_NAME = re.compile(
    r"(^|.*[_\- ])(id|uuid|guid|key|nr|no|number|nummer)|.*(Id|ID|Uuid|UUID|Key|Nr|No|Number)",
)
AMOUNT = re.compile(
    r"amount|price|quant|total|cost|(?<!ac)count|size|duration|betrag|preis|menge|seconds|bytes",
    re.I,
)
_TIME_NAMES = ("event_time", "eventtime", "timestamp", "time", "ts", "at", "date", "datum")
_OTHER_TIMES = re.compile(r"updat|modif|expir|birth|valid|deliver|due|deleted|loaded|ingest", re.I)
_NO_KEY = re.compile("double|float|decimal|timestamp|date|boolean|binary|map|array|struct")
_PERSONAL = re.compile(r"e_?mail|phone|iban|ssn|passw|passport|birth|(first|last|sur)_?name", re.I)
_ENOUGH = 100
"""In fewer rows a column that is not named like a key tells them apart by chance."""
_LONG_TEXT = 64
"""Characters; what is longer on average is text that somebody wrote, and no key."""


@dataclass(frozen=True)
class Choice:
    """One or more columns, and why they."""

    columns: tuple[str, ...]
    reason: str


def is_empty(value: object) -> bool:
    """True for NULL and for a cell of CSV without text."""
    return value is None or value == ""


def find_personal(types: dict[str, str]) -> list[str]:
    """Columns that are personal by their names, whose values reports shall not show."""
    return [column for column in types if _PERSONAL.search(column)]


def filled_share(records: Sequence[Record], column: str) -> float:
    """The part of rows that have a value there."""
    return sum(not is_empty(r.get(column)) for r in records) / max(len(records), 1)


def choose_keys(records: Sequence[Record], types: dict[str, str]) -> Choice | None:
    """The column, or else the two columns, whose values tell rows apart: rows that share them are
    copies of each other. None where there are none."""
    scalars = [c for c, t in types.items() if _may_be_key(records, c, t)]
    if len(records) < _ENOUGH:
        scalars = [column for column in scalars if _KEY_NAME.fullmatch(column)]
    scalars.sort(key=lambda column: not _KEY_NAME.fullmatch(column))
    whole = [json.dumps(record, sort_keys=True, default=str) for record in records]
    for columns in [(c,) for c in scalars] + list(combinations(scalars[:6], 2)):
        copies = _count_copies(records, columns, whole)
        if copies is not None:
            return Choice(columns, _say_unique(columns, len(records), copies))
    return None


def _may_be_key(records: Sequence[Record], column: str, type_: str) -> bool:
    if _NO_KEY.match(type_) or AMOUNT.search(column) or not records:
        return False
    if filled_share(records, column) < 0.99:
        return False
    return sum(len(str(r.get(column))) for r in records) <= _LONG_TEXT * len(records)


def _count_copies(
    records: Sequence[Record], columns: tuple[str, ...], whole: list[str]
) -> int | None:
    """How many rows repeat an earlier one whole; None where rows share the columns and differ, of
    which a key would lose one, or where most rows repeat."""
    held: dict[tuple[str, ...], str] = {}
    for record, text in zip(records, whole, strict=True):
        if held.setdefault(tuple(str(record.get(column)) for column in columns), text) != text:
            return None
    return len(records) - len(held) if len(held) * 2 >= len(records) else None


def _say_unique(columns: tuple[str, ...], rows: int, copies: int) -> str:
    copy = f", but for {copies:,} that repeat another word for word" if copies else ""
    return f"no two of {rows:,} rows share {' and '.join(columns)}{copy}"


def find_versions(records: Sequence[Record], types: dict[str, str]) -> tuple[str, int] | None:
    """The first column that is named like a key though rows that share it differ, and the number of
    its values of which that is so: versions of one thing, perhaps."""
    for column in (c for c in types if _KEY_NAME.fullmatch(c)):
        if not _may_be_key(records, column, types[column]):
            continue
        held: dict[str, set[str]] = defaultdict(set)
        for record in records:
            held[str(record.get(column))].add(json.dumps(record, sort_keys=True, default=str))
        return column, sum(len(texts) > 1 for texts in held.values())
    return None


def choose_time(
    records: Sequence[Record], types: dict[str, str], names: Sequence[str]
) -> Choice | None:
    """The column among `names`, which hold times, that says when a row happened: nearly always
    there, named like it, first of its kind."""
    there = [c for c in names if filled_share(records, c) >= 0.95] if records else list(names)
    if not there:
        return None
    best = min(there, key=lambda column: (_rank_time(column, types[column]), there.index(column)))
    others = [c for c in there if c != best]
    reason = f"a time in {filled_share(records, best):.0%} of rows" if records else "a time"
    return Choice((best,), f"{reason}; {', '.join(others)} would do as well" if others else reason)


def _rank_time(column: str, type_: str) -> int:
    if _OTHER_TIMES.search(column):
        return 3
    words = re.split(r"[_\- ]", re.sub(r"([a-z])([A-Z])", r"\1_\2", column).lower())
    named = column.lower() in _TIME_NAMES or words[-1] in _TIME_NAMES
    return (0 if named else 1) + (type_ == "date")


def count_values(records: Sequence[Record], column: str) -> Counter:
    """How often each value of a column is there; those without one left out."""
    values = (record.get(column) for record in records)
    return Counter(v for v in values if not is_empty(v) and not isinstance(v, dict | list))
