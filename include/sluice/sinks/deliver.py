"""Gives a batch's rows to every sink of a step beside its target."""

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame

from ..spec import (
    ConsoleSink,
    FilesSink,
    ForeachBatchSink,
    ForeachSink,
    JdbcSink,
    KafkaSink,
    MemorySink,
    SinkKind,
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


def prepare_sink(sink: SinkKind, coming: Preparation) -> None:
    """Check a further sink before anything is read, and make the table that is absent.

    Raises SpecError, SinkError and TransientError.
    """
    where = f"{coming.where}: {sink.title}"
    writer_of(sink).prepare(replace(coming, where=where))


def deliver(
    sinks: dict[str, SinkKind],
    rows: DataFrame,
    delivery: Delivery,
    check_right: Callable[[], None],
) -> dict[str, int]:
    """Give rows to each sink; returns how many each has, by its title.

    Args: delivery: the batch; each sink gets it under a key of its own. check_right: asked before
    each sink, raises where this run may not write any more. Raises what the sinks raise: the batch
    then comes again.
    """
    delivered: dict[str, int] = {}
    for title, sink in sinks.items():
        check_right()
        delivered[title] = writer_of(sink).deliver(rows, delivery.to(title))
    return delivered
