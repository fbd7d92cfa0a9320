"""Counts the keys of which copies say different things."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..spark.columns import DIFFERS
from ..spark.failure import SPARK_FAILED
from ..spark.kept import keep_rows
from ..spark.tables import MANY_HASHES, frame_of, narrow, of_hashes, shared_hashes
from .classify import judge
from .copies import Copies
from .note import Note
from .outlet import is_of_batch
from .parts import Outcome
from .plan import Plan
from .reduction import select_good
from .survey import is_late
from .target import ReplaceRange

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Conflicts:
    """Keys that came with differing content. `overtaken`: of which a row ranks before the one in
    the table, which stays. `samples`: two of them; none where a key may not be shown. `warning`:
    why nobody can say it any more."""

    keys: int = 0
    overtaken: int = 0
    samples: tuple[str, ...] = ()
    warning: str = ""


def count_conflicts(
    plan: Plan, unique: DataFrame, outcome: Outcome, match: str, differing: int | None = None
) -> Conflicts:
    """Count in the batch, and against the table as it was before; reads only where there are copies
    that can differ. Args: differing: keys that do within the batch, where that is known.

    Where rows only come in, the table before is the table of now without this batch: the next
    batch needs the state of this version anyway, and of no other.
    """
    copies = plan.copies
    if copies is None or copies.are_equal or not outcome.written.duplicate or not match:
        return Conflicts()
    try:
        before = _table_before(plan, copies, unique, outcome)
        if before is None and differing == 0:
            return Conflicts()
        with _narrowed(copies, unique, before, outcome.note) as (rows, held):
            found = copies.find_conflicts(rows, held, match)
    except SPARK_FAILED:
        if not copies.replaces:
            raise
        _log.warning("the table before batch %s cannot be read", outcome.number, exc_info=True)
        return Conflicts(  # since a crash, its log was cleaned or its files were
            warning=f"what the table held before batch {outcome.number} cannot be read any more: "
            "whether copies of a key differ in it is not known"
        )
    overtaken = found["overtaken"] if copies.order and not copies.replaces else 0
    shown = found["conflicts"] and not plan.rules.hidden & set(copies.keys)
    samples = sorted({found["first"], found["last"]}) if shown else []
    return Conflicts(found["conflicts"], overtaken, tuple(samples))


@contextmanager
def _narrowed(
    copies: Copies, unique: DataFrame, table: DataFrame | None, note: Note
) -> Iterator[tuple[DataFrame, DataFrame | None]]:
    """The rows of a batch and those of the table that may be copies of each other, and few others.

    Of many rows the hashes that both have are found first: then neither the batch nor the table is
    sorted by key, with all that its rows say.
    """
    batch = copies.keyed(unique, note.given.keys, note.oldest, note.newest)
    if table is None or batch.few:
        yield unique, table if table is None else narrow(table, batch)
        return
    with keep_rows(shared_hashes(table, batch)) as shared:
        if shared.count() > MANY_HASHES:
            yield unique, table
            return
        met, held = (of_hashes(rows, copies.keys, shared) for rows in (unique, table))
        # Those that differ within the batch; rows that are alone cannot, and are not read for it.
        apart = of_hashes(unique.where(F.col(DIFFERS)), copies.keys, shared, "left_anti")
        yield met.unionByName(apart), held


def _table_before(
    plan: Plan, copies: Copies, unique: DataFrame, outcome: Outcome
) -> DataFrame | None:
    if isinstance(plan.target, ReplaceRange) or outcome.commit is None:
        return None
    if not outcome.written.held and plan.late != "keep":
        return None  # the write met no copy there, and no late row was compared beside it
    session = unique.sparkSession
    if copies.replaces:
        return frame_of(session, plan.target.path, outcome.commit.version - 1)
    of_batch = is_of_batch(plan.batch_key(outcome.number))
    return frame_of(session, plan.target.path).where(~F.coalesce(of_batch, F.lit(False)))


def count_replayed_conflicts(plan: Plan, frame: DataFrame, outcome: Outcome) -> Conflicts:
    """The same for a batch that was written by an earlier try, from its rows, which come again;
    none where it was written under another definition, whose columns may be others."""
    note = outcome.note
    if plan.copies is None or note.definition != plan.definition:
        return Conflicts()
    match = plan.match(note.oldest, note.newest)
    last = is_late(note.watermark_ms) if plan.late == "keep" else None
    good = select_good(plan, judge(frame, plan.step, plan.columns, plan.rules.row))
    if plan.late == "drop":
        good = good.where(~is_late(note.watermark_ms))
    spread = (note.newest or 0) - (note.oldest or 0)
    return count_conflicts(plan, plan.copies.reduce(good, spread, last), outcome, match)
