"""How many rows Spark's readers gave to a query that has run, by their own metrics."""

from collections.abc import Iterator

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame

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
