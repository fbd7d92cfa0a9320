"""Runs a step under Spark's continuous trigger, where rows go out as they come.

There are no batches, so nothing is counted, refused or remembered.
"""

import time
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter

from ..checkpoint import Checkpoint, complete_epochs, open_manifest
from ..errors import PreflightError, SpecError
from ..report import StepReport
from ..sinks import prepare_sinks
from ..sinks.kafka import explain_refusal, records_without_batch, writer_options
from ..sinks.trial import mask
from ..sources import Intake
from ..sources.kafka import KafkaIntake
from ..spark.columns import DEFECT, ENTERED, STAGE
from ..spark.output_mode import continuous_refusal
from ..spec import ConsoleSink, Interval, KafkaSink, Step
from .drain import explain
from .transform import apply_transform, business_columns
from .trigger import choose_end, trigger_options

if TYPE_CHECKING:
    from .execute import RunContext


def run_continuous(
    context: "RunContext", step: Step, report: StepReport, intake: Intake, trigger: Interval
) -> bool:
    """Let rows through until the run's time is spent; always True.

    Raises SpecError and PreflightError before the start.
    """
    place = context.paths.checkpoint(step.name)
    _check_cores(context, step, intake)
    open_manifest(place)
    frame = apply_transform(intake.open(context.spark), context.pipeline.folder, step.transform)
    rows = frame.where(F.col(DEFECT).isNull() & (F.col(STAGE) == ENTERED))
    if (refusal := continuous_refusal(rows)) is not None:
        raise SpecError(
            f"continuous mode cannot run this transform: {refusal}",
            where=f"{context.pipeline.name}.{step.name}: transform",
            do="Write a plain SELECT ... [WHERE ...] FROM source, or `trigger: available_now`",
        )
    business = business_columns(frame)
    prepare_sinks(
        context.spark, context.pipeline, step, rows.drop(DEFECT, STAGE).schema, business.names
    )
    writer = _open_sink(rows, step.sinks[0], business.names, frozenset(context.pipeline.pii))
    began = time.monotonic()
    _run(
        writer.option("checkpointLocation", f"{place}/spark").trigger(**trigger_options(trigger)),
        context,
        step,
        choose_end(trigger, context.request, context.deadline) or context.deadline,
    )
    complete_epochs(f"{place}/spark")
    report.offsets_after, report.timings["drain"] = (
        Checkpoint(f"{place}/spark").newest_commit,
        round(time.monotonic() - began, 3),
    )
    report.warnings += [w for w in intake.warnings if w not in report.warnings]
    if report.offsets_after == report.offsets_before:
        report.warnings.append(
            "no place was noted before the time was spent, so what this run sent will be sent "
            "again: give it more time, or more cores than partitions"
        )
    return True


def _check_cores(context: "RunContext", step: Step, intake: Intake) -> None:
    """Raise PreflightError where a task could not start.

    Each partition has one that never ends, and without all of them nothing is ever noted.
    """
    partitions = (
        sum(len(found) for found in intake.backlog.partitions.values())
        if isinstance(intake, KafkaIntake)
        else 1
    )
    cores = context.spark.sparkContext.defaultParallelism
    if (context.spark.sparkContext.master or "").startswith("local") and partitions > cores:
        raise PreflightError(
            "continuous mode needs a core for each partition of its topics",
            where=f"{context.pipeline.name}.{step.name}: source",
            value=f"{partitions} partitions, {cores} cores",
            do=f"Write `master: local[{partitions}]`, or `trigger: available_now`",
        )


def _open_sink(
    rows: DataFrame, sink: KafkaSink | ConsoleSink, columns: list[str], hidden: frozenset[str]
) -> DataStreamWriter:
    if isinstance(sink, KafkaSink):
        return (
            records_without_batch(rows, sink, columns)
            .writeStream.format("kafka")
            .options(**writer_options(sink))
        )
    shown = rows.select(*[mask(name, hidden) for name in columns])
    return shown.writeStream.format("console").option("numRows", sink.rows)


def _run(writer: DataStreamWriter, context: "RunContext", step: Step, end: float) -> None:
    query = writer.start()
    try:
        while time.monotonic() < end and not query.awaitTermination(1):
            context.check_right(step)
    except PySparkException as error:
        sink = step.sinks[0]
        refused = explain_refusal(error, sink) if isinstance(sink, KafkaSink) else error
        raise (explain(error) if refused is error else refused) from None
    finally:
        if query.isActive:
            query.stop()
