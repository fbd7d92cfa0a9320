"""A trigger as Spark is told it."""

from ..spec import Interval, Trigger, trigger_kind

_OPTIONS: dict[str, dict[str, bool | str]] = {
    "available_now": {"availableNow": True},
    "once": {"once": True},
    "default": {"processingTime": "0 seconds"},
}
"""Trigger -> arguments of `DataStreamWriter.trigger`; Spark's default is an interval of nothing."""
_INTERVALS = {"processing_time": "processingTime", "continuous": "continuous"}


def trigger_options(trigger: Trigger) -> dict:
    """Arguments of `DataStreamWriter.trigger`."""
    if isinstance(trigger, Interval):
        length = f"{int(trigger.length.total_seconds() * 1000)} milliseconds"
        return {_INTERVALS[trigger_kind(trigger)]: length}
    return _OPTIONS[trigger]
