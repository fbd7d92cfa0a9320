"""The rows of a batch that may be written, one a key, kept and counted."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..spark.columns import COPIES, DIFFERS, KEY_HASH, RESCUED, SOURCE, TIME, col, hash_key
from ..spark.kept import gather, keep_rows
from .apart import Shared, count_writable, is_writable
from .copies import Copies
from .plan import Plan
from .survey import Survey, is_good, is_late
from .written import Given, Unique, check_same

Reduce = Callable[[DataFrame], DataFrame]


@contextmanager
def reduce_batch(
    plan: Plan,
    frame: DataFrame,
    shared: Shared | None,
    survey: Survey,
    watermark_ms: int,
    large: bool,
) -> Iterator[Unique]:
    """Reduce the good rows of a judged batch to one a key, the late ones among them where they are
    not dropped: of a late and a timely row of a key, the timely one.

    Args: shared: of these rows, those that are to be sorted; all without. large: the rows are kept
    where they cost no memory. Raises UnbalancedReport where the reduction meets other rows than
    the survey counted.
    """
    good = select_good(plan, frame.where(is_writable(plan, watermark_ms)))
    expected = count_writable(plan, survey)
    if plan.copies is None or not expected:
        yield Unique(good, Given(expected, expected), span=(survey.oldest, survey.newest))
        return
    last = is_late(watermark_ms) if plan.late == "keep" else None
    spread = (survey.newest or 0) - (survey.oldest or 0)
    reduce = partial(plan.copies.reduce, spread=spread, last=last)
    if shared is None:
        reducing = _reduce_all(plan, good, expected, reduce, on_disk=large)
    else:
        shared = replace(shared, rows=select_good(plan, shared.rows))
        reducing = _reduce_shared(plan, plan.copies, good, shared, expected, reduce)
    with reducing as unique:
        yield replace(unique, span=(survey.oldest, survey.newest))


@contextmanager
def _reduce_all(
    plan: Plan, good: DataFrame, expected: int, reduce: Reduce, on_disk: bool = False
) -> Iterator[Unique]:
    """Sort all rows by their keys."""
    with keep_rows(reduce(good), on_disk) as rows:
        counted = (F.sum(COPIES), F.count(F.lit(1)), F.count_if(DIFFERS))
        read = rows if on_disk else gather(rows, expected)
        given, keys, differing = read.agg(*counted).collect()[0]
        found = "went into the reduction"
        check_same(expected, given or 0, "rows were found good", found, plan.where)
        yield Unique(rows, Given(given or 0, keys), differing=differing)


@contextmanager
def _reduce_shared(
    plan: Plan, copies: Copies, good: DataFrame, shared: Shared, expected: int, reduce: Reduce
) -> Iterator[Unique]:
    """Sort only rows of keys that another row may have; the others, most often nearly all, go by
    unsorted.

    The rows that are alone are counted by what writes them: it has to meet as many as are left.
    """
    hashed = good.withColumn(KEY_HASH, hash_key(copies.keys))
    alone = hashed.join(F.broadcast(shared.hashes), KEY_HASH, "left_anti").drop(KEY_HASH)
    with _reduce_all(plan, shared.rows, shared.count, reduce, on_disk=True) as reduced:
        # Another column in its place: Spark takes what it knows of columns that kept rows have
        # no more for true of a union of them, and fails.
        first = reduced.rows.withColumn(COPIES, F.lit(1))
        both = copies.mark_alone(alone).unionByName(first)
        given = Given(expected, expected - shared.count + reduced.given.keys)
        yield Unique(both, given, differing=reduced.differing)


def select_good(plan: Plan, frame: DataFrame) -> DataFrame:
    """The rows that may be written, with the columns that are kept."""
    system = [name for name in (RESCUED, SOURCE, TIME) if name not in plan.columns.names]
    return frame.where(is_good()).select(*[col(c) for c in (*plan.columns.names, *system)])
