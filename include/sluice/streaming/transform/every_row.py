"""A query that only computes columns and leaves rows out, as columns of the one frame.

Every row is still there afterwards.
"""

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ...spark.columns import DEFECT, ENTERED, FILTERED, STAGE, col
from ...spark.plans import (
    analyzed_plan,
    column_of,
    frame_of_plan,
    holds,
    items,
    kind,
    null_unless,
    walk,
    with_children,
)
from .names import check_names
from .origin import bare, hidden, is_marked, is_shown, unmark

_KEPT = "kept by every WHERE so far"
_NAMING = ("SubqueryAlias", "View", "PipeOperator")
"""Nodes that compute nothing: a name, a step of a query that is written with `|>`."""
_CALM = {
    *("AttributeReference", "Literal", "GetStructField", "CreateNamedStruct", "If", "CaseWhen"),
    *("IsNull", "IsNotNull", "Coalesce", "And", "Or", "Not", "EqualTo", "EqualNullSafe", "In"),
    *("LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "Size", "Length"),
    *("Upper", "Lower", "StringTrim", "Concat", "StartsWith", "EndsWith", "Contains"),
}
"""Expressions that raise for no row where what they are made of does not.

All others are computed for kept rows only.
"""


def find_chain(plan: JavaObject, spark: SparkSession) -> list[JavaObject] | None:
    """The source's rows, and above them the nodes of a query that only selects and filters.

    None for any other query: a query inside an expression needs a join, and Spark calls Python for
    every row whatever condition stands around the call: neither is of this kind.
    """
    chain: list[JavaObject] = []
    node = plan
    while not is_marked(node):
        if kind(node) in ("Project", "Filter"):
            if any(
                holds(spark, e, "PYTHON_UDF", "PLAN_EXPRESSION") for e in items(node.expressions())
            ):
                return None
            chain.append(node)
        elif kind(node) not in _NAMING:
            return None
        node = node.child()
    return [node, *reversed(chain)]


def keep_every_row(spark: SparkSession, chain: list[JavaObject], where: str) -> DataFrame:
    """All rows of the source: what a WHERE leaves out is marked `filtered`.

    Nothing that could raise is computed for such a row, nor for a malformed one.

    Args:
        chain: as `find_chain` says.
        where: the transform, for errors.
    """
    sound, *nodes = chain
    output = [a for a in items(nodes[-1].output()) if not is_shown(a)]
    check_names([attribute.name() for attribute in output], where)
    frame = frame_of_plan(spark, sound.child()).withColumn(_KEPT, _passes(spark, sound))
    for node in nodes:
        if kind(node) == "Filter":
            passes = F.when(col(_KEPT), _passes(spark, node)).otherwise(F.lit(False))
            frame = frame.withColumn(_KEPT, passes)
        else:
            kept = next(a for a in items(analyzed_plan(frame).output()) if a.name() == _KEPT)
            computed = [_computed(spark, e, kept) for e in items(node.projectList())]
            frame = frame.select(*computed, *hidden(), col(_KEPT))
    origin = unmark()
    stage = F.when(origin[DEFECT].isNotNull() | col(_KEPT), F.lit(ENTERED))
    return frame.select(
        *[bare(spark, attribute) for attribute in output],
        *[column.alias(name) for name, column in origin.items()],
        stage.otherwise(F.lit(FILTERED)).alias(STAGE),
    )


def _passes(spark: SparkSession, condition: JavaObject) -> Column:
    """True where a WHERE holds; where it is unknown, it does not."""
    return F.coalesce(column_of(spark, condition.condition()), F.lit(False))


def _computed(spark: SparkSession, expression: JavaObject, kept: JavaObject) -> Column:
    """A selected expression; one that could raise is NULL for the rows that a WHERE left out."""
    if any(
        kind(part) not in _CALM for below in items(expression.children()) for part in walk(below)
    ):
        value = null_unless(spark, kept, items(expression.children())[0])
        expression = with_children(spark, expression, [value])
    return column_of(spark, expression)
