"""Groups of which a row belongs to several at once: what stands for the group gives a list, of
which the query makes a row each."""

from collections.abc import Collection
from dataclasses import replace

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .columns import col
from .forms import Rows, id_of, is_among, trace
from .plans import items, kind


def is_list_of(type_: str, one: str) -> bool:
    """True for the type of a list whose elements have another type, both as SQL spells them."""
    return type_.lower() == f"array<{one.lower()}>"


def unfold(spark: SparkSession, node: JavaObject, rows: Rows, several: Collection[str]) -> Rows:
    """What is known of rows behind a generator: where it is `explode` of a list of groups, each row
    belongs to one of them. With `OUTER` an empty list makes a row of no group, so there it does
    not."""
    generator = node.generator()
    if not several or node.outer() or kind(generator) not in ("Explode", "PosExplode"):
        return rows
    made = trace(spark, generator.child(), rows.origins)
    lists = [group for group in several if is_among(made, rows.groups[group])]
    if not lists:
        return rows
    column = items(node.generatorOutput())[-1]
    one = column.newInstance()
    groups = {**rows.groups, **dict.fromkeys(lists, [one])}
    return replace(rows, origins={**rows.origins, id_of(column): one}, groups=groups)


def explode_groups(rows: DataFrame, several: Collection[str]) -> DataFrame:
    """A row for each group of the lists in some columns."""
    for name in several:
        rows = rows.withColumn(name, F.explode(col(name)))
    return rows
