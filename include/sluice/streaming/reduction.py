"""The rows of a batch that may be written, one a key, kept and counted."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..spark.columns import COPIES, RESCUED, SOURCE, TIME, col
from ..spark.kept import keep_rows
from .plan import Plan
from .survey import Survey, is_good, is_late
from .written import Given, Unique, check_same


@contextmanager
def reduce_batch(
    plan: Plan, frame: DataFrame, survey: Survey, watermark_ms: int, large: bool
) -> Iterator[Unique]:
    """Reduce the good rows of a judged batch to one a key, the late ones among them where they are
    not dropped: of a late and a timely row of a key, the timely one.

    Raises UnbalancedReport where the reduction meets other rows than the survey counted.
    """
    good = select_good(plan, frame)
    expected = survey.good
    if plan.late == "drop":
        good, expected = good.where(~is_late(watermark_ms)), survey.good - survey.late
    if plan.copies is None or not expected:
        yield Unique(good, Given(expected, expected))
        return
    last = is_late(watermark_ms) if plan.late == "keep" else None
    spread = (survey.newest or 0) - (survey.oldest or 0)
    with keep_rows(plan.copies.reduce(good, spread, last), large) as rows:
        given, keys = rows.agg(F.sum(COPIES), F.count(F.lit(1))).collect()[0]
        found = "went into the reduction"
        check_same(expected, given or 0, "rows were found good", found, plan.where)
        yield Unique(rows, Given(given or 0, keys))


def select_good(plan: Plan, frame: DataFrame) -> DataFrame:
    """The rows that may be written, with the columns that are kept."""
    system = [name for name in (RESCUED, SOURCE, TIME) if name not in plan.columns.names]
    return frame.where(is_good()).select(*[col(c) for c in (*plan.columns.names, *system)])
