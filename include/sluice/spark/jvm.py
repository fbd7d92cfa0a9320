"""The JVM behind this Python process."""

from typing import Any

from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from pyspark.sql import SparkSession

JVM_GONE = (Py4JNetworkError, ConnectionError)
"""What a call raises when the JVM behind it has ended."""


def jvm_of(spark: SparkSession) -> Any:
    """The packages of the JVM by their names: the way to what PySpark has no door to."""
    return spark._jvm


def end_jvm(timeout: float) -> None:
    """End the JVM that this process started and wait until it is gone.

    Raises subprocess.TimeoutExpired after `timeout` seconds.
    """
    gateway = SparkContext._gateway  # what started the JVM; pyspark has no public name for it
    if gateway is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()  # the JVM ends when its standard input does
    gateway.proc.wait(timeout)
    SparkContext._gateway = SparkContext._jvm = None
