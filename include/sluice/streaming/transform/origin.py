"""Where a row comes from, carried through whatever a query does to it, unseen by the query.

The record's `_raw`, `_defect`, `_rescued` and `_source` lie under the view that a transform reads,
by names that it cannot meet; afterwards each node of its plan that would drop them is rebuilt so
that it does not.
"""

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ...spark.columns import DEFECT, RAW, col
from ...spark.plans import (
    analyzed_plan,
    column_of,
    expand,
    frame_of_plan,
    items,
    kind,
    project,
    walk,
    with_children,
)
from .names import CARRIED

ROW = "_row"
"""The origin as one struct, for a query that wants to see it."""
_OURS = "sluice.engine"
"""Metadata of an engine's column that a query was shown, unlike one that it named so itself."""
_COMPARING = {"Distinct", "Intersect", "Except"}
"""Nodes for which rows are one when all columns are: the origin would keep them apart."""
_UNFOLDING = {"Generate", "Expand", "LateralJoin"}
"""Nodes that make several rows of one."""
_MARKS = {name: f"{name}, as the source gave it" for name in CARRIED}


def mark(frame: DataFrame) -> DataFrame:
    """The rows with their origin under the names that no query meets."""
    return frame.withColumnsRenamed(_MARKS)


def view_of(marked: DataFrame, mentions: str) -> DataFrame:
    """The sound rows as a transform sees them.

    Args:
        marked: as `mark` makes them.
        mentions: a text that names the engine's columns to show; `*` brings no others along.
    """
    origin = unmark()
    shown = {**origin, ROW: F.struct(*[column.alias(name) for name, column in origin.items()])}
    ours = [
        column.alias(name, metadata={_OURS: name})
        for name, column in shown.items()
        if name in mentions
    ]
    business = [col(name) for name in marked.columns if name not in _MARKS.values()]
    return marked.where(col(_MARKS[DEFECT]).isNull()).select(*business, *ours)


def is_shown(attribute: JavaObject) -> bool:
    """True for an engine's column that came through a query as it was shown to it."""
    metadata = attribute.metadata()
    return metadata.contains(_OURS) and metadata.getString(_OURS) == attribute.name()


def is_marked(node: JavaObject) -> bool:
    """True when a node's rows still have their origin."""
    return len(_marks_of(node)) == len(CARRIED)


def bare(spark: SparkSession, attribute: JavaObject) -> Column:
    """A column of the user's, without what was noted on the engine's column that it may be."""
    column = column_of(spark, attribute)
    if not attribute.metadata().contains(_OURS):
        return column
    return column.alias(attribute.name(), metadata={})


def unmark() -> dict[str, Column]:
    """The origin by its own names."""
    return {name: col(mark) for name, mark in _MARKS.items()}


def trace(plan: JavaObject) -> dict[str, Column]:
    """The origin of rows that a query made, each of one record.

    Where it makes several of one, the text of that record says of none which it was: a refused row
    is then kept as it was made.
    """
    if not any(kind(node) in _UNFOLDING for node in walk(plan)):
        return unmark()
    return unmark() | {RAW: F.lit(None).cast("string")}


def hidden() -> list[Column]:
    """The origin under the names that no query meets."""
    return [col(mark) for mark in _MARKS.values()]


def carry(spark: SparkSession, node: JavaObject) -> JavaObject | None:
    """A node rebuilt so that each of its rows has the origin of the record it was made of.

    None where a row has no single origin, as behind an aggregation. Of a query that joins the
    source with itself, a row has the origin of its first side.
    """
    if is_marked(node):
        return node
    below = items(node.children()) if kind(node) not in _COMPARING else []
    for place, child in enumerate(below):
        carried = carry(spark, child)
        if carried is not None:
            return _rebuild(spark, node, [*below[:place], carried, *below[place + 1 :]], carried)
    return None


def _rebuild(
    spark: SparkSession, node: JavaObject, below: list[JavaObject], carried: JavaObject
) -> JavaObject | None:
    """A node over children of which one carries the origin."""
    marks = _marks_of(carried)
    if kind(node) == "Project":
        return project(spark, [*items(node.projectList()), *marks], carried)
    if kind(node) == "Expand":
        rows = [[*items(projection), *marks] for projection in items(node.projections())]
        return expand(spark, rows, [*items(node.output()), *marks], carried)
    if kind(node) == "Union":
        return with_children(
            spark,
            node,
            [_padded(spark, c, carry(spark, c), carried) for c in items(node.children())],
        )
    rebuilt = with_children(spark, node, below)
    return rebuilt if is_marked(rebuilt) else None


def _padded(
    spark: SparkSession, child: JavaObject, own: JavaObject | None, carried: JavaObject
) -> JavaObject:
    """A part of a union with its origin as its last columns, NULL where it has none."""
    columns = [column_of(spark, attribute) for attribute in items(child.output())]
    if own is not None:
        frame = frame_of_plan(spark, own)
        return analyzed_plan(frame.select(*columns, *hidden()))
    types = frame_of_plan(spark, carried).schema
    nothing = [F.lit(None).cast(types[mark].dataType).alias(mark) for mark in _MARKS.values()]
    return analyzed_plan(frame_of_plan(spark, child).select(*columns, *nothing))


def _marks_of(node: JavaObject) -> list[JavaObject]:
    """The attributes of a node's output that hold the origin; of a join's sides, the first's."""
    found: dict[str, JavaObject] = {}
    for attribute in items(node.output()):
        found.setdefault(attribute.name(), attribute)
    return [found[mark] for mark in _MARKS.values() if mark in found]
