"""Samples of the rows that broke a rule or were refused: of each the smallest and the largest text,
which no cut of the backlog changes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..quality.rules import RowRule
from ..spark.columns import DEFECT, RAW, REASONS, col
from ..spec import rule_columns
from .verdicts import is_refused, is_unexpected

_LENGTH = 80


@dataclass(frozen=True)
class Sought:
    """Rows that are counted, and of which samples are shown. `text`: None where values are hidden.
    `refused`: each of them is refused."""

    number: int
    condition: Column
    text: Column | None
    refused: bool

    @property
    def columns(self) -> list[Column]:
        """The smallest and the largest text."""
        if self.text is None:
            return []
        shown = F.when(self.condition, F.substring(self.text, 1, _LENGTH))
        return [F.min(shown).alias(f"lo{self.number}"), F.max(shown).alias(f"hi{self.number}")]

    def read(self, seen: Mapping[str, Any]) -> list[str]:
        """The samples among what was seen; none of columns that are hidden."""
        lowest, highest = (seen.get(f"{end}{self.number}") for end in ("lo", "hi"))
        return [] if lowest is None or highest is None else sorted({lowest, highest})


def seek(
    rules: Iterable[RowRule], reasons: Mapping[str, Sequence[str]], hidden: frozenset[str]
) -> list[Sought]:
    """The rows that broke each rule, then those refused for each other reason. Args: reasons: with
    the columns that tell. hidden: columns whose values are never shown."""
    told = [
        (
            is_unexpected(n),
            _show_record(hidden) if r.input else _show(rule_columns(r.spec), hidden),
            r.spec.on_fail == "quarantine",
        )
        for n, r in enumerate(rules)
    ]
    for reason, columns in reasons.items():
        refused = is_refused() & F.array_contains(REASONS, reason)
        text = _show(columns, hidden) if columns else _show_record(hidden)
        told.append((refused, text, True))
    return [Sought(number, *one) for number, one in enumerate(told)]


def look_for_samples(
    frame: DataFrame, refused: DataFrame, broken: Iterable[Sought]
) -> dict[int, list[str]]:
    """The samples of these, by their numbers, among the rows of a batch and those refused of it."""
    found: dict[int, list[str]] = {}
    for rows, among in ((refused, True), (frame, False)):
        some = [one for one in broken if one.refused is among and one.columns]
        if some:
            rows = rows.where(reduce(Column.__or__, [one.condition for one in some]))
            seen = rows.agg(*(column for one in some for column in one.columns)).collect()[0]
            found |= {one.number: one.read(seen.asDict()) for one in some}
    return found


def _show(columns: Iterable[str], hidden: frozenset[str]) -> Column | None:
    """The values of these columns; None where one of them is hidden."""
    if hidden & set(columns):
        return None
    return F.concat_ws(", ", *[F.coalesce(col(c).cast("string"), F.lit("NULL")) for c in columns])


def _show_record(hidden: frozenset[str]) -> Column:
    """What is wrong with a record, and the record, unless values of some columns are hidden."""
    if hidden:  # nobody knows where in a broken record they are
        return F.col(DEFECT)
    return F.concat_ws(": ", DEFECT, F.make_valid_utf8(F.col(RAW).cast("string")))
