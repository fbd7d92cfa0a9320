"""The rows of a batch that may be written, one a key, kept and counted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..spark.columns import COPIES, KEY_HASH, RESCUED, SOURCE, TIME, col, hash_key
from ..spark.kept import keep_rows
from .copies import Copies
from .plan import Plan
from .survey import Survey, is_good, is_late
from .written import Given, Unique, check_same

FEW = 0.3
"""Share of rows with a key of their own below which finding them out does not pay."""
_MOST = 10**7
"""Rows with shared keys of which every executor can hold the hashes."""
Reduce = Callable[[DataFrame], DataFrame]


@contextmanager
def reduce_batch(
    plan: Plan, frame: DataFrame, survey: Survey, watermark_ms: int, large: bool
) -> Iterator[Unique]:
    """Reduce the good rows of a judged batch to one a key, the late ones among them where they are
    not dropped: of a late and a timely row of a key, the timely one.

    Args: large: the rows are kept where they cost no memory, and sorting all of them would cost
    much. Raises UnbalancedReport where the reduction meets other rows than the survey counted.
    """
    good = select_good(plan, frame)
    expected = survey.good
    if plan.late == "drop":
        good, expected = good.where(~is_late(watermark_ms)), survey.good - survey.late
    if plan.copies is None or not expected:
        yield Unique(good, Given(expected, expected), span=(survey.oldest, survey.newest))
        return
    last = is_late(watermark_ms) if plan.late == "keep" else None
    spread = (survey.newest or 0) - (survey.oldest or 0)
    reduce = partial(plan.copies.reduce, spread=spread, last=last)
    if large:
        reducing = _reduce_shared(plan, plan.copies, good, expected, reduce)
    else:
        reducing = _reduce_all(plan, good, expected, reduce)
    with reducing as unique:
        yield replace(unique, span=(survey.oldest, survey.newest))


@contextmanager
def _reduce_all(
    plan: Plan, good: DataFrame, expected: int, reduce: Reduce, on_disk: bool = False
) -> Iterator[Unique]:
    """Sort all rows by their keys."""
    with keep_rows(reduce(good), on_disk) as rows:
        given, keys = rows.agg(F.sum(COPIES), F.count(F.lit(1))).collect()[0]
        found = "went into the reduction"
        check_same(expected, given or 0, "rows were found good", found, plan.where)
        yield Unique(rows, Given(given or 0, keys))


@contextmanager
def _reduce_shared(
    plan: Plan, copies: Copies, good: DataFrame, expected: int, reduce: Reduce
) -> Iterator[Unique]:
    """Sort only rows of keys that another row may have, by a hash of the key; the others, most
    often nearly all, go by unsorted.

    The rows that are alone are counted by what writes them: it has to meet as many as are left.
    """
    hashed = good.withColumn(KEY_HASH, hash_key(copies.keys))
    counted = hashed.groupBy(KEY_HASH).agg(F.count(F.lit(1)).alias(COPIES))
    with keep_rows(counted.where(F.col(COPIES) > 1)) as shared:
        rows = shared.agg(F.coalesce(F.sum(COPIES), F.lit(0))).collect()[0][0]
        if expected - rows < FEW * expected or rows > _MOST:
            with _reduce_all(plan, good, expected, reduce, on_disk=True) as unique:
                yield unique
            return
        hashes = F.broadcast(shared.select(KEY_HASH))
        several = hashed.join(hashes, KEY_HASH, "left_semi").drop(KEY_HASH)
        alone = hashed.join(hashes, KEY_HASH, "left_anti").drop(KEY_HASH)
        with _reduce_all(plan, several, rows, reduce, on_disk=True) as reduced:
            # Another column in its place: Spark takes what it knows of columns that kept rows have
            # no more for true of a union of them, and fails.
            first = reduced.rows.withColumn(COPIES, F.lit(1))
            both = copies.mark_alone(alone).unionByName(first)
            yield Unique(both, Given(expected, expected - rows + reduced.given.keys))


def select_good(plan: Plan, frame: DataFrame) -> DataFrame:
    """The rows that may be written, with the columns that are kept."""
    system = [name for name in (RESCUED, SOURCE, TIME) if name not in plan.columns.names]
    return frame.where(is_good()).select(*[col(c) for c in (*plan.columns.names, *system)])
