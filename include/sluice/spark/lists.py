"""Groups of which a row belongs to several at once: what stands for the group gives a list, of
which the query makes a row each."""

from collections.abc import Collection
from dataclasses import replace

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .columns import col
from .forms import Rows, id_of, is_among, trace, write_in
from .jvm import jvm_of
from .plans import analyzed_plan, items, kind, sequence

_WINDOW = "spark.timeWindow"
"""By what Spark marks the column that a call of `window` makes."""


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


def unfold_windows(
    spark: SparkSession, node: JavaObject, known: Rows, rows: Rows, several: Collection[str]
) -> Rows:
    """What is known of rows behind the operator that makes a row of each window that a row lies in:
    where the list of these is the group's, each row belongs to one of them.

    Args: known: behind it, but for the window. rows: before it.
    """
    output, made = items(node.output()), [items(one) for one in items(node.projections())]
    for place, column in enumerate(output):
        if not column.metadata().contains(_WINDOW):
            continue
        cut = [trace(spark, projection[place], rows.origins) for projection in made]
        if None in cut:
            continue
        one = column.newInstance()
        for group in several:
            found = [
                way
                for form in rows.groups[group]
                if kind(form) == "CreateArray" and form.children().size() == len(cut)
                for way in _elements(spark, items(form.children()), cut, one)
            ]
            if found:
                groups = {**known.groups, group: found}
                origins = {**known.origins, id_of(column): one}
                known = replace(known, origins=origins, groups=groups)
    return known


def _elements(
    spark: SparkSession, made: list[JavaObject], cut: list[JavaObject | None], one: JavaObject
) -> list[JavaObject]:
    """How each element of a list follows from a window of its own, which is called `one`."""
    first, *others = (
        write_in(spark, element, [(window, one)], exact=True)
        for element, window in zip(made, cut, strict=True)
    )
    return [way for way in first if all(is_among(way, ways) for ways in others)]


def cut_windows(frame: DataFrame, said: str) -> JavaObject:
    """What Spark makes of a call of `window`, over the columns of a frame: of windows that overlap
    an array of what is made of each. Args: said: SQL of a group. Raises what Spark raises."""
    spark, plan = frame.sparkSession, analyzed_plan(frame.select(F.expr(said)))
    own, (made,) = analyzed_plan(frame).output(), items(plan.projectList())
    origins = {id_of(column): column for column in items(own)}
    below = plan.child()
    while kind(below) == "Filter":
        below = below.child()
    if kind(below) == "Project":
        window = next(one for one in items(below.projectList()) if kind(one) == "Alias")
        return trace(spark, made, {**origins, id_of(window): window.child()})
    window, rows = below.output().apply(0), items(below.projections())
    each = [trace(spark, made, {**origins, id_of(window): row.apply(0)}) for row in rows]
    known = jvm_of(spark).org.apache.spark.sql.catalyst.expressions
    return known.CreateArray(sequence(spark, each), False)


def explode_groups(rows: DataFrame, several: Collection[str]) -> DataFrame:
    """A row for each group of the lists in some columns."""
    for name in several:
        rows = rows.withColumn(name, F.explode(col(name)))
    return rows
