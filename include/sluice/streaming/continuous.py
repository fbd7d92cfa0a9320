"""Runs a step under Spark's continuous trigger, where rows go out as they come.

There are no batches, so nothing is counted, refused or remembered.
"""

import time

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter

from ..checkpoint import Checkpoint, complete_epochs, open_manifest
from ..errors import PreflightError, SpecError
from ..sinks import Preparation, prepare_sink, writer_of
from ..sources import Inputs
from ..spark.columns import DEFECT, ENTERED, STAGE
from ..spark.executors import is_local
from ..spark.failure import explain
from ..spark.output_mode import continuous_refusal
from ..spec import Step, Trigger
from ..storage import spark_folder
from .drain import wait_a_moment
from .run import Run
from .tally import DRAIN, Tally
from .transform import apply_transform, business_columns
from .trigger import trigger_options


def run_continuous(run: Run, step: Step, tally: Tally, inputs: Inputs, trigger: Trigger) -> None:
    """Let rows through until the run's time is spent.

    Raises SpecError and PreflightError before the start.
    """
    _check_cores(run, step, inputs)
    open_manifest(tally.checkpoint)
    before = Checkpoint.below(tally.checkpoint).newest_commit
    writer = _open(run, step, inputs)
    place = spark_folder(tally.checkpoint)
    writer = writer.option("checkpointLocation", place).trigger(**trigger_options(trigger))
    with tally.spending(DRAIN):
        _wait(writer, run, step, run.mode.end(trigger, run.deadline) or run.deadline)
        complete_epochs(place)
    tally.warn(*inputs.warnings)
    if Checkpoint.below(tally.checkpoint).newest_commit == before:
        tally.warn(
            "no place was noted before the time was spent, so what this run sent will be sent "
            "again: give it more time, or more cores than partitions"
        )


def _open(run: Run, step: Step, inputs: Inputs) -> DataStreamWriter:
    """The stream to the step's one sink."""
    (records,) = inputs.open(run.spark).values()
    frame = apply_transform(records, run.pipeline.folder, step.transform)
    rows = frame.where(F.col(DEFECT).isNull() & (F.col(STAGE) == ENTERED))
    if (refusal := continuous_refusal(rows)) is not None:
        raise SpecError(
            f"continuous mode cannot run this transform: {refusal}",
            where=f"{run.where(step)}: transform",
            do="Write a plain SELECT ... [WHERE ...] FROM source, or `trigger: available_now`",
        )
    columns = business_columns(frame).names
    schema, folder = rows.drop(DEFECT, STAGE).schema, run.pipeline.folder
    coming = Preparation(run.spark, schema, columns, folder, run.where(step))
    prepare_sink(step.sinks[0], coming)
    return writer_of(step.sinks[0]).open_stream(rows, columns, frozenset(run.pipeline.pii))


def _check_cores(run: Run, step: Step, inputs: Inputs) -> None:
    """Raise PreflightError where a task could not start.

    Each partition has one that never ends, and without all of them nothing is ever noted.
    """
    partitions, cores = inputs.partitions, run.spark.sparkContext.defaultParallelism
    if is_local(run.spark) and partitions > cores:
        raise PreflightError(
            "continuous mode needs a core for each partition of its topics",
            where=f"{run.where(step)}: source",
            value=f"{partitions} partitions, {cores} cores",
            do=f"Write `master: local[{partitions}]`, or `trigger: available_now`",
        )


def _wait(writer: DataStreamWriter, run: Run, step: Step, end: float) -> None:
    query = writer.start()
    try:
        while time.monotonic() < end and not wait_a_moment(query, end):
            run.rights.check(step.name)
    except PySparkException as error:
        refused = writer_of(step.sinks[0]).explain(error)
        raise (explain(error) if refused is error else refused) from None
    finally:
        if query.isActive:
            query.stop()
