"""Copies that Spark's state store remembers: which of its two operators drops them."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType, TimestampType

from ..checkpoint import state_operators
from ..spark.columns import TIME
from ..spec import Step
from ..storage import spark_folder
from .classify import judge
from .plan import Rules
from .survey import is_good

_WITHIN = "dedupeWithinWatermark"


def drop_copies(
    step: Step,
    frame: DataFrame,
    columns: StructType,
    rules: Rules,
    keys: Sequence[str],
    checkpoint: str,
) -> DataFrame:
    """A stream without the copies of its good rows, which alone the operator may see: so their
    verdict belongs into the stream, where it is else left to the batch.

    A key is remembered for `within`; where the event time is part of it, until the watermark is
    past that time, because a copy that comes later is late; without a bound, for ever. A checkpoint
    that began with the first goes on with it, and gives the same rows.
    """
    frame = judge(frame, step, columns, rules.own, rules.place)
    good = frame.where(is_good())
    if step.dedup is not None and step.dedup.within == "forever":
        once = good.dropDuplicates(list(keys))
    elif (time := _time_of(step)) in keys and _WITHIN not in _operators(checkpoint):
        # The watermark is that of `_event_time`, so that must be a key. For a column of timestamps
        # it is the same; text and dates of one moment may differ.
        same = isinstance(columns[time].dataType, TimestampType)
        named = [key for key in keys if key != time or not same]
        once = good.dropDuplicates(list(dict.fromkeys([*named, TIME])))
    else:
        once = good.dropDuplicatesWithinWatermark(list(keys))
    return once.unionByName(frame.where(~is_good()))


def _time_of(step: Step) -> str:
    return step.event_time.column if step.event_time is not None else ""


def _operators(checkpoint: str) -> set[str]:
    return set(state_operators(spark_folder(checkpoint)).values())
