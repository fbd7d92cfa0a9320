"""What happens to one micro-batch: survey, refuse or split, write each part once, count.

Quarantine first, then late, then target: the target's commit carries the counts of the whole
batch, so finding it means that the batch is complete. A batch of which an earlier try left less
than that is taken back and judged anew.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..checkpoint import Entry, Rights
from ..report import Counts
from ..sinks import deliver
from ..spark.columns import CHANGE, INPUT
from ..spark.kept import gather, keep_rows
from ..spark.scans import sum_read
from .apart import Apart, set_apart
from .classify import judge, leave_text
from .conflicts import Conflicts, count_conflicts, count_replayed_conflicts
from .counting import count_batch, count_inputs
from .entry import Result, describe_batch
from .laps import Laps
from .note import Note
from .parts import Outcome, Split, write_parts
from .plan import Plan
from .planned import Batch
from .recompute import compute_batch
from .reduction import reduce_batch
from .refusals import refuse_by_row_rules, refuse_by_table_rules, refuse_unknown_fields
from .replacing import refuse_unread
from .survey import Survey, add_samples, take_survey
from .tries import begin_try, take_back
from .written import Unique, check_same

_NOT_COMPARED = "whether copies of a key differ in it is not known"


def process(plan: Plan, rights: Rights, batch: Batch, laps: Laps) -> Entry:
    """Give every row of one batch its fate.

    Args: laps: a watch that was just started. Raises RuleStop or SourceError before a byte of it is
    written, UnbalancedReport where the numbers of its parts contradict each other.
    """
    rights.check(plan.step.name)
    result = _replay(plan, rights, batch) or _judge_and_write(plan, rights, batch, laps)
    return describe_batch(plan, batch, result, laps)


def _replay(plan: Plan, rights: Rights, batch: Batch) -> Result | None:
    """A batch whose target commit survived a crash, from that commit; None when it has to be
    done (again)."""
    if batch.number != plan.open_batch:
        return None
    commit = plan.target.find(batch.frame.sparkSession, plan.transaction(batch.number))
    if commit is None:
        return None
    if plan.stateful:
        batch.frame.count()  # Spark's state goes on only where the rows are read
    note = Note.from_commit(commit, plan.target.path)
    outcome = Outcome(batch.number, note, plan.target.count(note.given, commit), commit)
    if not plan.stateful and not plan.inputs.has_again(batch.taken):
        told = f"batch {batch.number} was in the table before its records expired: {_NOT_COMPARED}"
        return Result(outcome, Conflicts(), replayed=True, warning=told)
    conflicts = count_replayed_conflicts(plan, batch.frame, outcome)
    return Result(outcome, conflicts, replayed=True)


def _judge_and_write(plan: Plan, rights: Rights, batch: Batch, laps: Laps) -> Result:
    """Count, then write; whatever an earlier try left is taken back first."""
    take_back(plan, rights, batch.number, batch.frame.sparkSession)
    with compute_batch(plan, batch) as (computing, computed):
        result = _judge_rows(computing, rights, computed, laps)
        told = computed.made.warning if computed.made is not None else ""
        return replace(result, warning=" ".join(filter(None, [result.warning, told])))


def _judge_rows(plan: Plan, rights: Rights, batch: Batch, laps: Laps) -> Result:
    watermark = batch.watermark_ms if plan.delay_ms else 0
    with _survey(plan, batch, watermark, laps) as (rows, apart, survey):
        counts = count_batch(plan, batch.taken, survey, rows.sparkSession)
        refuse_by_row_rules(plan, survey)
        large = batch.taken.large
        with reduce_batch(plan, rows, apart.shared, survey, watermark, large) as unique:
            laps.end("dedup")
            note = _note(plan, batch, survey, counts)
            match = plan.match(survey.oldest, survey.newest)
            refuse_unread(plan, rows)
            with rights.turn(plan.step.name, plan.table) as may_write:
                refuse_by_table_rules(plan, survey, unique, match)
                may_write()
                attempt, told = begin_try(plan, batch.number, batch.taken)
                lost = batch.taken.lost
                split = Split(batch.number, apart.refused, unique, lost, attempt, match)
                outcome = write_parts(plan, split, note, may_write)
                laps.end("write")
            # After the turn: this only reads, so no other writer need wait for it.
            conflicts = count_conflicts(plan, unique.rows, outcome, match, unique.differing)
            laps.end("compare")
            delivered = _hand_over(plan, rights, batch, unique)
            laps.end("sinks")
    return Result(outcome, conflicts, delivered, warning=told)


def _note(plan: Plan, batch: Batch, survey: Survey, counts: Counts) -> Note:
    """What is known of a surveyed batch before its target is written."""
    note = Note(
        batch.run_id,
        plan.definition,
        counts,
        plan.rules.verdicts(survey, batch.taken.lost),
        count_inputs(batch.taken, survey),
        watermark_ms=batch.watermark_ms if plan.delay_ms else 0,
        oldest=survey.oldest,
        newest=survey.newest,
        lateness=survey.lateness,
    )
    if (made := batch.made) is None:
        return note
    return replace(
        note,
        versions=dict(made.versions),
        query=made.query,
        why=made.why,
        scanned=sum_read(made.computing) if made.computing is not None else (0, 0),
        size=made.size,
        seen=made.seen,
    )


def _hand_over(plan: Plan, rights: Rights, batch: Batch, unique: Unique) -> dict[str, int]:
    """Give the rows to the sinks of a step without a target, which are the end itself: the batch
    comes again until each has it. Out: rows by sink."""
    if plan.target.exists or not unique.given.rows:
        return {}
    rows = plan.stamp(unique.rows, batch.number, batch.run_id)
    sinks, right = plan.step.further_sinks, lambda: rights.check(plan.step.name)
    delivery = plan.outlet.delivery(plan.batch_key(batch.number))
    delivered = deliver(sinks, rows, delivery, right)
    for title, count in delivered.items():
        check_same(unique.given.rows, count, "rows were found good", f"came to {title}", plan.where)
    return delivered


@contextmanager
def _survey(
    plan: Plan, batch: Batch, watermark_ms: int, laps: Laps
) -> Iterator[tuple[DataFrame, Apart, Survey]]:
    """The judged rows, those set apart of them, and what was counted."""
    with _kept(plan, batch) as (rows, source):
        large = batch.taken.large
        lookout, later = plan.look_out(watermark_ms), large and source is not None
        survey = take_survey(rows, lookout, source, later)
        laps.end("parse, rules")
        refuse_unknown_fields(plan, rows, survey)
        # Few rows of a large batch are wide ones, and a sink may be slow, row by row.
        if source is not None and plan.target.exists and not large:
            rows = gather(rows, max(survey.read, survey.made))
        with set_apart(plan, rows, survey, watermark_ms, batch.taken) as apart:
            if later:
                survey = add_samples(survey, lookout, rows, apart.refused.rows)
            yield rows, apart, survey


@contextmanager
def _kept(plan: Plan, batch: Batch) -> Iterator[tuple[DataFrame, DataFrame | None]]:
    """The judged rows, kept where reading them twice would cost or change something, and what
    they were kept from.

    A batch out of a state store is read once, because reading it twice would commit its state
    twice; one from a server, because the server may have fewer records the second time.
    """
    rows = batch.frame
    if not plan.held_in_state:  # else the stream has judged them, before its operator
        rows = judge(rows, plan.step, plan.columns, plan.rules.own, plan.rules.place)
    if batch.made is not None:  # whose rows are kept; a record says which input it is of
        yield rows.withColumn(INPUT, F.col(CHANGE)["input"]), None
        return
    taken = batch.taken
    if plan.stateful or not plan.target.exists or taken.fetched or taken.costly:
        rows = leave_text(rows)
        with keep_rows(rows, taken.large) as kept:
            yield kept, rows
    else:
        yield rows, None
