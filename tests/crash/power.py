"""Cuts the power of a run at one durable operation.

Nothing that the JVM or Python does below a folder after that moment leaves a trace on disk. The
JVM's side is a Hadoop file system (Power.java, compiled by the compiler that Spark brings),
Python's side an audit hook.
"""

import errno
import os
import sys
import threading
from pathlib import Path

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

_SOURCE = Path(__file__).with_name("Power.java")
_CREATES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class PowerCut(Exception):
    """Raised by whatever Python tries to write after the power was cut."""


class Power:
    """The switch of both sides; a session has one.

    Args: classes: a folder that was on the session's class path when it started.
    """

    def __init__(self, spark: SparkSession, classes: Path) -> None:
        self._spark, self._jvm = spark, spark._jvm
        compile_classes(spark, classes)
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()
        hadoop.set("fs.file.impl", "power.Power$Files")
        hadoop.set("fs.AbstractFileSystem.file.impl", "power.Power$Context")
        # the file systems opened so far are kept for the session's life
        self._jvm.org.apache.hadoop.fs.FileSystem.closeAll()
        self._switch = self._jvm.power.Power
        self._folder: str | None = None
        self._asking = threading.local()
        sys.addaudithook(
            self._hear
        )  # stays for the life of the process; it does nothing unless armed

    def arm(self, folder: Path, verb: str, name: str, moment: str) -> None:
        """Wait for the first operation on a path below a folder that a regular expression finds.

        Args: verb: `put` or `remove`. name: the expression.
        """
        self._switch.arm(str(folder), verb, name, moment)
        self._folder = str(folder)

    def restore(self) -> None:
        """The machine starts again: writes work, and what the dead process knew is forgotten."""
        self._folder = None
        self._switch.restore()
        self._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        self._spark.catalog.clearCache()

    @property
    def fired(self) -> bool:
        """Whether the operation was reached since the switch was armed."""
        return self._switch.hasFired()

    def _hear(self, event: str, arguments: tuple) -> None:
        if self._folder is None or getattr(self._asking, "now", False):
            return
        operations = _operations(event, arguments)
        if not operations or not operations[0][1].startswith(self._folder):
            return
        self._asking.now = True
        try:
            for verb, path in operations:
                _act(self._switch.meet(verb, path), path)
        finally:
            self._asking.now = False


def _operations(event: str, arguments: tuple) -> list[tuple[str, str]]:
    """An audit event as what it does to which path."""
    if event in ("os.rename", "os.link"):
        return [("put", os.fspath(arguments[1]))]
    if event in ("os.remove", "os.rmdir", "shutil.rmtree"):
        return [("remove", os.fspath(arguments[0]))]
    if event == "os.mkdir":
        return [("create", os.fspath(arguments[0]))]
    if event == "open" and isinstance(arguments[0], str | os.PathLike) and arguments[2] & _CREATES:
        path = os.fspath(arguments[0])
        return [("write", path)] if path.endswith(".tmp") else [("write", path), ("put", path)]
    return []


def _act(met: str, path: str) -> None:
    if met == "disk full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    if met == "I/O error":
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)
    if met == "partial write":
        Path(path).write_bytes(b'{"run_id": "')
    if met and met != "after":
        raise PowerCut(path)


def compile_classes(spark: SparkSession, folder: Path) -> JavaObject:
    """Compile Power.java in the running JVM into a folder on its class path."""
    compiler = spark._jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_SOURCE.read_text())
    for name, code in dict(compiler.getBytecodes()).items():
        path = folder / f"{name.replace('.', '/')}.class"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(code)
    return compiler
