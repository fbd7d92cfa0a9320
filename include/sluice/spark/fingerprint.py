"""What a query keeps in state, as sentences that change when the meaning of that state does.

Spark compares the types of a state's columns and nothing else: it would go on summing `b` into the
sums of `a`, or fill windows of five minutes into those of ten.
"""

import re
from collections.abc import Iterator

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame

from .custom_state import describe_custom_state
from .plans import analyzed_plan, items, keeps_state, kind, walk

_WINDOW = ("spark.timeWindow", "spark.sessionWindow")
_OF_SESSION = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.streaming.statefulOperator.allowMultiple",
)
"""Settings that decide what a state means, and that Spark does not keep in its checkpoint. It does
not keep `noDataMicroBatches.enabled` either, which a run sets by itself."""


_WORDING = "worded as of 2026-11"
"""Said last. Sentences of another wording are not compared: that they differ means nothing."""


def describe_state(frame: DataFrame, mode: str) -> list[str]:
    """A sentence for each operator of a streaming query that keeps something, from the top, for
    each window and watermark, and for the settings of the session that decide what they mean; empty
    for a query without state. Args: mode: the output mode, in words."""
    nodes = [node for node in walk(analyzed_plan(frame)) if node.isStreaming()]
    told = [sentence for node in nodes for sentence in _describe(node)]
    if not any(keeps_state(node) for node in nodes):
        return []
    conf = frame.sparkSession.conf
    return [
        *told,
        f"output mode {mode}",
        *(f"{name} {conf.get(name)}".lower() for name in _OF_SESSION),
        _WORDING,
    ]


def compare_states(before: list[str], now: list[str]) -> tuple[list[str], list[str]]:
    """The sentences that are new, and those that are gone; none where an earlier version worded
    them otherwise. A setting that an earlier version did not note is no news."""
    if before and now and _WORDING not in before:
        return [], []
    new = [said for said in now if said not in before]
    for name in _OF_SESSION:
        said = f"{name} ".lower()
        if not any(one.startswith(said) for one in before):
            new = [one for one in new if not (before and one.startswith(said))]
    return new, [said for said in before if said not in now]


def _describe(node: JavaObject) -> Iterator[str]:
    name = kind(node)
    if name == "Aggregate":
        groups = ", ".join(_sql(group) for group in items(node.groupingExpressions()))
        made = (part for one in items(node.aggregateExpressions()) for part in walk(one))
        calls = sorted({_sql(part) for part in made if kind(part) == "AggregateExpression"})
        yield f"aggregation by {groups or 'nothing'} of {', '.join(calls) or 'nothing'}"
    elif keeps_state(node) and name == "Join":
        condition = node.condition()
        on = _sql(condition.get(), node) if condition.nonEmpty() else "nothing"
        yield f"join {node.joinType().sql().lower()} on {on}"
    elif name == "Distinct":
        yield f"distinct rows of {', '.join(_sql(column) for column in items(node.output()))}"
    elif "Deduplicate" in name:
        yield f"{name} by {', '.join(_sql(key) for key in items(node.keys()))}"
    elif keeps_state(node):
        yield describe_custom_state(node)
    elif name == "EventTimeWatermark":
        yield f"watermark of {_sql(node.eventTime())}, {node.delay().toString()}"
    yield from _describe_windows(node)


def _describe_windows(node: JavaObject) -> Iterator[str]:
    """The windows that a node computes: those above name them by a column alone."""
    if kind(node) not in ("Project", "Expand"):
        return
    made = items(node.projectList()) if kind(node) == "Project" else items(node.output())
    for column in made:
        if kind(column) != "Alias" or kind(column.child()) == "AttributeReference":
            continue  # a window that has another name now is the same
        if any(column.metadata().contains(mark) for mark in _WINDOW):
            yield f"window {_sql(column.child())}"
    if kind(node) == "Expand":
        for projection in items(node.projections()):
            for part in items(projection):
                if "PreciseTimestampConversion" in part.toString():
                    yield f"window {_sql(part)}"


def _sql(expression: JavaObject, join: JavaObject | None = None) -> str:
    """An expression in SQL, its columns by their names alone, or in a join by side and name: what a
    query calls the inputs may change."""
    said = str(expression.sql())
    for column in items(expression.references().toSeq()):
        side = ""
        if join is not None:
            side = "left." if join.left().outputSet().contains(column) else "right."
        alone = rf"(?<![\w`.]){re.escape(column.sql())}(?![\w`])"
        said = re.sub(alone, (side + column.name()).replace("\\", r"\\"), said)
    return said
