"""Spark's settings for a short run and for a long one; no Spark is imported, so that Airflow can hand them to spark-submit."""

import os
import re

from ..setup.cache import class_archive_path
from ..setup.jars import jar_paths
from ..spec import Pipeline

SMALL_BACKLOG = 256 * 10**6
"""Bytes below which compiling for speed costs more than it gives (C1 alone; measured, see the README's figures)."""

_FIXED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    # Spark's own 1 GB does not hold a row of 50 MB in all its forms at once; a JVM takes what it needs, not what it may.
    "spark.driver.memory": "3g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # Each batch lists its own files again, by default in up to 10 000 tasks: 20 000 files cost 18 s instead of 1 s.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
    # Decoding a declared encoding: every charset of Java, and a replacement character (which marks the row) instead of the end of the run.
    "spark.sql.legacy.javaCharsets": "true",
    "spark.sql.legacy.codingErrorAction": "true",
    # A trailing batch without rows would pay a whole batch to move the watermark; the next run with data moves it anyway.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # Runs shorter than a minute otherwise never snapshot or clean their state.
    "spark.sql.streaming.stateStore.unloadOnCommit": "true",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}


def _java_options(small: bool) -> str:
    """JVM flags: serial collection always (two cores), C1 alone for a small backlog, and the class archive where set-up made one."""
    archive = class_archive_path()
    flags = ["-XX:+UseSerialGC", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr"]
    flags += ["-XX:TieredStopAtLevel=1"] if small else []
    flags += [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []
    return " ".join(flags)


def partitions_for(master: str) -> int:
    """Shuffle partitions: the cores of a local master, 64 on a cluster (adaptive execution merges small ones)."""
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if match is None:
        return 64
    cores = os.cpu_count() or 2
    return max(1, min(16, cores if match[1] == "*" else int(match[1] or 1)))


def spark_settings(pipeline: Pipeline, backlog_bytes: int | None, jar_sets: tuple[str, ...] = ("core",), master: str | None = None) -> dict[str, str]:
    """Every Spark setting of a run, the pipeline's own `spark:` entries last.

    Args: backlog_bytes: bytes waiting, None when unknown (then the settings of a large backlog). master: wins over the pipeline's.
    Raises PreflightError when a jar of a set is missing.
    """
    master = master or pipeline.master
    sets = tuple(dict.fromkeys((*jar_sets, *(("avro",) if any(s.source.format == "avro" for s in pipeline.steps) else ()))))
    jars = [str(p) for p in jar_paths(*sets)]
    small = backlog_bytes is not None and backlog_bytes < SMALL_BACKLOG
    partitions = str(partitions_for(master))
    settings = {
        "spark.master": master,
        "spark.app.name": f"sluice-{pipeline.name}",
        "spark.sql.shuffle.partitions": partitions,
        # Delta rebuilds a snapshot in 50 tasks unless told otherwise: most of a short run on a small table.
        "spark.databricks.delta.snapshotPartitions": partitions,
        "spark.driver.extraClassPath": os.pathsep.join(jars),
        "spark.driver.extraJavaOptions": _java_options(small),
        **_FIXED,
    }
    if not master.startswith("local"):
        settings["spark.jars"] = ",".join(jars)  # executors elsewhere get the jars from the driver
    return {**settings, **pipeline.spark}
