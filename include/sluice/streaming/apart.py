"""Rows of a large batch that are read again after it was counted: those refused, and those whose
key another one may have. One pass over the batch sets both apart."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..spark.columns import COPIES, KEY_HASH, hash_key
from ..spark.kept import keep_rows
from .plan import Plan
from .survey import Survey, is_good, is_late
from .verdicts import is_refused

FEW = 0.3
"""Share of rows with a key of their own below which finding them out does not pay."""
_FEW_REFUSED = 0.3
"""Refused rows ÷ good ones up to which keeping them once more costs less than reading all again."""
_MOST = 10**7
"""Rows with shared keys of which every executor can hold the hashes."""
_SHARED = "_shared"


@dataclass(frozen=True)
class Shared:
    """Rows to be written of which another one may have the key. `hashes`: of their keys, as
    `_key_hash`, each once. `rows`: judged ones, `count` of them to be written, no others of that
    kind among them."""

    hashes: DataFrame
    rows: DataFrame
    count: int


@dataclass(frozen=True)
class Apart:
    """`refused`: judged rows. `shared`: None where all rows to be written are looked at alike."""

    refused: DataFrame
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
    plan: Plan, frame: DataFrame, survey: Survey, watermark_ms: int, large: bool
) -> Iterator[Apart]:
    """Set apart rows of a judged batch, those refused where they are few beside the good ones; kept
    once they are first asked for. Of a small batch all rows are read again for either."""
    refused = frame.where(is_refused())
    if not large:
        yield Apart(refused)
        return
    few = 0 < survey.refused <= _FEW_REFUSED * survey.good
    with _count_shared(plan, frame, survey, watermark_ms) as found:
        if found is None and not few:
            yield Apart(refused)
            return
        rows = refused
        if found is not None:
            rows = _select(plan, frame, found[0], is_writable(plan, watermark_ms), few)
        with keep_rows(rows, on_disk=True) as kept:
            refused = kept.where(is_refused()) if few else refused
            yield Apart(refused, None if found is None else Shared(found[0], kept, found[1]))


@contextmanager
def _count_shared(
    plan: Plan, frame: DataFrame, survey: Survey, watermark_ms: int
) -> Iterator[tuple[DataFrame, int] | None]:
    """Hashes of keys that another row to be written has as well, and how many rows have them; None
    where these are most rows, or the target remembers no keys."""
    expected = count_writable(plan, survey)
    if plan.copies is None or not expected:
        yield None
        return
    hashed = frame.where(is_writable(plan, watermark_ms))
    hashed = hashed.select(hash_key(plan.copies.keys).alias(KEY_HASH))
    counted = hashed.groupBy(KEY_HASH).agg(F.count(F.lit(1)).alias(COPIES))
    with keep_rows(counted.where(F.col(COPIES) > 1), on_disk=True) as shared:
        rows = shared.agg(F.coalesce(F.sum(COPIES), F.lit(0))).collect()[0][0]
        most = expected - rows < FEW * expected or rows > _MOST
        yield None if most else (shared.select(KEY_HASH), rows)


def _select(
    plan: Plan, frame: DataFrame, hashes: DataFrame, writable: Column, few: bool
) -> DataFrame:
    """Rows to be written with one of these hashes, and those refused where they are `few`."""
    keys = plan.copies.keys if plan.copies is not None else ()
    hashed = frame.withColumn(KEY_HASH, F.when(writable, hash_key(keys)))
    marks = F.broadcast(hashes.withColumn(_SHARED, F.lit(True)))
    marked = hashed.join(marks, KEY_HASH, "left")
    wanted = F.col(_SHARED).isNotNull()
    return marked.where(wanted | is_refused() if few else wanted).drop(KEY_HASH, _SHARED)
