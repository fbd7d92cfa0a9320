"""What others did to the table of a step with `groups`: the groups whose rows they changed are
computed again, as if their inputs had changed."""

from contextlib import ExitStack

from pyspark.sql import DataFrame

from ..backlog import describe_foreign, find_foreign
from ..spark.columns import col
from ..spark.failure import SPARK_FAILED
from ..spark.kept import keep_rows
from .changes import read_images
from .plan import Plan
from .planned import Made


def find_beside(
    kept: ExitStack, plan: Plan, now: Made, frame: DataFrame
) -> tuple[DataFrame | None, str]:
    """The groups of rows that others took in or out since the step looked last, one or several rows
    each, None where there are none; and why all has to be computed, empty where it has not: the
    change feed of the table does not tell.

    Args: now: `seen` is the version up to which is looked. frame: of the batch.
    """
    path = plan.target.path
    foreign = find_foreign(path, plan.generation.rpartition("/")[0], now.seen)
    if not foreign:
        return None, ""
    try:
        images = read_images(frame.sparkSession, path, [*foreign])
        groups = kept.enter_context(
            keep_rows(images.select(*map(col, plan.step.groups)).distinct())
        )
        groups.count()  # so that a feed that is missing is known by now
    except SPARK_FAILED:
        told = describe_foreign(foreign)
        return None, f"somebody else wrote to the table, and its change feed is gone ({told})"
    return groups, ""
