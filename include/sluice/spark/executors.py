"""What there is of executors, and what their tasks cost: on a cluster their processes are not among
ours, so Spark is asked."""

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

from ..launch import PARTITIONS
from .jvm import JVM_GONE, jvm_of

PATIENCE = 20.0
"""Seconds in which the executors of a run usually come; the run goes on with those that are
there."""
_QUIET = 0.5
"""Seconds without another executor after which no more are waited for, where nobody said how
many."""
_MOST_PARTITIONS = 200


def fit_to_executors(spark: SparkSession, given: Mapping[str, str]) -> None:
    """On a cluster, cut shuffles into as many parts as its executors have cores.

    Args: given: the pipeline's own settings, which win.
    """
    if is_local(spark):
        return
    cores = await_cores(spark, _wanted_cores(spark))
    for name in PARTITIONS:
        if cores and name not in given:
            spark.conf.set(name, str(min(cores, _MOST_PARTITIONS)))


def is_local(spark: SparkSession) -> bool:
    """True where tasks run in the driver's JVM."""
    return (spark.sparkContext.master or "").startswith("local")


def await_cores(spark: SparkSession, wanted: int) -> int:
    """Wait until the executors have so many cores together, or, with 0, until no more come; how
    many there are."""
    began = changed = time.monotonic()
    cores = 0
    while (now := time.monotonic()) - began < PATIENCE:
        found = _count_cores(spark)
        if found != cores:
            cores, changed = found, now
        if cores and (cores >= wanted if wanted else now - changed > _QUIET):
            break
        time.sleep(0.05)
    return cores


def _wanted_cores(spark: SparkSession) -> int:
    """Cores that the settings ask for; 0 where they do not say it."""
    said = spark.sparkContext.getConf()
    if said.get("spark.dynamicAllocation.enabled", "false") == "true":
        return 0
    executors, cores = said.get("spark.executor.instances"), said.get("spark.executor.cores", "1")
    most = said.get("spark.cores.max")
    return int(most) if most else int(executors or 0) * int(cores or 1)


def _count_cores(spark: SparkSession) -> int:
    there = spark.sparkContext._jsc.sc().statusStore().executorList(True).iterator()
    cores = 0
    while there.hasNext():
        executor = there.next()
        cores += executor.totalCores() if executor.id() != "driver" else 0
    return cores


def executor_cost(spark: SparkSession) -> dict[str, str]:
    """`executor_core_seconds` of the session so far; nothing where tasks run in this machine's JVM.

    The time of Python workers is not in it: Spark measures the thread of each task.
    """
    if is_local(spark):
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
