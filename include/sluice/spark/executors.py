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
_UNKNOWN = 64
"""Parts of a shuffle where no executor came in time, or more come by need."""


def fit_to_executors(
    spark: SparkSession, given: Mapping[str, str], patience: float | None = None
) -> None:
    """On a cluster, wait for the executors, and cut shuffles into as many parts as they have cores.
    Executors that come as tasks wait for them are not waited for; there are to be many parts then,
    or no more would come.

    Args: given: the pipeline's own settings, which win. patience: seconds for the executors that
    are still to come, `PATIENCE` without.
    """
    if is_local(spark):
        return
    come_by_need = _said(spark, "spark.dynamicAllocation.enabled") == "true"
    cores = _count_cores(spark)[0] if come_by_need else _await_cores(spark, patience)
    parts = max(cores, _UNKNOWN) if come_by_need or not cores else cores
    for name in PARTITIONS:
        if name not in given:
            spark.conf.set(name, str(min(parts, _MOST_PARTITIONS)))


def is_local(spark: SparkSession) -> bool:
    """True where tasks run in the driver's JVM."""
    return (spark.sparkContext.master or "").startswith("local")


def _await_cores(spark: SparkSession, patience: float | None) -> int:
    """How many cores the executors have together, once there are as many as the settings ask for;
    or, where they do not say it, once no more come."""
    end = time.monotonic() + (PATIENCE if patience is None else patience)
    wanted = _wanted_cores(spark)
    while True:
        cores, newest = _count_cores(spark)
        enough = cores >= wanted if wanted else time.time() - newest > _QUIET
        if (cores and enough) or time.monotonic() >= end:
            return cores
        time.sleep(0.05)


def _wanted_cores(spark: SparkSession) -> int:
    """Cores that the settings ask for; 0 where they do not say it."""
    if most := _said(spark, "spark.cores.max"):
        return int(most)
    executors = _said(spark, "spark.executor.instances")
    return int(executors or 0) * int(_said(spark, "spark.executor.cores") or 1)


def _said(spark: SparkSession, name: str) -> str | None:
    return spark.sparkContext.getConf().get(name)


def _count_cores(spark: SparkSession) -> tuple[int, float]:
    """Cores of all executors, and when the newest of them came, seconds since 1970."""
    there = spark.sparkContext._jsc.sc().statusStore().executorList(True).iterator()
    cores, newest = 0, 0.0
    while there.hasNext():
        executor = there.next()
        if executor.id() != "driver":
            cores += executor.totalCores()
            newest = max(newest, executor.addTime().getTime() / 1000)
    return cores, newest


def executor_cost(spark: SparkSession) -> dict[str, str]:
    """Cores of the executors, the parts of a shuffle, and `executor_core_seconds` of the session so
    far; nothing where tasks run in this machine's JVM.

    The time of Python workers is not in it: Spark measures the thread of each task.
    """
    if is_local(spark):
        return {}
    with suppress(*JVM_GONE):
        return {
            "executor_cores": str(_count_cores(spark)[0]),
            "partitions": spark.conf.get(PARTITIONS[0]) or "",
            "executor_core_seconds": f"{sum_task_seconds(spark):.1f}",
        }
    return {}


def storage_memory(spark: SparkSession) -> int:
    """Bytes in which the executors that are there may hold rows; of a local master, its JVM's."""
    there = list(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos())
    driver = jvm_of(spark).org.apache.spark.SparkEnv.get().blockManager().blockManagerId()
    place = driver.host(), driver.port()
    executors = [info for info in there if (info.host(), info.port()) != place]
    return sum(info.totalOnHeapStorageMemory() for info in executors or there)


def driver_memory(spark: SparkSession) -> int:
    """Bytes to which the driver's heap may grow."""
    return int(jvm_of(spark).java.lang.Runtime.getRuntime().maxMemory())


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
