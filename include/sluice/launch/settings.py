"""Spark's settings for a short run and for a long one."""

import os
import re

from ..setup.jars import jar_paths
from ..spec import Pipeline
from ..spec.order import count_at_once, order_steps
from ..storage import Paths, in_bucket
from .jvm_flags import HEAP, executor_options, java_options, quarter_of
from .s3 import s3_settings

SMALL_BACKLOG = 160 * 10**6
"""Bytes below which compiling for speed costs more than it gives. C1 alone ÷ C2 late, CPU-seconds
of a first load: 64 MB of CSV 24 ÷ 28, 128 MB 37 ÷ 34; 130 MB of flat JSON 32 ÷ 33, on a busy
machine 35 ÷ 41; 231 MB of nested JSON 48 ÷ 41; 25 MB of Parquet 26 ÷ 31, 50 MB 40 ÷ 40."""

_STATE = "spark.sql.streaming.stateStore"
STATE_STORES = {
    name: {
        f"{_STATE}.providerClass": f"org.apache.spark.sql.execution.streaming.state.{provider}",
        f"{_STATE}.checkpointFormatVersion": version,
    }
    for name, provider, version in (
        ("rocksdb", "RocksDBStateStoreProvider", "2"),
        ("hdfs", "HDFSBackedStateStoreProvider", "1"),  # it knows no other
    )
}
"""What a query needs for the store of its state, by the name that a step calls it."""

_FIXED = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": HEAP,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # Spark's own pattern, and what a login to Kafka is made of.
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|keystore",
    # Each batch lists its own files again, by default in up to 10 000 tasks: 20 000 files cost 18 s
    # instead of 1 s.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
    # What a batch and a table have in common is broadcast as soon as it is found, which of a large
    # table takes minutes: after five of them Spark gives up by default.
    "spark.sql.broadcastTimeout": "86400",
    # A task reads up to 1,000 small files and not 32 (4 MB each): 20,000 of one record took 68 and
    # now 28 CPU-seconds (with 512 kB 32, with 32 kB 25).
    "spark.sql.files.openCostInBytes": "131072",
    # Decoding a declared encoding: every charset of Java, and a replacement character (which marks
    # the row) instead of the end of the run.
    "spark.sql.legacy.javaCharsets": "true",
    "spark.sql.legacy.codingErrorAction": "true",
    # `from_json` else asks at each field whether a filter was pushed down to it: none ever is.
    "spark.sql.json.filterPushdown.enabled": "false",
    # Eight bytes a time and not twelve, with least and greatest in each file's own index, which
    # Spark's INT96 has not (3,000,000 orders: 6.7 and not 8.2 CPU-seconds to encode them).
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Renames through `FileSystem`: through `FileContext` each file of a checkpoint on a disk costs
    # eight processes (`readlink`), a twentieth of a small run.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    # Delta else refuses a version older than a week, whose files are there all the same: a table
    # that rested so long is compared with what it was before the batch.
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false",
    # A list of all its files beside a table's commit is, for a new table, read back from its log by
    # a query: 10,000 orders into empty tables took 14.4 and now 13.4 CPU-seconds; later runs, which
    # ask for the table's state all the same, as much as before.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    **STATE_STORES["rocksdb"],
    f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
    # The report tells what is held: counting costs a lookup a write, reading the store a run.
    f"{_STATE}.rocksdb.trackTotalNumberOfRows": "true",
    # One bound for all stores of a JVM, instead of one that grows with each partition.
    f"{_STATE}.rocksdb.boundedMemoryUsage": "true",
    # Runs shorter than a minute otherwise never snapshot or clean their state.
    f"{_STATE}.unloadOnCommit": "true",
    # A run loads the newest snapshot and plays what changed since, record by record: at Spark's ten
    # versions a million keys are played again by most runs.
    f"{_STATE}.minDeltasForSnapshot": "2",
}

_LOCAL = {
    # Rows are kept and shuffled in compressed blocks of 32 kB by default, each with a head of its
    # own (3,000,000 orders: 6.1 CPU-seconds, and 4.8 in these). A task holds two blocks for each
    # part of a shuffle: on a cluster, which may cut it into 200, that is too much.
    "spark.io.compression.lz4.blockSize": "256k",
}


def find_jar_sets(pipeline: Pipeline, root: str) -> tuple[str, ...]:
    """The sets of jars beside `core` that a pipeline's sources, sinks and places need.

    Args: root: where its tables and checkpoints lie.
    """
    parts = (part for step in pipeline.steps for part in (*step.sources, *step.sinks))
    needed = {name for part in parts for name in part.jar_sets}
    return tuple(sorted(needed | ({"s3"} if in_bucket(root) else set())))


def _has_python(pipeline: Pipeline) -> bool:
    return any(".py:" in code for step in pipeline.steps for code in step.transforms)


def _runs_at_once(pipeline: Pipeline, root: str) -> bool:
    return count_at_once(pipeline, order_steps(pipeline, pipeline.paths(root))) > 1


NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"
WATERMARK_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
STATE_ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
SHARED_SHUFFLES = "spark.sql.exchange.reuse"
"""Whether operators over the same rows share one shuffle. Spark 4.2 lets no watermark through one
that is shared (`WatermarkPropagator` meets a leaf): an operator behind it closes nothing."""


PARTITIONS = ("spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions")
"""Parts into which a shuffle, and Delta's rebuilding of a table's state, are cut. Delta's own 50
are most of a short run on a small table."""


_FIRST_LOOK = 2
"""Parts on a cluster until its executors are counted (`spark.executors`): what is read before that
is a table's log."""


def partitions_for(master: str) -> int:
    """Parts of a shuffle as a run begins: the cores of a local master.

    Adaptive execution merges small ones.
    """
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    if match is None:
        return _FIRST_LOOK
    cores = os.cpu_count() or 2
    return max(1, min(16, cores if match[1] == "*" else int(match[1] or 1)))


def _cluster_settings(master: str, small: bool, core: list[str], jars: list[str]) -> dict[str, str]:
    """What executors on other machines are given."""
    settings = {
        "spark.jars": ",".join(jars),  # executors elsewhere get them from the driver
        # Before the site's own `spark.executor.extraJavaOptions`, not in their place.
        "spark.executor.defaultJavaOptions": executor_options(small),
        # A task of a second otherwise waits three for the executor that holds its rows.
        "spark.locality.wait": "200ms",
        "spark.ui.retainedStages": "20000",  # the report adds up what their tasks cost
    }
    if master.startswith("spark://"):
        # Machines with the same installation start from the class archive, which is of these jars.
        # YARN's and Kubernetes' own defaults often name others there.
        settings["spark.executor.extraClassPath"] = os.pathsep.join(core)
    return settings


def _room_for_state(pipeline: Pipeline, local: bool) -> int:
    """Megabytes beside the heap that RocksDB may take in each JVM that holds state: a quarter of
    the heap."""
    name, usual = ("driver", HEAP) if local else ("executor", "1g")
    return max(64, quarter_of(pipeline.spark.get(f"spark.{name}.memory", usual)))


def spark_settings(
    pipeline: Pipeline,
    backlog_bytes: int | None,
    jar_sets: tuple[str, ...] = ("core",),
    master: str | None = None,
    root: str | None = None,
) -> dict[str, str]:
    """Every Spark setting of a run, the pipeline's own `spark:` entries last.

    Args:
        pipeline: names the master, and by its sources and sinks the jars.
        backlog_bytes: bytes waiting, None when unknown (then the settings of a large backlog).
        jar_sets: wanted beside those that the pipeline needs.
        master: wins over the pipeline's.
        root: where tables and checkpoints lie, by default where `Paths.under` says.

    Raises PreflightError when a jar of a set is missing.
    """
    master, root = master or pipeline.master, Paths.under(root, pipeline.name).root
    sets = tuple(dict.fromkeys((*jar_sets, *find_jar_sets(pipeline, root))))
    core, jars = ([str(p) for p in jar_paths(*names)] for names in (("core",), sets))
    local = master.startswith("local")
    small = backlog_bytes is not None and backlog_bytes < SMALL_BACKLOG
    settings = {
        "spark.master": master,
        "spark.app.name": f"sluice-{pipeline.name}",
        **dict.fromkeys(PARTITIONS, str(partitions_for(master))),
        # The class archive is of these jars: more of them here would make it of no use.
        "spark.driver.extraClassPath": os.pathsep.join(core),
        "spark.driver.extraJavaOptions": java_options(
            small, pipeline.spark.get("spark.driver.memory", HEAP)
        ),
        # PySpark notes for each operation on a column which line asked for it, by a dozen calls
        # into the JVM: a tenth of a small run. Only a transform in Python is worth it, whose
        # line is then in the error.
        "spark.python.sql.dataFrameDebugging.enabled": str(_has_python(pipeline)).lower(),
        **_FIXED,
        # Else the tasks of a step that began first are all started before those of another one.
        **({"spark.scheduler.mode": "FAIR"} if _runs_at_once(pipeline, root) else {}),
        f"{_STATE}.rocksdb.maxMemoryUsageMB": str(_room_for_state(pipeline, local)),
        **(s3_settings(in_bucket(root)) if "s3" in sets else {}),
    }
    settings |= _LOCAL if local else _cluster_settings(master, small, core, jars)
    if local and (more_jars := [jar for jar in jars if jar not in core]):
        # `local:` reads them where they lie, instead of copying 686 MB of S3 client.
        settings["spark.jars"] = ",".join(f"local:{jar}" for jar in more_jars)
    return {**settings, **pipeline.spark}
