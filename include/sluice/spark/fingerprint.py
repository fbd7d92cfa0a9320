"""What a query keeps in state, as sentences that change when the meaning of that state does.

Spark compares the types of a state's columns and nothing else: it would go on summing `b` into the
sums of `a`, or fill windows of five minutes into those of ten.
"""

from collections.abc import Iterator

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame

from .plans import analyzed_plan, items, joins_streams, kind, walk

_WINDOW = ("spark.timeWindow", "spark.sessionWindow")
_OF_SESSION = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive")


def describe_state(frame: DataFrame, mode: str) -> list[str]:
    """A sentence for each operator of a streaming query that keeps something, from the top, for
    each window and watermark, and for the settings of the session that decide what they mean; empty
    for a query without state. Args: mode: the output mode, in words."""
    nodes = [node for node in walk(analyzed_plan(frame)) if node.isStreaming()]
    told = [sentence for node in nodes for sentence in _describe(node)]
    if not any(_keeps(node) for node in nodes):
        return []
    conf = frame.sparkSession.conf
    return [
        *told,
        f"output mode {mode}",
        *(f"{name} {conf.get(name)}".lower() for name in _OF_SESSION),
    ]


def _keeps(node: JavaObject) -> bool:
    name = kind(node)
    if name == "Join":
        return joins_streams(node)
    return name in ("Aggregate", "Distinct") or "Deduplicate" in name or "State" in name


def _describe(node: JavaObject) -> Iterator[str]:
    name = kind(node)
    if name == "Aggregate":
        groups = ", ".join(_sql(group) for group in items(node.groupingExpressions()))
        calls = sorted(
            _sql(part)
            for made in items(node.aggregateExpressions())
            for part in walk(made)
            if kind(part) == "AggregateExpression"
        )
        yield f"aggregation by {groups or 'nothing'} of {', '.join(calls) or 'nothing'}"
    elif _keeps(node) and name == "Join":
        condition = node.condition()
        on = _sql(condition.get()) if condition.nonEmpty() else "nothing"
        yield f"join {node.joinType().sql().lower()} on {on}"
    elif "Deduplicate" in name:
        yield f"{name} by {', '.join(_sql(key) for key in items(node.keys()))}"
    elif _keeps(node):
        groups = ", ".join(_sql(group) for group in items(node.groupingAttributes()))
        yield f"{name} by {groups}"
    elif name == "EventTimeWatermark":
        yield f"watermark of {_sql(node.eventTime())}, {node.delay().toString()}"
    yield from _describe_windows(node)


def _describe_windows(node: JavaObject) -> Iterator[str]:
    """The windows that a node computes: those above name them by a column alone."""
    if kind(node) not in ("Project", "Expand"):
        return
    made = items(node.projectList()) if kind(node) == "Project" else items(node.output())
    for column in made:
        if kind(column) == "Alias" and any(column.metadata().contains(mark) for mark in _WINDOW):
            yield f"window {_sql(column.child())}"
    if kind(node) == "Expand":
        for projection in items(node.projections()):
            for part in items(projection):
                if "PreciseTimestampConversion" in part.toString():
                    yield f"window {_sql(part)}"


def _sql(expression: JavaObject) -> str:
    return str(expression.sql())
