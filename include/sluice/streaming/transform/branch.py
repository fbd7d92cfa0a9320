"""A query that may change the number of rows: what it makes stands beside what it was given."""

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ...errors import SpecError
from ...spark.columns import DEFECT, ENTERED, PARSED, STAGE
from ...spark.custom_state import FUNCTION, PROCESSOR
from ...spark.plans import column_of, frame_of_plan, items, kind, walk
from .names import CARRIED, check_names
from .origin import ROW, bare, carry, is_marked, is_shown, trace

_OPAQUE = {"MapInPandas", "MapInArrow", "PythonMapInArrow", "ScriptTransformation"}
"""Nodes whose rows come out of code that Spark cannot look into, row by row."""

_GATHERING = {"Aggregate", "Distinct", "Intersect", "Except", PROCESSOR, FUNCTION}
"""Nodes whose rows are made of several."""


def run_on_branch(frame: DataFrame, plan: JavaObject, where: str) -> DataFrame:
    """The rows that a query makes, and once more each record that it was given.

    The latter to be counted, or malformed and on its way to quarantine.

    Args:
        frame: the parsed rows.
        plan: of the query over their view.
        where: the transform, for errors.

    Raises SpecError for a query that does not read the rows, and for one that hides where its rows
    come from.
    """
    spark = frame.sparkSession
    output = items(plan.output())
    own = next((attribute for attribute in output if is_origin(attribute)), None)
    made = [a for a in output if not is_shown(a) and not is_origin(a)]
    check_names([attribute.name() for attribute in made], where)
    carried = carry(spark, plan)
    if carried is not None:
        rows, origin = frame_of_plan(spark, carried), trace(plan)
    else:
        rows, origin = frame_of_plan(spark, plan), _gathered(spark, frame, plan, own, where)
    entered = rows.select(
        *[bare(spark, attribute) for attribute in made],
        *[column.alias(name) for name, column in origin.items()],
        F.lit(ENTERED).alias(STAGE),
    )
    stage = F.when(F.col(DEFECT).isNull(), F.lit(PARSED)).otherwise(F.lit(ENTERED))
    counted = frame.select(*CARRIED, stage.alias(STAGE))
    return entered.unionByName(counted, allowMissingColumns=True)


def _gathered(
    spark: SparkSession, frame: DataFrame, plan: JavaObject, own: JavaObject | None, where: str
) -> dict[str, Column]:
    """The origin of rows made of several: what the query itself says in `_row`, else none."""
    if not any(is_marked(node) for node in walk(plan)):
        raise SpecError(
            "the transform does not read the rows of the step",
            where=where,
            do="Write SELECT ... FROM source; a function makes its frame of the one it is given",
        )
    if own is not None:
        return {name: column_of(spark, own)[name] for name in CARRIED}
    opaque = _hiding(plan)
    if opaque:
        raise SpecError(
            f"the transform drops the column {ROW}, "
            "so its rows could not be traced to where they came from",
            where=where,
            value=opaque,
            do=f"Let the function return {ROW} as well, as it came",
        )
    return {name: F.lit(None).cast(frame.schema[name].dataType) for name in CARRIED}


def _hiding(node: JavaObject, above: str = "") -> str:
    """The user's code between the marked rows and the result that hides where a row came from;
    empty where there is none, and where something on the way gathers rows, which have no single
    origin any more. Args: above: such code above the node."""
    if kind(node) in _GATHERING:
        return ""
    if is_marked(node):
        return above
    code = kind(node) if kind(node) in _OPAQUE else above
    return next(filter(None, (_hiding(child, code) for child in items(node.children()))), "")


def is_origin(attribute: JavaObject) -> bool:
    """True for a `_row` that a query put together itself, as `first(_row) AS _row`."""
    kept = attribute.dataType()
    return attribute.name() == ROW and kind(kept) == "StructType" and {*kept.names()} >= {*CARRIED}
