"""What a state of the user's own holds: keys and timers, read from its store."""

import json
from collections.abc import Callable, Iterator
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .kept_state import Kept, moment

_PROCESSOR = "transformWithState"
_FUNCTION = "applyInPandasWithState"


def is_custom(operator: str) -> bool:
    """True for an operator whose state is the user's own. Args: operator: as Spark names it."""
    return operator.startswith((_PROCESSOR, _FUNCTION))


def read_custom_state(session: SparkSession, checkpoint: str, kept: Kept) -> list[Kept]:
    """The keys and the timers of an operator after its last batch; what is told of any other state
    comes back as it is. Args: checkpoint: Spark's own folder.
    """
    if kept.operator.startswith(_FUNCTION):
        return list(_count_timeouts(kept, _read(session, checkpoint, kept.number)))
    if not kept.operator.startswith(_PROCESSOR):
        return [kept]
    operators = session.read.format("state-metadata").load(checkpoint)
    told = operators.where(F.col("operatorId") == kept.number).select("operatorProperties").first()
    properties = json.loads(told[0]) if told is not None else {}
    return list(_count_keys(kept, properties, partial(_read, session, checkpoint, kept.number)))


def _read(session: SparkSession, checkpoint: str, operator: int, **options: str) -> DataFrame:
    state = session.read.format("statestore").option("operatorId", operator)
    return state.options(**options).load(checkpoint)


def _count_keys(kept: Kept, told: dict, read: Callable[..., DataFrame]) -> Iterator[Kept]:
    """The keys of which a state variable holds something, and the timers that wait."""
    own = (v["stateName"] for v in told["stateVariables"] if v["stateVariableType"] != "TimerState")
    keys = [read(stateVarName=variable).select("key") for variable in own]
    if keys:
        amount = reduce(DataFrame.union, keys).distinct().count()
        yield Kept(kept.operator, amount, "key", kept.number)
    if told["timeMode"] == "EventTime":
        due = F.col("expiration_timestamp_ms")
        timers = read(readRegisteredTimers="true").select(F.count("*"), F.min(due), F.max(due))
        yield _tell_timers(kept, *timers.collect()[0])


def _count_timeouts(kept: Kept, state: DataFrame) -> Iterator[Kept]:
    """The keys of an `applyInPandasWithState`, and those of them that have a timeout."""
    due = F.nullif(F.col("value.timeoutTimestamp"), F.lit(-1))
    asked = state.select(F.count("*"), F.count(due), F.min(due), F.max(due))
    ((keys, amount, first, last),) = asked.collect()
    yield Kept(kept.operator, keys, "key", kept.number)
    yield _tell_timers(kept, amount, first, last)


def _tell_timers(kept: Kept, amount: int, first: int | None, last: int | None) -> Kept:
    return Kept(
        kept.operator,
        amount,
        "timer",
        kept.number,
        closes_first=moment(first),
        closes_last=moment(last),
    )
