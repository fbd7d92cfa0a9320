"""Rows of a batch that are read more than once, kept as they came out of the first pass."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame

FEW_ROWS = 50_000
"""That one task sorts in no time beside what a second one costs."""


@contextmanager
def keep_rows(frame: DataFrame, on_disk: bool = False) -> Iterator[DataFrame]:
    """The same rows, computed once, at the first action, and let go at the end; what memory does
    not hold, or all where `on_disk` says so, lies on the executors' disks.

    A local checkpoint and no cache: rows that an executor loses fail the batch, which comes again
    as a whole, where a cache would read the source once more, and a topic may give other records
    then. It also costs less: a cache turns rows into compressed columns (measured: 0.6-2 against 7
    CPU-seconds for 500 000 records). Many rows in memory make the JVM grow and collect (measured,
    3 000 000 records: 119 against 106 CPU-seconds, 4.0 against 2.9 GB); of few, writing them costs
    more (500 000 of Kafka: a seventh of the run).
    """
    level = StorageLevel.DISK_ONLY if on_disk else StorageLevel.MEMORY_AND_DISK_DESER
    kept = frame.localCheckpoint(eager=False, storageLevel=level)
    try:
        yield kept
    finally:
        kept._jdf.queryExecution().analyzed().rdd().unpersist(False)


def gather(kept: DataFrame, rows: int) -> DataFrame:
    """Kept rows in one partition, where they are few: no shuffle is needed then to sort them by
    key, nor a stage for each side of it (measured, 10,000 orders into empty tables: 13.7 and not
    14.3 CPU-seconds of a run). Args: rows: about how many they are."""
    return kept.coalesce(1) if rows <= FEW_ROWS else kept
