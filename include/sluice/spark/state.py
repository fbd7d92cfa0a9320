"""What Spark's state store holds of a checkpoint, read after a query has ended.

Asked of the store itself: the operators' own count of their rows is switched off, because keeping
it costs a lookup with every write.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

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
    names = operators.select("operatorId", "operatorName").distinct().orderBy("operatorId")
    kept = []
    for number, name in names.collect():
        state = session.read.format("statestore").option("operatorId", number)
        if name in _AGGREGATES:
            kept.append(_count_groups(name, state.load(checkpoint)))
        elif name == _JOIN:
            sides = (state.option("joinSide", side).load(checkpoint) for side in ("left", "right"))
            kept.append(Kept(name, sum(side.count() for side in sides), "row"))
    return kept


def _count_groups(name: str, state: DataFrame) -> Kept:
    """The groups of an aggregation, and when their windows end."""
    window = _find_window(state)
    if window is None:
        return Kept(name, state.count(), "group")
    end = F.unix_millis(F.col(f"key.`{window}`.end"))
    ((amount, first, last),) = state.select(F.count("*"), F.min(end), F.max(end)).collect()
    return Kept(name, amount, "group", _moment(first), _moment(last))


def _find_window(state: DataFrame) -> str | None:
    """The field of the key that is a window."""
    key = state.schema["key"].dataType
    for field in key.fields if isinstance(key, StructType) else ():
        if isinstance(field.dataType, StructType) and field.dataType.names == ["start", "end"]:
            return field.name
    return None


def _moment(millis: int | None) -> datetime | None:
    return None if millis is None else datetime.fromtimestamp(millis / 1000, UTC)
