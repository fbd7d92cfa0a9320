"""Folders of this machine in which Spark keeps rows, shuffles and state while a run goes on.

Spark removes them as it ends. A run that is killed leaves them, of a large batch gigabytes, and so
does each try that is killed after it: what dead runs left is removed by the next one.
"""

import fcntl
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile, gettempdir
from typing import IO

from pyspark.sql import SparkSession

from .executors import is_local
from .jvm import jvm_of

_PREFIX, _SUFFIX = "sluice-", ".scratch"
_SPARKS = re.compile(r"(?:blockmgr|spark)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Nothing that is called otherwise is ever removed."""


@contextmanager
def hold_scratch(spark: SparkSession) -> Iterator[None]:
    """Remove what dead runs of this user left on this machine, and note what this session uses: in
    a file among the temporary ones, locked as long as this process lives. Behind the block, whose
    end stops Spark, nothing of it is left, also where its JVM died."""
    remove_left_behind()
    blocks = _block_folders(spark)
    folders = [*blocks, *_root_folders(spark)]
    note = _note(folders)
    try:
        yield
    finally:
        if any(map(os.path.exists, blocks)):
            _remove(folders)
        if note is not None:
            Path(note.name).unlink(missing_ok=True)
            note.close()


def _note(folders: list[str]) -> IO[str] | None:
    """A locked file that names folders; None where there can be none."""
    with suppress(OSError):
        note = NamedTemporaryFile(  # noqa: SIM115 - open, and locked, until the run ends
            "w", prefix=_PREFIX, suffix=_SUFFIX, delete=False
        )
        try:
            fcntl.flock(note, fcntl.LOCK_EX)
            note.write("\n".join(folders))
            note.flush()
            return note
        except OSError:  # without its lock it would say that this run is dead
            os.unlink(note.name)
    return None


def remove_left_behind() -> None:
    """Remove the folders that dead runs of this user noted; what cannot be removed stays."""
    for path in Path(gettempdir()).glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(OSError), path.open() as note:
            if os.fstat(note.fileno()).st_uid != os.geteuid():
                continue
            fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while its run lives
            _remove(note.read().split("\n"))
            path.unlink(missing_ok=True)


def _remove(folders: list[str]) -> None:
    for folder in folders:
        if _SPARKS.fullmatch(os.path.basename(folder)):
            shutil.rmtree(folder, ignore_errors=True)


def free_bytes(spark: SparkSession) -> int | None:
    """Bytes of rows for which there is room where Spark keeps them, which spreads them evenly over
    its folders; None on a cluster, whose disks are not ours to look at."""
    if not is_local(spark):
        return None
    folders = _block_folders(spark)
    devices = Counter(os.stat(folder).st_dev for folder in folders)
    return min(
        shutil.disk_usage(folder).free * len(folders) // devices[os.stat(folder).st_dev]
        for folder in folders
    )


def _block_folders(spark: SparkSession) -> list[str]:
    """Of kept rows and shuffles, one in each of Spark's local folders."""
    environment = jvm_of(spark).org.apache.spark.SparkEnv.get()
    return [f.getPath() for f in environment.blockManager().diskBlockManager().localDirs()]


def _root_folders(spark: SparkSession) -> list[str]:
    """Of all else, as the state of a step."""
    utils = getattr(getattr(jvm_of(spark).org.apache.spark.util, "Utils$"), "MODULE$")
    return list(utils.getOrCreateLocalRootDirs(spark.sparkContext._jsc.sc().conf()))
