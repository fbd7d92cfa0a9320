"""When the batches of a step start."""

from datetime import timedelta
from typing import Final, Literal

from pydantic import model_validator

from .model import Spec
from .quantities import Duration, format_duration

UNENDING = ("default", "processing_time", "continuous")
"""Triggers under which a query does not end by itself."""

_NO_END = "the query does not end by itself: the run goes on until its budget is spent, idle or not"
_LOST = {
    "once": "one batch takes the whole backlog, whatever bounds the source has (after a crash, "
    "only what that run had planned)",
    "default": _NO_END,
    "processing_time": _NO_END,
    "continuous": "no batches, so no deduplication, no rules, no quarantine and no counts (all "
    "are zero): rows go from the source to the sink as they come, at least once, and records that "
    "cannot be parsed are left out",
}
"""Kind of a trigger -> what it gives up."""


class Interval(Spec):
    """A trigger with a time between its batches."""

    processing_time: Duration | None = None
    continuous: Duration | None = None

    @model_validator(mode="after")
    def _check_one(self) -> "Interval":
        if (self.processing_time is None) == (self.continuous is None):
            raise ValueError("write either `processing_time` or `continuous`")
        return self

    @property
    def length(self) -> timedelta:
        """The time between two batches (or two notes of the position)."""
        length = self.processing_time if self.processing_time is not None else self.continuous
        assert length is not None  # one of the two is there
        return length


Trigger = Literal["available_now", "once", "default"] | Interval
AVAILABLE_NOW: Final = "available_now"


def trigger_kind(trigger: Trigger) -> str:
    """available_now, once, default, processing_time or continuous."""
    if isinstance(trigger, str):
        return trigger
    return "processing_time" if trigger.processing_time is not None else "continuous"


def never_ends(trigger: Trigger) -> bool:
    """True where a query goes on until somebody stops it."""
    return trigger_kind(trigger) in UNENDING


def describe_trigger(trigger: Trigger) -> str | None:
    """What a trigger other than `available_now` gives up; None for `available_now`."""
    kind = trigger_kind(trigger)
    if kind == AVAILABLE_NOW:
        return None
    length = f" every {format_duration(trigger.length)}" if isinstance(trigger, Interval) else ""
    return (
        f"trigger {kind}{length}: {_LOST[kind]}; `available_now` goes on from the same checkpoint"
    )
