"""Two tables compared as multisets of rows, group by group."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from ..report import Difference
from ..spark.columns import LATE_BY, col
from ..spark.kept import keep_rows
from ..spec import SYSTEM_COLUMNS

WANTED, HELD, MISSING, SURPLUS = "_wanted", "_held", "_missing", "_surplus"
_OF_THE_RUN = {*SYSTEM_COLUMNS, LATE_BY}
"""Columns that say which run and which of several copies: they may differ."""
_SIDE, _OFF = "_side", "_off"
_SHOWN = 10
"""Groups that are named, of those that differ."""


@dataclass(frozen=True)
class Differing:
    """How two tables differ. `rows`: that are wanted; of them `missing`, and of those that are held
    `surplus`. `groups`: in which rows differ, `samples`: the first of them."""

    rows: int = 0
    missing: int = 0
    surplus: int = 0
    groups: int = 0
    samples: list[Difference] = field(default_factory=list)


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


def count_differences(
    wanted: DataFrame, held: DataFrame, groups: Sequence[str], hidden: Collection[str]
) -> Differing:
    """How two tables differ. Args: as of `compare_groups`; without a group all rows are one.
    hidden: columns whose values are not shown."""
    names = [name for name in groups if name not in hidden]
    off = F.col(MISSING) + F.col(SURPLUS) > 0
    with keep_rows(compare_groups(wanted, held, groups)) as kept:
        totals = kept.agg(
            *(F.coalesce(F.sum(name), F.lit(0)) for name in (WANTED, MISSING, SURPLUS)),
            F.count_if(off),
        )
        rows, missing, surplus, differing = totals.collect()[0]
        first = kept.where(off).orderBy(*map(col, names)) if differing and names else None
        found = first.limit(_SHOWN).collect() if first is not None else []
    samples = [
        Difference(
            group=", ".join(f"{name}={row[name]}" for name in names),
            missing=row[MISSING],
            surplus=row[SURPLUS],
        )
        for row in found
    ]
    return Differing(rows, missing, surplus, differing, samples)


def differ(
    wanted: DataFrame | None,
    held: DataFrame | None,
    by: Sequence[str] = (),
    hidden: Collection[str] = (),
) -> Differing:
    """How two tables of a step differ, without the columns that tell the run. One may be absent:
    then it is as if it were empty. Args: by, hidden: as of `count_differences`."""
    there = wanted if wanted is not None else held
    if there is None:
        return Differing()
    columns = comparable_columns(there)
    sides = [(there.limit(0) if one is None else one).select(*columns) for one in (wanted, held)]
    return count_differences(sides[0], sides[1], by, hidden)


def comparable_columns(rows: DataFrame) -> list[Column]:
    """What rows are compared by: their columns but those that tell the run."""
    return [_as_comparable(one) for one in rows.schema.fields if one.name not in _OF_THE_RUN]


def _as_comparable(field: StructField) -> Column:
    """A column that rows can be grouped by: a map is no such value, its JSON is."""
    said = field.dataType.simpleString()
    if "map<" in said or "variant" in said:
        return F.to_json(col(field.name)).alias(field.name)
    return col(field.name)
