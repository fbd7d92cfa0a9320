"""Starts Spark with settings of ours and always stops it."""

import logging
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.metadata import version

import pyspark
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from ..errors import PreflightError, TransientError
from .jvm import JVM_GONE, has_jvm_ended, start_jvm
from .numpy_values import spare_numpy
from .scratch import hold_scratch

TESTED = {"pyspark": "4.2.0", "pyspark-client": "4.2.0", "delta-spark": "4.4.0"}


def check_versions() -> None:
    """Raise PreflightError, by name, for a pair of Spark and Delta that was not tested together."""
    for package, wanted in TESTED.items():
        found = version(package)
        if found != wanted:
            raise PreflightError(
                f"{package} {found} is not supported: Delta calls Spark's internals, so the pair "
                "must be one that was tested",
                where="versions",
                do=f"Install {package}=={wanted} (`make install` does)",
            )
    if pyspark.__version__ != TESTED["pyspark"]:
        raise PreflightError(
            "pyspark's files were overwritten by another version's (pyspark-client?)",
            where="versions",
            value=pyspark.__version__,
            do="Reinstall pyspark and pyspark-client in one version (`make install` does)",
        )


def _check_threads() -> None:
    """Raise PreflightError where PySpark is told to let threads share what Spark knows of each."""
    pinned = os.environ.get("PYSPARK_PIN_THREAD", "true")
    if pinned.lower() != "true":
        raise PreflightError(
            "a batch knows its query, and a step its scheduler pool, by properties of their thread",
            where="PYSPARK_PIN_THREAD",
            value=pinned,
            do="Unset it: PySpark's default is true",
        )


@contextmanager
def open_session(settings: dict[str, str]) -> Iterator[SparkSession]:
    """A Spark session that is stopped at the end, whatever happens.

    One that spark-submit or a test has started is used and left as it is.
    """
    check_versions()
    _check_threads()
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        # They print a Java stack beside an error that we say in a sentence.
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spare_numpy()
    borrowed = SparkSession.getActiveSession()
    if borrowed is None:
        os.environ["TZ"] = "UTC"  # Great Expectations reads bounds without a zone as local time
        time.tzset()
        start_jvm(settings)
    builder = SparkSession.builder
    for key, value in settings.items():
        if borrowed is None or key.startswith(("spark.sql", "spark.databricks")):
            builder = builder.config(key, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark = builder.getOrCreate()
    with _explain_end(), _stop_after(spark) if borrowed is None else nullcontext():
        yield spark


@contextmanager
def _explain_end() -> Iterator[None]:
    """Raise TransientError where the JVM is found gone."""
    try:
        yield
    except JVM_GONE as error:
        if not has_jvm_ended():
            raise
        raise TransientError(
            "the JVM ended in the middle of the run: it was killed, or the machine had no memory",
            do="Lower `max_bytes_per_batch` (of a topic `max_offsets_per_batch`); where the log "
            "tells of Java heap space raise `spark.driver.memory`, else lower it or give the "
            "machine more. Then run again",
        ) from error


@contextmanager
def _stop_after(spark: SparkSession) -> Iterator[None]:
    with hold_scratch(spark):
        try:
            yield
        finally:
            with suppress(*JVM_GONE):
                spark.stop()
