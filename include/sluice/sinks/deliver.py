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
    SinkKind,
    Step,
)
from .delivery import Delivery
from .files.sink import FilesWriter
from .foreach import ForeachBatchWriter, ForeachWriter
from .jdbc.sink import JdbcWriter
from .kafka.sink import KafkaWriter
from .trial import ConsoleWriter, MemoryWriter
from .writer import Preparation, Writer

WRITERS: dict[type[SinkKind], type[Writer]] = {
    KafkaSink: KafkaWriter,
    JdbcSink: JdbcWriter,
    FilesSink: FilesWriter,
    ForeachSink: ForeachWriter,
    ForeachBatchSink: ForeachBatchWriter,
    ConsoleSink: ConsoleWriter,
    MemorySink: MemoryWriter,
}
"""Model of a sink -> what writes to it."""


def writer_of(sink: SinkKind) -> Writer:
    """What writes to a sink."""
    return WRITERS[type(sink)](sink)


def describe_sink(sink: SinkKind) -> str:
    """The kind and place of a sink, as reports name it: `jdbc sales.orders`."""
    return sink.title


def prepare_sinks(
    spark: SparkSession, pipeline: Pipeline, step: Step, schema: StructType, columns: list[str]
) -> None:
    """Check each further sink before anything is read, and make tables that are absent.

    Args: schema: of the rows they will get, with the system columns. columns: the user's. Raises
    SpecError, SinkError and TransientError.
    """
    for sink in step.further_sinks:
        where = f"{pipeline.name}.{step.name}: {sink.title}"
        writer_of(sink).prepare(Preparation(spark, schema, columns, pipeline.folder, where))


def deliver(
    sinks: list[SinkKind], rows: DataFrame, delivery: Delivery, check_right: Callable[[], None]
) -> dict[str, int]:
    """Give rows to each sink; returns how many each has, by its place.

    Args: delivery: the batch; each sink gets it under a key of its own. check_right: asked before
    each sink, raises where this run may not write any more. Raises what the sinks raise: the batch
    then comes again.
    """
    delivered: dict[str, int] = {}
    for number, sink in enumerate(sinks):
        check_right()
        place = f"{sink.title} ({number + 1})" if sink.title in delivered else sink.title
        own = replace(delivery, key=f"{delivery.key}/{place}")
        delivered[place] = writer_of(sink).deliver(rows, own)
    return delivered
