"""How much a query would read, before it does: by the sizes of the files that Delta would scan."""

from pyspark.sql import DataFrame

from .plans import items


def scanned_bytes(frame: DataFrame) -> int:
    """Bytes of the files that a frame's filters leave of what it reads, as Delta's plan says."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    return sum(int(leaf.stats().sizeInBytes()) for leaf in items(plan.collectLeaves()))
