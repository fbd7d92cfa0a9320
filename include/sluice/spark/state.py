"""What Spark's state store holds of a checkpoint, read after a query has ended.

Asked of the store itself: the operators' own count of their rows is switched off, because keeping
it costs a lookup with every write.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial, reduce
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from .columns import quote

_AGGREGATES = {"stateStoreSave", "sessionWindowStateStoreSaveExec"}
_JOIN = "symmetricHashJoin"
_PROCESSOR = "transformWithState"
_FUNCTION = "applyInPandasWithState"


@dataclass(frozen=True)
class Kept:
    """What one operator keeps: groups, rows, keys or timers; and the first and last end of their
    windows, or expiry of the timers, UTC; None where they have none."""

    operator: str
    amount: int
    unit: Literal["group", "row", "key", "timer"]
    closes_first: datetime | None = None
    closes_last: datetime | None = None


def read_state(session: SparkSession, checkpoint: str) -> list[Kept]:
    """What the aggregations and joins of a query keep after its last batch.

    Args: checkpoint: Spark's own folder. Raises what Spark raises where it cannot be read.
    """
    operators = session.read.format("state-metadata").load(checkpoint)
    told = operators.select("operatorId", "operatorName", "operatorProperties").distinct()
    kept = []
    for number, name, properties in told.orderBy("operatorId").collect():
        state = session.read.format("statestore").option("operatorId", number)
        if name in _AGGREGATES:
            kept.append(_count_groups(name, state.load(checkpoint)))
        elif name == _JOIN:
            sides = (state.option("joinSide", side).load(checkpoint) for side in ("left", "right"))
            kept.append(Kept(name, sum(side.count() for side in sides), "row"))
        elif name.startswith(_PROCESSOR):
            kept += _count_keys(
                name, json.loads(properties), partial(_read, session, checkpoint, number)
            )
        elif name == _FUNCTION:
            kept += _count_timeouts(name, state.load(checkpoint))
    return kept


def _read(session: SparkSession, checkpoint: str, operator: int, **options: str) -> DataFrame:
    state = session.read.format("statestore").option("operatorId", operator)
    return state.options(**options).load(checkpoint)


def _count_keys(name: str, told: dict, read: Callable[..., DataFrame]) -> Iterator[Kept]:
    """The keys of which a state variable holds something, and the timers that wait."""
    own = (v["stateName"] for v in told["stateVariables"] if v["stateVariableType"] != "TimerState")
    keys = [read(stateVarName=variable).select("key") for variable in own]
    if keys:
        yield Kept(name, reduce(DataFrame.union, keys).distinct().count(), "key")
    if told["timeMode"] == "EventTime":
        due = F.col("expiration_timestamp_ms")
        timers = read(readRegisteredTimers="true").select(F.count("*"), F.min(due), F.max(due))
        ((amount, first, last),) = timers.collect()
        yield Kept(name, amount, "timer", _moment(first), _moment(last))


def _count_timeouts(name: str, state: DataFrame) -> Iterator[Kept]:
    """The keys of an `applyInPandasWithState`, and those of them that have a timeout."""
    due = F.nullif(F.col("value.timeoutTimestamp"), F.lit(-1))
    asked = state.select(F.count("*"), F.count(due), F.min(due), F.max(due))
    ((keys, amount, first, last),) = asked.collect()
    yield Kept(name, keys, "key")
    yield Kept(name, amount, "timer", _moment(first), _moment(last))


def _count_groups(name: str, state: DataFrame) -> Kept:
    """The groups of an aggregation, and when their windows end."""
    window = _find_window(state)
    if window is None:
        return Kept(name, state.count(), "group")
    end = F.unix_millis(F.col(f"{window}.end"))
    ((amount, first, last),) = state.select(F.count("*"), F.min(end), F.max(end)).collect()
    return Kept(name, amount, "group", _moment(first), _moment(last))


def _find_window(state: DataFrame) -> str | None:
    """Where the window of a group lies: in its key, of a session in its value, because its end
    moves."""
    for part in ("key", "value"):
        held = state.schema[part].dataType
        for field in held.fields if isinstance(held, StructType) else ():
            if isinstance(field.dataType, StructType) and field.dataType.names == ["start", "end"]:
                return f"{part}.{quote(field.name)}"
    return None


def _moment(millis: int | None) -> datetime | None:
    return None if millis is None else datetime.fromtimestamp(millis / 1000, UTC)
