"""Operators with state that Spark 4.2 takes and gets wrong, or that end with another result when a
backlog is cut otherwise: found in a query's plan before it starts.

Sources: apache/spark #58238 and #57813 (outer joins whose watermark is on one side), #58562
(EXCEPT), read in the code of 4.2; the rest follows from how a micro-batch works.
"""

from collections.abc import Iterator

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame

from ..errors import SpecError
from .plans import analyzed_plan, items, joins_streams, kind, walk

_DELAY = "spark.watermarkDelayMs"
_BOTH = (
    "Give both inputs a watermark, and write a condition on both event times: `c.at BETWEEN i.at "
    "AND i.at + INTERVAL 1 HOUR`, or equal windows of both"
)
_KEEPS_ALL = (
    "a join of two streams keeps every row of both for ever, because no condition on both event "
    f"times says when a row can have no match any more. {_BOTH}"
)


def check_placement(frame: DataFrame, where: str) -> list[str]:
    """Raise SpecError for an operator that would give wrong rows, or lose some, without a word;
    what is right and costs more than one may think comes back as sentences.

    Args: where: the step, for the message.
    """
    plan = analyzed_plan(frame)
    nodes = [node for node in walk(plan) if node.isStreaming()]
    for node in nodes:
        found = _why_wrong(node)
        if found is not None:
            why, do = found
            raise SpecError(why, where=where, value=kind(node), do=do)
    joins = [node for node in nodes if joins_streams(node)]
    if any(_list_two_times(joins)):  # columns that nobody reads above it do not reach the join
        optimizer = frame.sparkSession._jsparkSession.sessionState().optimizer()
        reached = [node for node in walk(optimizer.execute(plan)) if joins_streams(node)]
        for times in _list_two_times(reached):
            raise SpecError(
                "one side of a join of two streams has two columns of event time, and Spark takes "
                "one",
                where=where,
                value=", ".join(times),
                do="Select one of them below the join: the time, or the window that is made of it",
            )
    unbounded = (join for join in joins if not all(_timed_sides(join)))
    return [_KEEPS_ALL for _ in unbounded][:1]


def _list_two_times(joins: list[JavaObject]) -> Iterator[list[str]]:
    """The columns of event time on a side of a join that has more than one."""
    for side in (side for join in joins for side in items(join.children())):
        timed = [a for a in items(side.output()) if a.metadata().contains(_DELAY)]
        if len({a.exprId().id() for a in timed}) > 1:
            yield [a.name() for a in timed]


def _why_wrong(node: JavaObject) -> tuple[str, str] | None:
    """Why an operator is refused, and what to do instead."""
    name = kind(node)
    if name in ("GlobalLimit", "LocalLimit"):
        return (
            "LIMIT over a stream takes the first rows that ever come, and no others",
            "Leave it out, or write a condition that tells which rows are wanted",
        )
    if name == "Except" and node.left().isStreaming():
        return (
            "EXCEPT with a stream on its left is no operation that Spark can continue from run to "
            "run",
            "Write `LEFT ANTI JOIN` against a static table, or `WHERE NOT EXISTS` over one",
        )
    if name == "EventTimeWatermark" and any(
        kind(below) == name for child in items(node.children()) for below in walk(child)
    ):
        return (
            "a watermark is declared above another one, which Spark refuses as soon as the first "
            "has moved",
            "Leave one of them out: `watermark` of the input, or `withWatermark` in the transform",
        )
    joins = joins_streams(node) and node.joinType().toString() != "Inner"
    if joins and not all(_timed_sides(node)):
        return (
            f"a join of two streams ({node.joinType().sql().lower()}) must know of both when a row "
            "can have no match any more; with a watermark on one side alone rows would be wrong or "
            "never come",
            _BOTH,
        )
    return None


def _timed_sides(join: JavaObject) -> list[bool]:
    """Of the left and of the right side: whether the condition names its event time."""
    condition = join.condition()
    named = items(condition.get().references().toSeq()) if condition.nonEmpty() else []
    timed = [attribute for attribute in named if attribute.metadata().contains(_DELAY)]
    return [
        any(side.outputSet().contains(attribute) for attribute in timed)
        for side in (join.left(), join.right())
    ]
