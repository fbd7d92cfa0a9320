"""What the tasks of a cluster cost: their processes are not among ours, so Spark is asked."""

from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

from .jvm import JVM_GONE, jvm_of


def executor_cost(spark: SparkSession) -> dict[str, str]:
    """`executor_core_seconds` of the session so far; nothing where tasks run in this machine's JVM.

    The time of Python workers is not in it: Spark measures the thread of each task.
    """
    if (spark.sparkContext.master or "").startswith("local"):
        return {}
    with suppress(*JVM_GONE):
        return {"executor_core_seconds": f"{sum_task_seconds(spark):.1f}"}
    return {}


def storage_memory(spark: SparkSession) -> int:
    """Bytes in which the executors that are there may hold rows; of a local master, its JVM's."""
    there = list(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos())
    driver = jvm_of(spark).org.apache.spark.SparkEnv.get().blockManager().blockManagerId()
    place = driver.host(), driver.port()
    executors = [info for info in there if (info.host(), info.port()) != place]
    return sum(info.totalOnHeapStorageMemory() for info in executors or there)


def sum_task_seconds(spark: SparkSession) -> float:
    """CPU seconds of all tasks, by the stages that Spark remembers (`spark.ui.retainedStages`)."""
    context = spark.sparkContext
    gateway: Any = context._gateway  # typed as one that may be missing; a session has it
    quantiles, statuses = (
        gateway.new_array(gateway.jvm.double, 0),
        gateway.jvm.java.util.ArrayList(),
    )
    store = context._jsc.sc().statusStore()
    stages = store.stageList(None, False, False, quantiles, statuses).iterator()
    nanoseconds = 0
    while stages.hasNext():
        stage = stages.next()
        nanoseconds += stage.executorCpuTime() + stage.executorDeserializeCpuTime()
    return nanoseconds / 1e9
