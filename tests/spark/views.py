"""Small tables that SQL sees by their names."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame


@contextmanager
def cached_tables(spark, frames: Mapping[str, DataFrame]) -> Iterator[Mapping[str, DataFrame]]:
    """Frames that are cached, and let go with the views of them at the end."""
    yield frames
    for name, frame in frames.items():
        frame.unpersist()
        spark.catalog.dropTempView(name)


def query_views(spark, query: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """What a query makes of frames, each by its name."""
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    return spark.sql(query)
