"""How many rows Spark's readers gave to a query that has run, by their own metrics."""

from collections.abc import Iterator

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame

_ROWS, _SIZE = "numOutputRows", "filesSize"


def count_scanned(frame: DataFrame) -> int | None:
    """Rows that the leaves of a frame's executed plan read; None where a leaf does not tell, as
    one does not that reads what is held in memory."""
    found = [
        _metric_of(leaf, _ROWS) for leaf in _leaves(frame._jdf.queryExecution().executedPlan())
    ]
    return sum(n for n in found if n is not None) if found and None not in found else None


def sum_read(frame: DataFrame) -> tuple[int, int]:
    """Rows and bytes of files that a frame's plan has read, as far as its leaves tell."""
    leaves = [*_leaves(frame._jdf.queryExecution().executedPlan())]
    rows = (_metric_of(leaf, _ROWS) for leaf in leaves if _metric_of(leaf, _SIZE) is not None)
    sizes = (_metric_of(leaf, _SIZE) for leaf in leaves)
    return sum(n for n in rows if n is not None), sum(n for n in sizes if n is not None)


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


def _metric_of(leaf: JavaObject, name: str) -> int | None:
    found = leaf.metrics().get(name)
    return None if found.isEmpty() else int(found.get().value())
