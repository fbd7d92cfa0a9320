"""What the stages that run have done so far, by Spark's own store of them."""

from contextlib import suppress
from dataclasses import dataclass

from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Stages:
    """The active stages together: tasks that are over and all of them, and what they have read:
    bytes and records, as their executors told it last."""

    over: int = 0
    tasks: int = 0
    bytes: int = 0
    records: int = 0

    @property
    def share(self) -> float:
        """Of the tasks that are over, from 0 to 1."""
        return self.over / self.tasks if self.tasks else 0.0


def look_at_stages(spark: SparkSession) -> Stages:
    """Ask the store; what it cannot tell is nothing: no run may fail because it was looked at."""
    over = tasks = size = records = 0
    with suppress(Exception):
        active = spark.sparkContext._jsc.sc().statusStore().activeStages().iterator()
        while active.hasNext():
            stage = active.next()
            over, tasks = over + stage.numCompleteTasks(), tasks + stage.numTasks()
            size, records = size + stage.inputBytes(), records + stage.inputRecords()
    return Stages(over, tasks, size, records)
