"""Which trigger a step runs under, and when its query is stopped."""

import time

from ..spec import (
    AVAILABLE_NOW,
    Interval,
    RunRequest,
    Step,
    Trigger,
    never_ends,
    trigger_kind,
)

_OPTIONS = {
    "available_now": {"availableNow": True},
    "once": {"once": True},
    "default": {"processingTime": "0 seconds"},
}
"""Trigger -> arguments of `DataStreamWriter.trigger`; Spark's default is an interval of nothing."""
_INTERVALS = {"processing_time": "processingTime", "continuous": "continuous"}


def choose_trigger(step: Step, request: RunRequest) -> Trigger:
    """The step's trigger. A backfill always drains; a trial source is read under `default`, because it knows no availableNow."""
    if request.window is not None:
        return AVAILABLE_NOW
    return (
        "default"
        if step.source.why_trial and step.trigger == AVAILABLE_NOW
        else step.trigger
    )


def trigger_options(trigger: Trigger) -> dict:
    """Arguments of `DataStreamWriter.trigger`."""
    if isinstance(trigger, Interval):
        return {
            _INTERVALS[
                trigger_kind(trigger)
            ]: f"{int(trigger.length.total_seconds() * 1000)} milliseconds"
        }
    return _OPTIONS[trigger]


def choose_end(trigger: Trigger, request: RunRequest, deadline: float) -> float | None:
    """When a query that starts now is stopped as its normal end, by `time.monotonic()`; None for one that ends by itself.

    Args: deadline: of the run.
    """
    if request.dev_seconds is not None:
        return min(deadline, time.monotonic() + request.dev_seconds)
    return deadline if never_ends(trigger) else None
