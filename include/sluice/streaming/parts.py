"""Writes the parts of a surveyed batch: refused rows, late ones, and those the target gets."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import functions as F

from ..checkpoint import Attempt
from ..report import Counts
from ..spark.columns import LATE_BY, TIME
from ..spark.kept import keep_rows
from ..spark.table_setup import table_exists
from ..spark.tables import Commit, Keyed, Transaction, frame_of, narrow, without
from ..spark.writes import append, insert_new
from .apart import Refused
from .note import Note
from .plan import Plan
from .quarantine import write_refused
from .step_tables import refuse_gone
from .survey import is_late
from .tries import unfinished
from .written import Given, Unique, Written, check_same


@dataclass(frozen=True)
class Split:
    """A batch on its way into its tables. `lost`: files that could not be read, and why."""

    number: int
    refused: Refused
    unique: Unique
    lost: dict[str, str]
    attempt: Attempt
    match: str


@dataclass(frozen=True)
class Outcome:
    """What became of a batch. `commit`: of the target; None where nothing was to be written."""

    number: int
    note: Note
    written: Written
    commit: Commit | None


def write_parts(plan: Plan, split: Split, note: Note, may_write: Callable[[], None]) -> Outcome:
    """Write each part once. Args: note: what is known before. may_write: asked before each write.

    Raises UnbalancedReport where a write was given other rows than were counted.
    """
    counts = note.counts
    tried = Transaction(plan.place.app_id, split.attempt.version, {"run_id": note.run_id})
    expected = split.refused.count + len(split.lost)
    if expected:
        may_write()
        refused = write_refused(plan, split.refused, split.lost, split.number, tried)
        check_same(expected, refused.given, "rows were refused", "came to quarantine", plan.where)
        counts += Counts(quarantined=refused.inserted, duplicate=refused.duplicate)
    unique = split.unique
    if plan.late == "keep" and note.watermark_ms and unique.given.keys:
        may_write()
        late, unique = _write_late(plan, split, note.watermark_ms, tried)
        counts += Counts(late=late.inserted, duplicate=late.duplicate)
    note = replace(note, counts=counts)
    return _write_target(plan, replace(split, unique=unique), note, may_write)


def _write_late(
    plan: Plan, split: Split, watermark_ms: int, txn: Transaction
) -> tuple[Written, Unique]:
    """Put late rows into their table, unless they are copies of what the target or the late table
    holds. Out: what became of them, and the timely rows."""
    rows, given = split.unique.rows, split.unique.given
    late = rows.where(is_late(watermark_ms))
    count = late.count()
    timely = replace(given, rows=given.rows - count, keys=given.keys - count)
    rest = replace(split.unique, rows=rows.where(~is_late(watermark_ms)), given=timely)
    if not count:
        return Written(), rest
    keys = plan.copies.keys if plan.copies is not None else ()
    target = frame_of(late.sparkSession, plan.target.path)
    target = narrow(target, Keyed(late, count, keys)).alias("t")
    held = late.alias("s").join(target, F.expr(split.match), "left_semi").count()
    fresh = without(late, target, split.match)
    behind = (F.lit(watermark_ms * 1000) - F.unix_micros(TIME)) / 1e6
    fresh = fresh.withColumn(LATE_BY, behind)
    abandoned = unfinished(plan, plan.place.late, late.sparkSession)
    with keep_rows(plan.stamp(fresh, split.number, txn.note["run_id"], LATE_BY)) as stamped:
        new = Keyed(stamped, count - held, keys)
        commit = insert_new(plan.place.late, new, split.match, txn, abandoned)
    found = "were held or came to the late table"
    check_same(count, held + commit.given, "rows were late", found, plan.where)
    came = Written.of(Given(count, count - held, held), commit, plan.place.late)
    return came.take_over(), rest


def _write_target(plan: Plan, split: Split, note: Note, may_write: Callable[[], None]) -> Outcome:
    given = split.unique.given
    if not plan.target.exists:
        return Outcome(split.number, note, Written(given=given.rows, inserted=given.rows), None)
    refuse_gone(split.unique.rows.sparkSession, plan, split.number)
    if not plan.target.needs(given):
        _seal(plan, split, replace(note, given=given), may_write)
        return Outcome(split.number, note, Written(given=given.rows, copies=given.copies), None)
    with plan.target.prepare(split.unique, split.match) as unique:
        may_write()
        note = replace(note, given=unique.given)
        stamped = replace(unique, rows=plan.stamp(unique.rows, split.number, note.run_id))
        txn = plan.transaction(split.number, note.as_metadata())
        commit = plan.target.write(stamped, split.match, txn)
        return Outcome(split.number, note, plan.target.count(unique.given, commit), commit)


def _seal(plan: Plan, split: Split, note: Note, may_write: Callable[[], None]) -> None:
    """Leave an empty commit in a target that gets none of a batch's rows, where other tables got
    some: the target's commit is what makes a batch final. And where there is no target yet: one
    that is missing behind a batch is taken for lost."""
    elsewhere = note.counts.quarantined or (plan.late == "keep" and note.counts.late)
    if elsewhere or not table_exists(split.unique.rows.sparkSession, plan.target.path):
        may_write()
        stamped = plan.stamp(split.unique.rows.limit(0), split.number, note.run_id)
        append(plan.target.path, stamped, plan.transaction(split.number, note.as_metadata()))
