"""One Spark session for all tests that need one."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # Spark's look at a plan after each rule of its optimizer, and the text of the plan.
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.ui.explainMode": "simple",
}
COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.lightweightPlanChangeValidation": "true",
    "spark.sql.ui.explainMode": "formatted",
}


@pytest.fixture(scope="module")
def compiled(spark):
    """Generated code, adaptive and checked plans, as in a run of the product."""
    for key, value in COMPILED.items():
        spark.conf.set(key, value)
    yield
    for key, value in INTERPRETED.items():
        spark.conf.set(key, value)


@pytest.fixture(scope="module")
def two_partitions(spark):
    """Rows that are parted by key, as those of a larger batch: for tests in which their order or
    their place might decide something."""
    from sluice.spark import kept

    spark.conf.set("spark.sql.shuffle.partitions", "2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "FEW_ROWS", 0)
        yield
    spark.conf.set("spark.sql.shuffle.partitions", "1")


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A small local session with Delta; ended with the test session."""
    yield from open_test_session(tmp_path_factory.mktemp("warehouse"))


NAMED = (
    "org.apache.spark.api.python.PythonUtils",
    "org.apache.spark.sql.api.python.PythonSQLUtils",
    "org.apache.spark.sql.functions",
)
"""What PySpark asks the JVM for by its last name, several hundred times a run. Java looks for such
a name in each of a dozen packages, and for each in all jars on the class path, unless it is told
where it is: up to a twentieth of the CPU of a test session."""


def open_test_session(warehouse: Path, *class_path: Path) -> Iterator:
    """A session, which is stopped when the iterator ends.

    Args: class_path: more folders or jars for its class path.
    """
    from py4j.java_gateway import java_import
    from pyspark.sql import SparkSession
    from sluice.launch.jvm_flags import java_options
    from sluice.setup.fetch import fetch_jars
    from sluice.setup.jars import jar_paths

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2]").appName("sluice-tests")
    for key, value in {
        "spark.driver.extraClassPath": os.pathsep.join(
            map(str, [*jar_paths("core"), *fetch_jars("avro", "kafka", "jdbc"), *class_path])
        ),
        "spark.driver.memory": "3g",
        # As for a large backlog, and with room: this JVM lives for many runs, and compiles much
        "spark.driver.extraJavaOptions": f"{java_options(False)} -XX:ReservedCodeCacheSize=400m",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        # Else a sort takes 64 MB and a broadcast 4 MB of the heap, which Java has to clear and to
        # collect: of runs over a handful of rows these were a third of all bytes taken.
        "spark.buffer.pageSize": "1m",
        "spark.broadcast.blockSize": "64k",
        # A test's batch holds a handful of rows: compiling code for it and planning it twice took
        # a quarter of its time; its plans are not checked either. Tests of parity and of size do
        # all of it, and so do the runs that have a process of their own.
        **INTERPRETED,
        "spark.sql.warehouse.dir": str(warehouse),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    for name in NAMED:
        java_import(session.sparkContext._jvm, name)
    yield session
    session.stop()
