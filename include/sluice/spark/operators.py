"""What Spark's operators that keep state did to a batch, told by their own metrics."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from .plans import kind, walk
from .queries import query_of_batch

_DROPPED = "numRowsDroppedByWatermark"
_DUPLICATE = "numDroppedDuplicateRows"


@dataclass(frozen=True)
class LateInOperator:
    """What one operator dropped from a batch because it came behind the watermark."""

    operator: str
    """Spark's name of it: `StateStoreSave` (an aggregation), `StreamingSymmetricHashJoin`, ..."""
    dropped: int
    unit: Literal["rows", "groups"]
    """An aggregation puts rows together by group before it looks at the watermark."""


def count_late_in_operators(spark: SparkSession) -> list[LateInOperator]:
    """What each operator with state dropped as late from the batch that this thread works at.

    Late is what lies behind the watermark of the batch before, which is older than the batch's own.
    Asked within the batch, after its rows were read once: the query's own progress comes too late
    for a run that dies after it, and rows that are read twice are counted twice.
    """
    return [
        LateInOperator(name, metric.value(), "groups" if "StateStore" in name else "rows")
        for node in executed_operators(spark)
        if (metric := metric_of(node, _DROPPED)) is not None
        for name in [kind(node).removesuffix("Exec")]
    ]


def count_duplicates_in_operators(spark: SparkSession) -> int:
    """Rows that Spark's own deduplication dropped as copies from the batch that this thread works
    at."""
    found = (metric_of(node, _DUPLICATE) for node in executed_operators(spark))
    return sum(metric.value() for metric in found if metric is not None)


def executed_operators(spark: SparkSession) -> Iterator[JavaObject]:
    """The physical operators of the batch that this thread works at."""
    yield from walk(query_of_batch(spark).lastExecution().executedPlan())


def metric_of(node: JavaObject, name: str) -> JavaObject | None:
    """A metric of an operator by its name."""
    found = node.metrics().get(name)
    return None if found.isEmpty() else found.get()
