"""Rows of a batch that are read more than once, kept as they came out of the first pass."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame


@contextmanager
def keep_rows(frame: DataFrame) -> Iterator[DataFrame]:
    """The same rows, computed once, at the first action, and let go at the end; meanwhile they lie
    on the executors' disks.

    A local checkpoint and no cache: rows that an executor loses fail the batch, which comes again
    as a whole, where a cache would read the source once more, and a topic may give other records
    then. It also costs less: a cache turns rows into compressed columns (measured: 0.6-2 against 7
    CPU-seconds for 500 000 records). On disk, because rows in memory make the JVM grow and collect
    (measured, 3 000 000 records: 106 against 119 CPU-seconds, 2.9 against 4.0 GB; 10 000: the
    same).
    """
    kept = frame.localCheckpoint(eager=False, storageLevel=StorageLevel.DISK_ONLY)
    try:
        yield kept
    finally:
        kept._jdf.queryExecution().analyzed().rdd().unpersist(False)
