"""The JVM behind this Python process."""

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from ..launch import JVM_LOG, launcher_options, write_properties

JVM_GONE = (Py4JError, ConnectionError)
"""What a call may raise when the JVM behind it has ended: py4j tells some broken connections by a
bare Py4JError, so only `has_jvm_ended` tells for certain."""
_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"


def start_jvm(settings: Mapping[str, str]) -> None:
    """Start the JVM of this process, unless there is one: spark-submit's, or an earlier session's.

    The settings travel in a file that only we can read. What the JVM prints goes to the file that
    `$SLUICE_JVM_LOG` names, where one is named (`/dev/stderr` shows it).
    """
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", launcher_options())
    log = os.environ.get(JVM_LOG)
    with write_properties(settings) as file, open(log, "ab") if log else nullcontext() as output:
        # The site's own defaults stay in force beneath ours, as they do without a file.
        arguments = f"--load-spark-defaults --properties-file {shlex.quote(str(file))}"
        with _submit_arguments(arguments):
            gateway = launch_gateway(popen_kwargs={"stdout": output, "stderr": output})
        SparkContext._ensure_initialized(gateway=gateway)


@contextmanager
def _submit_arguments(ours: str) -> Iterator[None]:
    """Put arguments before those that pyspark's launcher finds in the environment."""
    theirs = os.environ.get(_ARGUMENTS)
    os.environ[_ARGUMENTS] = f"{ours} {theirs or 'pyspark-shell'}"
    try:
        yield
    finally:
        if theirs is None:
            del os.environ[_ARGUMENTS]
        else:
            os.environ[_ARGUMENTS] = theirs


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


def has_jvm_ended(patience: float = 2.0) -> bool:
    """True where the JVM that this process started is gone within some seconds; a connection to it
    breaks a moment before it is."""
    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        return False
    return True


def jvm_of(session: SparkSession) -> Any:
    """The classes of a session's JVM, by their names."""
    return session._jvm


def java_uri(session: SparkSession, path: str) -> str:
    """A path as Java writes its address: what Spark logs of a file, to the letter."""
    return jvm_of(session).org.apache.hadoop.fs.Path(path).toUri().toString()
