"""Gives a batch's rows to every sink of a step beside its target."""

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from ..spec import (
    ConsoleSink,
    FilesSink,
    ForeachBatchSink,
    ForeachSink,
    JdbcSink,
    KafkaSink,
    MemorySink,
    Pipeline,
    Step,
)
from ..spec.model import Spec
from . import foreach, kafka, trial
from .delivery import Delivery
from .files import sink as files
from .jdbc import sink as jdbc

DELIVER = {
    KafkaSink: kafka.deliver,
    JdbcSink: jdbc.deliver,
    FilesSink: files.deliver,
    ForeachSink: foreach.deliver,
    ForeachBatchSink: foreach.deliver,
    ConsoleSink: trial.deliver,
    MemorySink: trial.deliver,
}
"""Model of a sink -> what writes a batch to it."""


def describe_sink(sink: Spec) -> str:
    """The kind and place of a sink, as reports name it: `jdbc sales.orders`."""
    places = ("topic", "topic_column", "table", "path", "writer", "function", "name")
    return " ".join(
        [
            sink.kind,
            *[str(getattr(sink, place)) for place in places if getattr(sink, place, None)][:1],
        ]
    )


def prepare_sinks(
    spark: SparkSession, pipeline: Pipeline, step: Step, schema: StructType, columns: list[str]
) -> None:
    """Check each further sink before anything is read, and make tables that are absent. Raises SpecError, SinkError and TransientError.

    Args: schema: of the rows they will get, with the system columns. columns: the user's.
    """
    for sink in step.further_sinks:
        where = f"{pipeline.name}.{step.name}: {describe_sink(sink)}"
        if isinstance(sink, KafkaSink):
            kafka.prepare(sink, schema, where)
        elif isinstance(sink, JdbcSink):
            jdbc.prepare(spark, sink, schema, columns)
        elif isinstance(sink, FilesSink):
            files.prepare(StructType([schema[name] for name in columns]), sink, where)
        elif isinstance(sink, ForeachSink | ForeachBatchSink):
            foreach.prepare(sink, pipeline.folder)


def deliver(
    sinks: list[Spec], rows: DataFrame, delivery: Delivery, check_right: Callable[[], None]
) -> dict[str, int]:
    """Give rows to each sink; returns how many each has, by its place. Raises what the sinks raise: the batch then comes again.

    Args: delivery: the batch; each sink gets it under a key of its own. check_right: asked before each sink, raises where this run may not write any more.
    """
    delivered: dict[str, int] = {}
    for number, sink in enumerate(sinks):
        check_right()
        place = describe_sink(sink)
        place = f"{place} ({number + 1})" if place in delivered else place
        delivered[place] = DELIVER[type(sink)](
            rows, sink, replace(delivery, key=f"{delivery.key}/{place}")
        )
    return delivered
