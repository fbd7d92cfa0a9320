"""Three rules that a sample suggests, each with what in the sample does."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

from .columns import AMOUNT, count_values, filled_share
from .records import Record

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_KIND = re.compile(
    r"status|state|type|kind|level|country|currency|channel|categor|method|code", re.I
)
_SEVERAL, _TIMES, _LONG = 12, 20, 30
"""A column of so many values at most, each there so many times on average and no longer than
this, is one of a set."""


@dataclass(frozen=True)
class RuleProposal:
    """A rule as a pipeline file has it, and why it is there."""

    type: str
    kwargs: dict[str, Any]
    on_fail: str
    reason: str


def propose_rules(
    records: Sequence[Record], types: dict[str, str], keys: tuple[str, ...], most: int = 3
) -> list[RuleProposal]:
    """At most so many rules: one of each kind before a second of one."""
    kinds = [
        _require_values(records, keys or tuple(types)),
        _forbid_negatives(records, types),
        _name_the_values(records, types, keys),
    ]
    rounds = zip_longest(*kinds)
    return list(islice((rule for each in rounds for rule in each if rule), most))


def _require_values(records: Sequence[Record], columns: tuple[str, ...]) -> Iterator[RuleProposal]:
    for column in columns:
        if filled_share(records, column) == 1.0:
            yield RuleProposal(
                "expect_column_values_to_not_be_null",
                {"column": column},
                "quarantine",
                f"every one of {len(records):,} rows has a value",
            )


def _forbid_negatives(records: Sequence[Record], types: dict[str, str]) -> Iterator[RuleProposal]:
    for column, type_ in types.items():
        if not type_.startswith(_NUMBERS) or not AMOUNT.search(column):
            continue
        below = sum(str(value).startswith("-") * n for value, n in _items(records, column))
        said = f"{below:,} of {len(records):,} rows are negative" if below else "none is negative"
        yield RuleProposal(
            "expect_column_values_to_be_between",
            {"column": column, "min_value": 0},
            "warn" if below else "quarantine",
            f"{said}; an amount by its name",
        )


def _name_the_values(
    records: Sequence[Record], types: dict[str, str], keys: tuple[str, ...]
) -> Iterator[RuleProposal]:
    texts = [c for c, type_ in types.items() if type_ == "string" and c not in keys]
    for column in sorted(texts, key=lambda column: not _KIND.search(column)):
        values = sorted(str(value) for value, _ in _items(records, column))
        often = 2 <= len(values) <= _SEVERAL and len(records) >= _TIMES * len(values)
        if often and max(map(len, values)) <= _LONG:
            yield RuleProposal(
                "expect_column_values_to_be_in_set",
                {"column": column, "value_set": values},
                "warn",
                f"{len(values)} values in {len(records):,} rows",
            )


def _items(records: Sequence[Record], column: str) -> list[tuple[Any, int]]:
    return list(count_values(records, column).items())
