"""When rows happened, which of them are copies, and how far apart copies may lie."""

from datetime import timedelta
from typing import Literal

from .model import Spec
from .quantities import Duration, format_duration


def split_order(terms: list[str]) -> list[tuple[str, bool]]:
    """Terms of an `order_by` as columns, and whether the greatest comes first."""
    return [(term.split()[0], term.lower().endswith(" desc")) for term in terms]


class EventTime(Spec):
    """The column that says when a row happened."""

    column: str
    max_future: Duration = timedelta(days=1)
    """A time farther ahead of the clock is quarantined before it can move the watermark."""


class Dedup(Spec):
    """One row per key, over every run there ever was."""

    keys: list[str] | Literal["*"]
    """Columns of the key; `*` compares the whole row, and NULL equals NULL there."""
    within: Duration | Literal["forever"]
    """Copies lie at most this far apart in event time: the watermark's delay, and how much
    of the table is compared."""
    order_by: list[str] = []
    """Where rows share a key and differ: the first by these columns (`amount` or `amount desc`)
    wins, also over one that is in the table; content breaks ties."""
    first_arrives_first: bool = False
    """A promise about `order_by`: the winner of a key never comes after a row it beats. Rows of the
    table are then never replaced, which costs less."""
    late: Literal["merge", "keep", "drop"] = "merge"
    """Rows behind the watermark: written like all others, to the late table, or counted only."""
    memory: Literal["table", "state"] = "table"
    """Where keys are remembered: in the target itself, or in Spark's state store."""

    @property
    def horizon(self) -> str:
        """`within` as a person writes it."""
        return self.within if isinstance(self.within, str) else format_duration(self.within)

    @property
    def order_columns(self) -> list[str]:
        """The columns of `order_by`."""
        return [name for name, _ in split_order(self.order_by)]

    @property
    def replaces(self) -> bool:
        """True where a row of the table may give way to one that comes later."""
        return bool(self.order_by) and not self.first_arrives_first
