"""Two tables compared as multisets of rows, group by group."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..spark.columns import col

WANTED, HELD, MISSING, SURPLUS = "_wanted", "_held", "_missing", "_surplus"
_SIDE, _OFF = "_side", "_off"


def compare_groups(wanted: DataFrame, held: DataFrame, groups: Sequence[str]) -> DataFrame:
    """Each group of either, and of its rows `_wanted` and `_held`, how many there are, and
    `_missing` and `_surplus`, how often one is wanted more, or less, than it is held.

    Args: wanted, held: rows of the same columns. groups: those of the columns that tell the group;
    NULL is a value as any other.
    """
    both = wanted.withColumn(_SIDE, F.lit(1)).unionByName(held.withColumn(_SIDE, F.lit(-1)))
    by_row = both.groupBy(*map(col, wanted.columns)).agg(
        F.sum(_SIDE).alias(_OFF),
        F.count_if(F.col(_SIDE) > 0).alias(WANTED),
        F.count_if(F.col(_SIDE) < 0).alias(HELD),
    )
    return by_row.groupBy(*map(col, groups)).agg(
        F.sum(WANTED).alias(WANTED),
        F.sum(HELD).alias(HELD),
        F.sum(F.greatest(F.col(_OFF), F.lit(0))).alias(MISSING),
        F.sum(F.greatest(-F.col(_OFF), F.lit(0))).alias(SURPLUS),
    )
