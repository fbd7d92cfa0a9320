"""Spark's settings for a short run and for a long one; no Spark is imported, so that Airflow can hand them to spark-submit."""

import os
import re

from ..setup.cache import class_archive_path
from ..setup.jars import jar_paths
from ..spec import Pipeline
from ..storage import Paths, in_bucket
from ..storage.buckets import find_endpoint

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
    # Spark's own pattern, and what a login to Kafka is made of.
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|keystore",
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


_LATE_C2 = [
    f"-XX:Tier4{name}Threshold={5 * usual}"
    for name, usual in (
        ("Invocation", 5_000),
        ("MinInvocation", 600),
        ("Compile", 15_000),
        ("BackEdge", 40_000),
    )
]
"""Five times Java's own: a run of a minute otherwise compiles for up to a fifth of its CPU what it then hardly uses (measured: 64-67 against 73-86 CPU-seconds, 500 000 records)."""

_S3 = {
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.s3.impl": "org.apache.hadoop.fs.s3a.S3A",
    # The chain that boto3 walks as well: environment, web identity, profile, container, instance. Hadoop's own chain knows no profile.
    "spark.hadoop.fs.s3a.aws.credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
    # A store that answers 503 for minutes must end the run as transient. Hadoop's own limits are 20 tries with doubling pauses, which is hours;
    # with these a call that is refused is given up after about a minute, and one that gets no answer after six.
    "spark.hadoop.fs.s3a.attempts.maximum": "3",
    "spark.hadoop.fs.s3a.retry.limit": "2",
    "spark.hadoop.fs.s3a.retry.interval": "500ms",
    "spark.hadoop.fs.s3a.retry.throttle.limit": "5",
    "spark.hadoop.fs.s3a.retry.throttle.interval": "500ms",
    "spark.hadoop.fs.s3a.connection.establish.timeout": "15s",
    "spark.hadoop.fs.s3a.connection.timeout": "30s",
}
_ON_S3 = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"


def _s3_settings(checkpoints: bool) -> dict[str, str]:
    """Settings for `s3a://`: the store, region and credentials that boto3 finds. `checkpoints`: they lie there too, where a rename is a copy that can be cut in two."""
    endpoint, region = find_endpoint()
    settings = dict(_S3)
    if endpoint:
        settings |= {
            "spark.hadoop.fs.s3a.endpoint": endpoint,
            "spark.hadoop.fs.s3a.path.style.access": str(".amazonaws.com" not in endpoint).lower(),
        }
    if endpoint or region:
        settings["spark.hadoop.fs.s3a.endpoint.region"] = region or "us-east-1"
    if checkpoints:
        settings["spark.sql.streaming.checkpointFileManagerClass"] = _ON_S3
    return settings


def find_jar_sets(pipeline: Pipeline, root: str) -> tuple[str, ...]:
    """The sets of jars beside `core` that a pipeline's sources, sinks and places need. `root`: where its tables and checkpoints lie."""
    parts = (part for step in pipeline.steps for part in (step.source, *step.sinks))
    needed = {name for part in parts for name in part.jar_sets}
    return tuple(sorted(needed | ({"s3"} if in_bucket(root) else set())))


def _java_options(small: bool) -> str:
    """JVM flags: serial collection always (two cores), C1 alone for a small backlog, C2 late for a large one, and the class archive where set-up made one."""
    archive = class_archive_path()
    flags = ["-XX:+UseSerialGC", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr"]
    flags += ["-XX:TieredStopAtLevel=1"] if small else _LATE_C2
    flags += [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []
    return " ".join(flags)


def partitions_for(master: str) -> int:
    """Shuffle partitions: the cores of a local master, 64 on a cluster (adaptive execution merges small ones)."""
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if match is None:
        return 64
    cores = os.cpu_count() or 2
    return max(1, min(16, cores if match[1] == "*" else int(match[1] or 1)))


def spark_settings(
    pipeline: Pipeline,
    backlog_bytes: int | None,
    jar_sets: tuple[str, ...] = ("core",),
    master: str | None = None,
    root: str | None = None,
) -> dict[str, str]:
    """Every Spark setting of a run, the pipeline's own `spark:` entries last.

    Args: backlog_bytes: bytes waiting, None when unknown (then the settings of a large backlog). master: wins over the pipeline's.
    root: where tables and checkpoints lie, by default where `Paths.under` says. Raises PreflightError when a jar of a set is missing.
    """
    master, root = master or pipeline.master, Paths.under(root, pipeline.name).root
    sets = tuple(dict.fromkeys((*jar_sets, *find_jar_sets(pipeline, root))))
    core, jars = ([str(p) for p in jar_paths(*names)] for names in (("core",), sets))
    local = master.startswith("local")
    small = backlog_bytes is not None and backlog_bytes < SMALL_BACKLOG
    partitions = str(partitions_for(master))
    settings = {
        "spark.master": master,
        "spark.app.name": f"sluice-{pipeline.name}",
        "spark.sql.shuffle.partitions": partitions,
        # Delta rebuilds a snapshot in 50 tasks unless told otherwise: most of a short run on a small table.
        "spark.databricks.delta.snapshotPartitions": partitions,
        "spark.driver.extraClassPath": os.pathsep.join(core if local else jars),
        "spark.driver.extraJavaOptions": _java_options(small),
        **_FIXED,
        **(_s3_settings(in_bucket(root)) if "s3" in sets else {}),
    }
    if not local:
        settings["spark.jars"] = ",".join(jars)  # executors elsewhere get the jars from the driver
    elif more_jars := [jar for jar in jars if jar not in core]:
        # On the class path itself they would make the class archive of no use; `local:` reads them where they lie, instead of copying 686 MB of S3 client.
        settings["spark.jars"] = ",".join(f"local:{jar}" for jar in more_jars)
    return {**settings, **pipeline.spark}
