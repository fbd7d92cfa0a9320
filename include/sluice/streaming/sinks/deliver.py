"""Gives a batch's rows to every sink of a step beside its target."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ...backlog import table_version
from ...errors import SpecError
from ..step_run import StepRun
from ..tables import frame_of


def rows_of_batch(run: StepRun, session: SparkSession, batch: int, version: int) -> DataFrame:
    """The rows that a batch wrote into the target, as its commit left them: the same whenever they are asked for, with no row that was a copy.

    Args: version: of the target, after the batch.
    """
    table = frame_of(session, run.target, None if version == table_version(run.target) else version)
    return table.where((F.col("_batch_id") == batch) & F.col("_run_id").isin(run.run_ids))


def deliver(run: StepRun, rows: DataFrame, batch: int) -> dict[str, int]:
    """Give rows to each further sink; returns how many each has, by its place. Raises what the sinks raise: the batch then comes again."""
    raise SpecError("no further sinks yet", where=run.step.name)
