"""One row per key: within the batch, and against the table.

The table is the memory: an insert-only MERGE, pruned to the event times in which a copy of this batch's rows can lie.
"""

from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, MapType, StructType

from ..spec import Step
from .columns import col, quote


def reduce_by_key(rows: DataFrame, step: Step, keys: list[str], business: StructType) -> DataFrame:
    """Keep one row a key. Which one is decided by `order_by`, then by content, so that no cut of the backlog changes it."""
    if set(keys) >= set(business.names):
        return rows.dropDuplicates(keys)  # full copies: every choice is the same row
    ranks = [col(term.split()[0]).desc() if term.lower().endswith(" desc") else col(term.split()[0]).asc() for term in step.dedup.order_by]
    content = [F.to_json(col(f.name)) if isinstance(f.dataType, MapType) else col(f.name) for f in business.fields]
    order = Window.partitionBy(*[col(k) for k in keys]).orderBy(*ranks, F.xxhash64(*content))
    return rows.withColumn("_rank", F.row_number().over(order)).where("_rank = 1").drop("_rank")


def _literal(micros: int, kind: DataType) -> str:
    """A time as a SQL literal of the column's type, so that the comparison reads the file statistics."""
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return f"CAST('{time.year:04d}-{time:%m-%d %H:%M:%S.%f}' AS {kind.simpleString()})"


def merge_condition(step: Step, keys: list[str], business: StructType, oldest: int, newest: int) -> str:
    """The MERGE's ON clause. `oldest`, `newest`: the batch's event times, epoch microseconds; NULL equals NULL only where the key is the whole row."""
    equals = "<=>" if step.dedup.keys == "*" else "="
    terms = [f"t.{quote(k)} {equals} s.{quote(k)}" for k in keys]
    kind = business[step.event_time.column].dataType
    if step.dedup.within != "forever" and kind.simpleString() in ("timestamp", "timestamp_ntz", "date"):
        reach = int(step.dedup.within.total_seconds() * 1_000_000) + (86_400_000_000 if kind.simpleString() == "date" else 0)
        low, high = max(oldest - reach, -62_135_596_800_000_000), min(newest + reach, 253_402_300_799_999_999)
        time = f"t.{quote(step.event_time.column)}"
        terms.append(f"{time} >= {_literal(low, kind)} AND {time} <= {_literal(high, kind)}")
    return " AND ".join(terms)
