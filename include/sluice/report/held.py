"""What a step keeps in state after a run: rows that came, and are in no table yet."""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from .counts import Record
from .units import format_amount, format_time, format_watermark


class HeldInState(Record):
    """What one operator of a transform keeps in Spark's state store. `closes_first`, `closes_last`:
    ends of the windows that are open, None where its groups are no windows."""

    operator: str
    """Spark's name of it: `stateStoreSave` (an aggregation), `symmetricHashJoin`, ..."""
    amount: int
    unit: Literal["group", "row"]
    """Groups of an aggregation, rows of a join."""
    mode: str = "append"
    """The query's output mode: in append mode a group is written once, when it is closed."""
    closes_first: datetime | None = None
    closes_last: datetime | None = None


def tell_held(held: list[HeldInState], watermark_ms: int | None) -> Iterator[str]:
    """A sentence for each operator that keeps something.

    Args: watermark_ms: after the run, epoch milliseconds; 0 or None before there is one.
    """
    now = format_watermark(watermark_ms)
    for kept in held:
        if kept.amount:
            amount = format_amount(kept.amount, kept.unit)
            verb = "is" if kept.amount == 1 else "are"
            yield f"{amount} {verb} held in state{_until(kept, now)}."


def _until(kept: HeldInState, now: str) -> str:
    """What ends the stay of what is held."""
    if kept.unit == "row":
        return f": a row waits for its match until the watermark (now {now}) rules one out"
    if kept.mode == "complete":
        return ": in complete mode every group is kept, and written anew with every batch"
    if kept.mode != "append":
        return f": in {kept.mode} mode a group is sent with every batch that changes it"
    ends = ""
    if kept.closes_first is not None:
        ends = f", in windows that end at {format_time(kept.closes_first)}"
        if kept.closes_last != kept.closes_first:
            ends = (
                f", in windows that end between {format_time(kept.closes_first)} and "
                f"{format_time(kept.closes_last)}"
            )
    return f"{ends}: each is written by the first batch after the watermark (now {now}) is past it"
