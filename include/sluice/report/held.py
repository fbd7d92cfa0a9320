"""What a step keeps in state after a run: rows that came and are in no table yet, or by which
copies are known."""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from .counts import Record
from .units import format_amount, format_bytes, format_count, format_time, format_watermark

_DEDUPLICATION = "dedupe"
"""What the names of Spark's operators begin with that drop copies."""
_JOIN = "symmetricHashJoin"


class HeldInState(Record):
    """What one operator keeps in Spark's state store. `closes_first`, `closes_last`: ends of the
    windows that are open, or when the watermark lets keys go; None where nothing is let go by
    time, or nobody looked."""

    operator: str
    """Spark's name of it: `stateStoreSave` (an aggregation), `symmetricHashJoin`, `dedupe`, ..."""
    number: int = 0
    """Of the operator, as the checkpoint counts them."""
    amount: int
    """By the operator's own count, or that of its store; exact."""
    unit: Literal["group", "row", "key", "timer", "value"]
    """Groups of an aggregation, rows of a join, keys of a deduplication; of a state of the user's
    own keys and timers, or where they are too many to be read, values."""
    mode: str = "append"
    """The query's output mode: in append mode a group is written once, when it is closed."""
    bytes: int | None = None
    """Of the files that the next run loads: the newest snapshot, and what changed since. None where
    nobody could tell."""
    oldest: datetime | None = None
    """First event time, or begin of the first window; None where it has none, or where so much is
    kept that to look for it costs more than a run."""
    grown: int | None = None
    """More than after the run `since`, less where negative; None where no run has noted it."""
    since: str = ""
    closes_first: datetime | None = None
    closes_last: datetime | None = None
    forever: bool = False
    """No watermark ever lets any of it go."""


def tell_held(held: list[HeldInState], watermark_ms: int | None) -> Iterator[str]:
    """A sentence for each operator that keeps something.

    Args: watermark_ms: after the run, epoch milliseconds; 0 or None before there is one.
    """
    now = format_watermark(watermark_ms)
    joins = [kept.number for kept in held if kept.operator == _JOIN]
    for kept in held:
        if kept.amount:
            amount = format_amount(kept.amount, kept.unit)
            verb = "is" if kept.amount == 1 else "are"
            # Spark counts from the top. A join that is bounded in time passes a watermark on that
            # is behind by its range.
            joined = any(number > kept.number for number in joins)
            yield f"{amount} {verb} held in state{_size(kept)}{_until(kept, now, joined)}."


def _size(kept: HeldInState) -> str:
    """How large it is, and how much larger it has become."""
    told = [format_bytes(kept.bytes)] if kept.bytes is not None else []
    if kept.grown is not None:
        change = format_count(abs(kept.grown))
        more = f"{change} {'more' if kept.grown > 0 else 'fewer'}" if kept.grown else "as many"
        told.append(f"{more} {'than' if kept.grown else 'as'} after run {kept.since}")
    return f" ({', '.join(told)})" if told else ""


def _until(kept: HeldInState, now: str, joined: bool) -> str:
    """Since when it is held, and what ends its stay. Args: joined: rows come to it from a join."""
    if kept.forever:
        return ": none of it is ever let go, so it grows as long as new keys come"
    if kept.unit == "row":
        oldest = f", the oldest of {format_time(kept.oldest)}" if kept.oldest else ""
        return f"{oldest}: a row waits for its match until the watermark (now {now}) rules one out"
    if kept.unit == "key" and kept.operator.startswith(_DEDUPLICATION):
        return _until_let_go(kept, now)
    if kept.unit in ("key", "value"):
        return " by the step's own function"
    if kept.unit == "timer":
        return f"{_ends(kept, 'due')}: each fires once the watermark (now {now}) has passed it"
    if kept.mode == "complete":
        return ": in complete mode every group is kept, and written anew with every batch"
    if kept.mode != "append":
        return f": in {kept.mode} mode a group is sent with every batch that changes it"
    ends = _ends(kept, "in windows that end")
    less = ", less the range of time of the join below it," if joined else ""
    return (
        f"{ends}: each is written by the first batch after the watermark (now {now}){less} is past "
        "it"
    )


def _until_let_go(kept: HeldInState, now: str) -> str:
    oldest = f", the oldest of {format_time(kept.oldest)}" if kept.oldest else ""
    let_go = f"each is let go when the watermark (now {now}) is past its time"
    return f"{oldest}: {let_go}{_ends(kept)}"


def _ends(kept: HeldInState, verb: str = "") -> str:
    """`, in windows that end at ...`; empty where nobody knows when."""
    if kept.closes_first is None:
        return ""
    first, last = format_time(kept.closes_first), format_time(kept.closes_last)
    said = f"at {first}" if first == last else f"between {first} and {last}"
    return f", {verb} {said}" if verb else f", {said}"
