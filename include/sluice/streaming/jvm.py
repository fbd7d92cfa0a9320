"""The JVM behind this Python process."""

from pyspark import SparkContext


def end_jvm(timeout: float) -> None:
    """End the JVM that this process started and wait until it is gone. Raises subprocess.TimeoutExpired after `timeout` seconds."""
    gateway = SparkContext._gateway  # what started the JVM; pyspark has no public name for it
    if gateway is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()  # the JVM ends when its standard input does
    gateway.proc.wait(timeout)
    SparkContext._gateway = SparkContext._jvm = None
