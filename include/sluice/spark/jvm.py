"""The JVM behind this Python process."""

from typing import Any

from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from pyspark.sql import SparkSession

JVM_GONE = (Py4JNetworkError, ConnectionError)
"""What a call raises when the JVM behind it has ended."""


def end_jvm(timeout: float) -> None:
    """End the JVM that this process started and wait until it is gone. Raises subprocess.TimeoutExpired after `timeout` seconds."""
    gateway = SparkContext._gateway  # what started the JVM; pyspark has no public name for it
    if gateway is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()  # the JVM ends when its standard input does
    gateway.proc.wait(timeout)
    SparkContext._gateway = SparkContext._jvm = None


def jvm_of(session: SparkSession) -> Any:
    """The classes of a session's JVM, by their names."""
    return session._jvm


def java_uri(session: SparkSession, path: str) -> str:
    """A path as Java writes its address: what Spark logs of a file, to the letter."""
    return jvm_of(session).org.apache.hadoop.fs.Path(path).toUri().toString()
