"""Watermarks of several inputs, each kept apart: Spark's checkpoint holds one for all of them, so
in a run in which an input is idle Spark takes it for one that never had a row, and closes nothing.

What each input had reached is noted by us (`checkpoint.watermarks`), and put back into the query
before its first batch ends. Spark keeps it in `WatermarkTracker.operatorToWatermarkMap` (4.2:
node id -> Option of milliseconds), which has no public door.
"""

import json
from datetime import timedelta

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .columns import quote
from .jvm import jvm_of
from .plans import kind, walk
from .queries import query_of_batch

_MARK = "sluice.input"
"""Metadata of an input's event time, by which its node is known in every plan."""
_SMALLEST = 2**31
"""Milliseconds (January 1970) below which Python's numbers arrive in the JVM as another type."""


def declare_watermark(rows: DataFrame, column: str, delay: timedelta, name: str) -> DataFrame:
    """Rows of an input with its watermark."""
    marked = rows.withColumn(column, F.col(quote(column)).alias(column, metadata={_MARK: name}))
    return marked.withWatermark(column, f"{int(delay.total_seconds() * 1000)} milliseconds")


def restore_watermarks(spark: SparkSession, reached: dict[str, int]) -> None:
    """Tell the query of this batch how far each input had come, epoch milliseconds, where it does
    not know; call it within a batch."""
    query = query_of_batch(spark)
    known = _tracked(query)
    for name, node in _nodes(query):
        moment, before = reached.get(name, 0), known.get(node.nodeId())
        if moment >= _SMALLEST and (before.isEmpty() or before.get().isEmpty()):
            known.put(node.nodeId(), jvm_of(spark).scala.Option.apply(moment))


def read_watermarks(spark: SparkSession) -> dict[str, int]:
    """How far each input has come with the batch that the query has just run, epoch milliseconds;
    none of which no row came yet. Call it within a batch, after its rows were read."""
    reached: dict[str, int] = {}
    query = query_of_batch(spark)
    known = _tracked(query)
    for name, node in _nodes(query):
        before, stats = known.get(node.nodeId()), node.eventTimeStats().value()
        moments = [stats.max() - node.delayMs()] if stats.count() else []
        if before.nonEmpty() and before.get().nonEmpty():
            moments.append(before.get().get())
        if moments:
            reached[name] = max(reached.get(name, 0), *moments)
    return reached


def _nodes(query: JavaObject) -> list[tuple[str, JavaObject]]:
    """The nodes of a query's newest batch that hold an input's watermark, by the input's name."""
    plan = query.lastExecution().executedPlan()
    nodes = [node for node in walk(plan) if kind(node) == "EventTimeWatermarkExec"]
    return [(name, node) for node in nodes if (name := _name_of(node))]


def _name_of(node: JavaObject) -> str:
    return str(json.loads(node.eventTime().metadata().json()).get(_MARK, ""))


def _tracked(execution: JavaObject) -> JavaObject:
    """Scala's map of what a query knows of its watermarks."""
    return _field(_field(execution, "watermarkTracker"), "operatorToWatermarkMap")


def _field(of: JavaObject, name: str) -> JavaObject:
    """A private field, wherever in the line of classes it is declared."""
    declared = of.getClass()
    while declared is not None:
        for field in declared.getDeclaredFields():
            if field.getName().rpartition("$")[2] == name:
                field.setAccessible(True)
                return field.get(of)
        declared = declared.getSuperclass()
    raise AttributeError(name)
