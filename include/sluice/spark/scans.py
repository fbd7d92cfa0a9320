"""How many rows Spark's readers gave to a query that has run, and its operators dropped, by their
own metrics."""

from collections.abc import Iterator
from dataclasses import dataclass

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

_ROWS = "numOutputRows"


def count_scanned(frame: DataFrame) -> int | None:
    """Rows that the leaves of a frame's executed plan read; None where a leaf does not tell, as
    one does not that reads what is held in memory."""
    found = [_rows_of(leaf) for leaf in _leaves(frame._jdf.queryExecution().executedPlan())]
    return sum(n for n in found if n is not None) if found and None not in found else None


def _leaves(node: JavaObject) -> Iterator[JavaObject]:
    """The leaves of a physical plan; adaptive execution hides the final plan and its stages."""
    name = node.getClass().getSimpleName()
    if name == "AdaptiveSparkPlanExec":
        yield from _leaves(node.executedPlan())
    elif name.endswith("QueryStageExec"):
        yield from _leaves(node.plan())
    else:
        below = node.children()
        if below.isEmpty() and not name.startswith("Reused"):
            yield node
        for place in range(below.size()):
            yield from _leaves(below.apply(place))


def _rows_of(leaf: JavaObject) -> int | None:
    found = leaf.metrics().get(_ROWS)
    return None if found.isEmpty() else int(found.get().value())


@dataclass(frozen=True)
class Dropped:
    """Rows that Spark's stateful operators dropped from a batch. `late`: behind the watermark; of
    an aggregation Spark counts groups after it has gathered the rows of a partition."""

    duplicate: int = 0
    late: int = 0


def count_dropped() -> Dropped:
    """What the operators dropped from the batch that the running query has just read.

    Asked within the batch, because its note must hold them: the query's own progress comes too
    late for a run that dies after it.
    """
    duplicate = late = 0
    home = SparkSession.builder.getOrCreate()  # a batch's own session is a copy, without queries
    for query in home.streams.active:
        nodes = [query._jsq.streamingQuery().lastExecution().executedPlan()]
        for node in nodes:
            below = node.children()
            nodes += [below.apply(place) for place in range(below.size())]
            duplicate += _metric(node, "numDroppedDuplicateRows")
            late += _metric(node, "numRowsDroppedByWatermark")
    return Dropped(duplicate, late)


def _metric(node: JavaObject, name: str) -> int:
    found = node.metrics().get(name)
    return 0 if found.isEmpty() else int(found.get().value())
