"""What one operator of a query keeps in its state store."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

Unit = Literal["group", "row", "key", "timer", "value"]


@dataclass(frozen=True)
class Kept:
    """What one operator keeps.

    `number`: of the operator, as the checkpoint counts them. `unit`: groups of an aggregation, rows
    of a join, keys of a deduplication; keys and timers of a state of the user's own, or values.
    `oldest`: first event time of it. `closes_first`, `closes_last`: ends of its windows, when the
    watermark lets its keys go, or when timers are due. All UTC, and None where it has no time, or
    nobody looked. `forever`: no watermark lets any of it go. `delay_ms`: of the watermark of the
    rows that come to it.
    """

    operator: str
    amount: int
    unit: Unit
    number: int = 0
    oldest: datetime | None = None
    closes_first: datetime | None = None
    closes_last: datetime | None = None
    forever: bool = False
    delay_ms: int | None = None


def moment(millis: int | None) -> datetime | None:
    """Epoch milliseconds as a moment, UTC."""
    return None if millis is None else datetime.fromtimestamp(millis / 1000, UTC)
