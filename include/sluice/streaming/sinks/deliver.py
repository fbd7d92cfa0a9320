"""Gives a batch's rows to every sink of a step beside its target."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ...backlog import table_version
from ...spec import ConsoleSink, FilesSink, ForeachBatchSink, ForeachSink, JdbcSink, KafkaSink, MemorySink, Pipeline, Step
from ...spec.model import Spec
from ..step_run import StepRun
from ..tables import frame_of
from . import files, foreach, jdbc, kafka, trial
from .delivery import Delivery

DELIVER = {
    KafkaSink: kafka.deliver, JdbcSink: jdbc.deliver, FilesSink: files.deliver, ForeachSink: foreach.deliver, ForeachBatchSink: foreach.deliver,
    ConsoleSink: trial.deliver, MemorySink: trial.deliver,
}
"""Model of a sink -> what writes a batch to it."""


def describe_sink(sink: Spec) -> str:
    """The kind and place of a sink, as reports name it: `jdbc sales.orders`."""
    places = ("topic", "topic_column", "table", "path", "writer", "function", "name")
    return " ".join([sink.kind, *[str(getattr(sink, place)) for place in places if getattr(sink, place, None)][:1]])


def prepare_sinks(spark: SparkSession, pipeline: Pipeline, step: Step, schema: StructType, columns: list[str]) -> None:
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


def rows_of_batch(run: StepRun, session: SparkSession, batch: int, version: int) -> DataFrame:
    """The rows that a batch wrote into the target, as its commit left them: the same whenever they are asked for, with no row that was a copy.

    Args: version: of the target, after the batch.
    """
    table = frame_of(session, run.target, None if version == table_version(run.target) else version)
    return table.where((F.col("_batch_id") == batch) & F.col("_run_id").isin(run.run_ids))


def deliver(run: StepRun, rows: DataFrame, batch: int) -> dict[str, int]:
    """Give rows to each further sink; returns how many each has, by its place. Raises what the sinks raise: the batch then comes again."""
    delivered = {}
    for number, sink in enumerate(run.step.further_sinks):
        run.before_write()
        place = describe_sink(sink)
        place = f"{place} ({number + 1})" if place in delivered else place
        delivery = Delivery(f"{run.transaction(batch).app_id}/{place}", batch, run.business.names, run.folder, run.paths.root, frozenset(run.hidden))
        delivered[place] = DELIVER[type(sink)](rows, sink, delivery)
    return delivered
