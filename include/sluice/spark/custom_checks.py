"""What a query with a state of the user's own may not ask for in runs that stop."""

from collections.abc import Iterator

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame

from ..errors import SpecError
from .custom_state import FUNCTION, Declared, find_custom_state
from .plans import kind, walk

_CLOCK = (
    "go by the clock: what comes of the rows would depend on when a run happens to look, and a run "
    "would not end, because Spark goes on with batches without rows"
)
_IN_EVENT_TIME = (
    'Write timeMode="EventTime" and a watermark: a timer fires in the run that brings rows so much '
    "later than it"
)


def check_custom_state(frame: DataFrame, mode: str, declared: Declared, where: str) -> None:
    """Raise SpecError for timers and times to live that go by the clock, for event time without a
    watermark, and for an output mode that is not the step's.

    Args:
        mode: the step's output mode.
        where: the step, for the message.
    """
    for node in find_custom_state(frame):
        for why, value, do in _find_faults(node, mode):
            raise SpecError(why, where=where, value=value, do=do)
    for variable in declared.variables:
        if variable.ttl_ms is not None:
            raise SpecError(
                f"times to live {_CLOCK}",
                where=f"{where}: state variable {variable.name}",
                value=f"ttlDurationMs={variable.ttl_ms}",
                do="Leave it out, register an event-time timer for the row's time plus the "
                "duration, and clear the variable in `handleExpiredTimer`",
            )


def _find_faults(node: JavaObject, mode: str) -> Iterator[tuple[str, str, str]]:
    """Why an operator is refused, what it says, and what to write."""
    if kind(node) == FUNCTION:
        time = node.timeout().toString()
        clock, event, do = (
            "ProcessingTimeTimeout",
            "EventTimeTimeout",
            (
                "Write GroupStateTimeout.EventTimeTimeout, a watermark and "
                "`state.setTimeoutTimestamp(...)`: it is over in the run that brings later rows"
            ),
        )
    else:
        time, clock, event, do = _time_mode(node), "ProcessingTime", "EventTime", _IN_EVENT_TIME
    if time == clock:
        yield f"timers in processing time {_CLOCK}", time, do
    if time == event and not _has_watermark(node):
        yield (
            "event time has no meaning without a watermark, and no timer would ever fire",
            time,
            "Write `watermark` under the input, or `rows.withWatermark(...)` below `groupBy`",
        )
    own = node.outputMode().toString().lower()
    if own != mode:
        yield (
            f"the function says outputMode {own}, and the step's rows go out in mode {mode}",
            own,
            f'Write outputMode="{mode}" in the function, or `mode: {own}` at the sink',
        )


def _time_mode(node: JavaObject) -> str:
    return str(node.timeMode().toString())


def _has_watermark(node: JavaObject) -> bool:
    return any(kind(below) == "EventTimeWatermark" for below in walk(node))
