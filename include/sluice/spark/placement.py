"""Operators with state that Spark 4.2 takes and gets wrong, or that end with another result when a
backlog is cut otherwise: found in a query's plan before it starts.

Sources: apache/spark #58238 and #57813 (outer joins whose watermark is on one side), #58562
(EXCEPT), read in the code of 4.2 and tried; the rest follows from how a micro-batch works.
"""

from collections.abc import Callable, Iterable, Iterator

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from ..errors import SpecError
from .columns import TIME
from .joins import list_times, tell_what_stays, why_join_cannot_run, why_join_is_wrong
from .plans import analyzed_plan, items, joins_streams, kind, walk
from .unsupported import why_unsupported
from .watermarks import is_of_input

_PLACES = {"Join": "one side of a join of two streams", "Aggregate": "what rows are gathered by"}
Reason = tuple[str, str] | None
"""Why an operator is refused, and what to do instead; None where it is right."""


def check_placement(frame: DataFrame, where: str, several: bool = False) -> list[str]:
    """Raise SpecError for an operator that would give wrong rows, or lose some, without a word;
    what is right and costs more than one may think comes back as sentences.

    Args:
        where: the step, for the message.
        several: more than one stream is read.
    """
    spark, plan = frame.sparkSession, analyzed_plan(frame)
    nodes = [node for node in walk(plan) if node.isStreaming()]
    _refuse(nodes, lambda node: _why_wrong(spark, node), where)
    if several:
        _refuse(nodes, _why_not_of_input, where)
    if not any(joins_streams(node) or _list_two_times(node) for node in nodes):
        return []
    # Columns that nobody reads do not reach an operator, and a WHERE becomes part of a join.
    optimized = spark._jsparkSession.sessionState().optimizer().execute(plan)
    reached = [node for node in walk(optimized) if node.isStreaming()]
    _refuse(reached, _why_not_started, where)
    told = (tell_what_stays(spark, node) for node in reached if joins_streams(node))
    return list(dict.fromkeys(sentence for sentence in told if sentence))


def _refuse(
    nodes: Iterable[JavaObject], why_not: Callable[[JavaObject], Reason], where: str
) -> None:
    for node in nodes:
        found = why_not(node)
        if found is not None:
            why, do = found
            raise SpecError(why, where=where, value=kind(node), do=do)


def _why_wrong(spark: SparkSession, node: JavaObject) -> Reason:
    name = kind(node)
    if name == "EventTimeWatermark" and any(
        kind(below) == name for child in items(node.children()) for below in walk(child)
    ):
        return (
            "a watermark is declared above another one, which Spark refuses as soon as the first "
            "has moved",
            "Leave one of them out: `watermark` of the input, or the one in the transform",
        )
    if joins_streams(node):
        return why_join_is_wrong(spark, node)
    return why_unsupported(node)


def _why_not_of_input(node: JavaObject) -> Reason:
    """How far an input has come is kept from run to run by the input's name alone."""
    if kind(node) != "EventTimeWatermark" or is_of_input(node) or node.eventTime().name() == TIME:
        return None
    return (
        "a transform of several streams declares a watermark, which would close nothing in a run "
        "in which one of them is idle",
        "Write `watermark: 10 minutes` and `event_time` at the input, and take it out of the "
        "transform",
    )


def _why_not_started(node: JavaObject) -> Reason:
    """What Spark finds as late as in its first batch."""
    for times in _list_two_times(node):
        return (
            f"{_PLACES.get(kind(node), 'an operator that keeps state')} has two columns of event "
            f"time ({', '.join(times)}), and Spark takes one",
            "Select one of them below it: the time, or the window that is made of it",
        )
    return why_join_cannot_run(node) if joins_streams(node) else None


def _list_two_times(node: JavaObject) -> list[list[str]]:
    """The columns of event time that reach an operator with state, where there is more than one."""
    times = (list(list_times(columns).values()) for columns in _reaching(node))
    return [[one.name() for one in found] for found in times if len(found) > 1]


def _reaching(node: JavaObject) -> Iterator[list[JavaObject]]:
    name = kind(node)
    if joins_streams(node):
        yield from (items(side.output()) for side in items(node.children()))
    elif name == "Aggregate":
        yield [one for one in items(node.groupingExpressions()) if kind(one) != "Literal"]
    elif name == "Distinct" or "Deduplicate" in name:
        yield items(node.output())
