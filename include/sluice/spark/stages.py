"""What the stages that run have done so far, by Spark's own store of them."""

from contextlib import suppress
from dataclasses import dataclass

from pyspark.sql import SparkSession

from .jvm import jvm_of


@dataclass(frozen=True)
class Stages:
    """The active stages together: tasks that are over and all of them, and bytes and records that
    the former have read."""

    over: int = 0
    tasks: int = 0
    bytes: int = 0
    records: int = 0

    @property
    def share(self) -> float:
        """Of the tasks that are over, from 0 to 1."""
        return self.over / self.tasks if self.tasks else 0.0


def look_at_stages(spark: SparkSession, pool: str | None = None) -> Stages:
    """Ask the store; what it cannot tell is nothing: no run may fail because it was looked at.

    Args: pool: of the scheduler, whose stages are meant; all by default.
    """
    over = tasks = size = records = 0
    with suppress(Exception):
        active = spark.sparkContext._jsc.sc().statusStore().activeStages().iterator()
        while active.hasNext():
            stage = active.next()
            if pool is not None and stage.schedulingPool() != pool:
                continue
            over, tasks = over + stage.numCompleteTasks(), tasks + stage.numTasks()
            size, records = size + stage.inputBytes(), records + stage.inputRecords()
    return Stages(over, tasks, size, records)


def bytes_read_here(spark: SparkSession) -> int:
    """Bytes of files that this JVM has read so far: with a local master also those of tasks that
    are not over, of which Spark's store knows nothing (Spark 4.2)."""
    with suppress(Exception):
        files = jvm_of(spark).org.apache.hadoop.fs.FileSystem
        return sum(scheme.getBytesRead() for scheme in files.getAllStatistics())
    return 0
