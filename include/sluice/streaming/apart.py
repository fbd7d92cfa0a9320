"""Rows of a large batch that are read again after it was counted: those refused, and those whose
key another one may have. One pass over the batch sets both apart."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..sources import BatchInput
from ..spark.columns import COPIES, KEY_HASH, hash_key
from ..spark.kept import keep_rows
from .plan import Plan
from .survey import Survey, is_good, is_late
from .verdicts import is_refused

FEW = 0.3
"""Share of rows with a key of their own below which finding them out does not pay."""
_FEW_AGAIN = 0.3
"""Rows ÷ good ones up to which keeping them once more costs less than reading all again."""
_MOST = 10**7
"""Rows with shared keys of which every executor can hold the hashes."""
_SHARED = "_shared"
"""True of a row to be written of which another one may have the key."""


@dataclass(frozen=True)
class Refused:
    """Judged rows that are refused, `count` of them; `crowding` where keeping as many would crowd
    the memory."""

    rows: DataFrame
    count: int
    crowding: bool = False


@dataclass(frozen=True)
class Shared:
    """Rows to be written of which another one may have the key. `hashes`: of their keys, as
    `_key_hash`, each once. `rows`: as they were judged, `count` of them."""

    hashes: DataFrame
    rows: DataFrame
    count: int


@dataclass(frozen=True)
class Apart:
    """`shared`: None where all rows to be written are looked at alike."""

    refused: Refused
    shared: Shared | None = None


def is_writable(plan: Plan, watermark_ms: int) -> Column:
    """Rows that go into the reduction: good ones, the late ones among them where these are not
    dropped."""
    return is_good() & ~is_late(watermark_ms) if plan.late == "drop" else is_good()


def count_writable(plan: Plan, survey: Survey) -> int:
    """How many these are."""
    return survey.good - survey.late if plan.late == "drop" else survey.good


@contextmanager
def set_apart(
    plan: Plan, frame: DataFrame, survey: Survey, watermark_ms: int, taken: BatchInput
) -> Iterator[Apart]:
    """Set apart rows of a judged batch. Of a large one, those of either kind that are few beside
    the good ones are kept, once they are first asked for; else all rows are read again for them."""
    if not taken.large:
        yield Apart(Refused(frame.where(is_refused()), survey.refused))
        return
    with _count_shared(plan, frame, survey, watermark_ms) as (hashes, count):
        marked = frame.withColumn(_SHARED, F.lit(False))
        if count and hashes is not None:
            marked = _mark(plan, frame, hashes, is_writable(plan, watermark_ms))
        most = _FEW_AGAIN * survey.good
        few_refused, few_shared = 0 < survey.refused <= most, 0 < count <= most
        few = [is_refused()] * few_refused + [F.col(_SHARED)] * few_shared
        kept_rows = survey.refused * few_refused + count * few_shared
        records = max(survey.read, survey.made)
        with _keep(marked, few, taken.crowds_with(kept_rows, records)) as kept:
            rows = (kept if few_refused else frame).where(is_refused())
            crowding = taken.crowds_with(survey.refused, records)
            refused = Refused(rows, survey.refused, crowding)
            rows = (kept if few_shared else marked).where(_SHARED)
            yield Apart(refused, None if hashes is None else Shared(hashes, rows, count))


@contextmanager
def _count_shared(
    plan: Plan, frame: DataFrame, survey: Survey, watermark_ms: int
) -> Iterator[tuple[DataFrame | None, int]]:
    """Hashes of keys that another row to be written has as well, and how many rows have them; None
    where these are most rows, or the target remembers no keys."""
    expected = count_writable(plan, survey)
    if plan.copies is None or not expected:
        yield None, 0
        return
    hashed = frame.where(is_writable(plan, watermark_ms))
    hashed = hashed.select(hash_key(plan.copies.keys).alias(KEY_HASH))
    counted = hashed.groupBy(KEY_HASH).agg(F.count(F.lit(1)).alias(COPIES))
    with keep_rows(counted.where(F.col(COPIES) > 1), on_disk=True) as shared:
        rows = shared.agg(F.coalesce(F.sum(COPIES), F.lit(0))).collect()[0][0]
        most = expected - rows < FEW * expected or rows > _MOST
        yield (None, 0) if most else (shared.select(KEY_HASH), rows)


def _mark(plan: Plan, frame: DataFrame, hashes: DataFrame, writable: Column) -> DataFrame:
    """Say of each row whether it is to be written and has one of these hashes."""
    keys = plan.copies.keys if plan.copies is not None else ()
    hashed = frame.withColumn(KEY_HASH, F.when(writable, hash_key(keys)))
    marks = F.broadcast(hashes.withColumnRenamed(KEY_HASH, _SHARED))
    marked = hashed.join(marks, F.col(KEY_HASH) == F.col(_SHARED), "left")
    return marked.withColumn(_SHARED, F.col(_SHARED).isNotNull()).drop(KEY_HASH)


@contextmanager
def _keep(rows: DataFrame, wanted: list[Column], on_disk: bool) -> Iterator[DataFrame]:
    """Those of the rows for which one of these holds, kept; all as they are without any."""
    if not wanted:
        yield rows
        return
    with keep_rows(rows.where(reduce(Column.__or__, wanted)), on_disk) as kept:
        yield kept
