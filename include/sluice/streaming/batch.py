"""What happens to one micro-batch: survey, refuse or split, write each part once, count.

Quarantine first, then late, then target: the target's commit carries the counts of the whole batch, so finding it means the batch is complete.
"""

import time
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ..backlog import table_version
from ..checkpoint import Checkpoint, Entry, Lease, note_batch
from ..errors import RuleStop, SourceError
from ..quality.expectations import validate_table
from ..quality.rules import row_result
from ..report import BatchReport, Counts, Outcome
from ..sinks import Delivery, deliver
from ..sources import BatchInput
from ..spark.columns import RESCUED, SOURCE, TIME, col
from ..spark.kept import keep_rows
from ..spark.tables import append, frame_of, insert_new, read_commit
from . import quarantine
from .classify import judge
from .dedup import (
    beats_condition,
    compares_whole_rows,
    find_conflicts,
    merge_condition,
    reduce_by_key,
)
from .step_run import StepRun, Verdict
from .survey import Survey, is_good, is_late, take_survey


def process_batch(run: StepRun, frame: DataFrame, batch: int) -> None:
    """Give every row of one batch its fate. Raises RuleStop or SourceError before anything is written."""
    started = time.monotonic()
    run.before_write()
    checkpoint = Checkpoint(f"{run.checkpoint}/spark")
    taken = run.intake.inspect(checkpoint, batch)
    watermark = checkpoint.batch_watermark_ms(batch)
    done = (
        _replayed(run, frame, batch, watermark)
        if batch == run.open_batch and run.target and not run.stateful
        else None
    )
    report, verdicts = done or _survey_and_write(run, frame, batch, watermark, taken)
    report.watermark_ms, report.files, report.ranges = watermark or None, taken.files, taken.ranges
    report.seconds = round(time.monotonic() - started, 3)
    report.counts.check(f"{run.paths.pipeline}.{run.step.name} batch {batch}")
    run.before_write()
    entry = Entry(
        run_id=run.run_ids[0],
        written_by=run.run_ids[-1] if report.replayed else run.run_ids[0],
        batch=report,
        rules=verdicts,
        bytes=taken.bytes,
        amount=taken.amount,
    )
    note_batch(run.checkpoint, entry)
    run.finished.append(entry)
    run.on_batch(entry)


def _survey_and_write(
    run: StepRun, frame: DataFrame, batch: int, watermark: int, taken: BatchInput
) -> tuple[BatchReport, dict[str, Verdict]]:
    """Count, then write. A batch out of a state store is read from memory, because reading it twice would commit its state twice; a small one, to parse it once."""
    held = run.step.dedup is not None and run.step.dedup.memory == "state"
    frame = frame if held else judge(frame, run.step, run.business, run.rules)
    passes_again = _merges(run) and not compares_whole_rows(
        run.keys, run.business
    )  # for keys of which copies differ; two passes are cheaper parsed twice
    kept = run.stateful or not run.target or taken.fetched or (passes_again and taken.small)
    watermark = (
        0 if held or run.step.dedup is None else watermark
    )  # without dedup it is the transform's own, of rows that went into its state
    newest = watermark + int(run.step.dedup.within.total_seconds() * 1000) if watermark else None
    with keep_rows(frame) if kept else nullcontext(frame) as rows:
        survey = take_survey(rows, run.rules, watermark, run.hidden, newest)
        report = _write(run, rows, batch, survey, watermark, taken.lost)
        if held:
            run.count_dropped(report.counts)
    return report, run.verdicts(survey)


def _replayed(
    run: StepRun, frame: DataFrame, batch: int, watermark: int
) -> tuple[BatchReport, dict[str, Verdict]] | None:
    """The report of a batch whose target commit survived a crash, from that commit; None when it has to be done (again)."""
    note = read_commit(frame.sparkSession, run.target, run.transaction(batch).app_id, batch)
    if note is None or "counts" not in note:
        return None
    run.run_ids.append(note["run_id"])
    counts = Counts(
        **{
            **note["counts"],
            "written": note["inserted"],
            "replaced": note["replaced"],
            "duplicate": note["counts"]["duplicate"] + note["good"] - note["inserted"],
        }
    )
    report = BatchReport(
        batch_id=batch,
        counts=counts,
        replayed=True,
        event_time_min=_moment(note["oldest"]),
        event_time_max=_moment(note["newest"]),
        lateness=note["lateness"],
    )
    unique = _one_a_key(
        run,
        judge(frame, run.step, run.business, run.rules),
        watermark,
        note["oldest"],
        note["newest"],
    )
    _count_conflicts(run, unique, report, note["oldest"], note["newest"], note["version"] - 1)
    report.delivered = (
        _deliver(run, _rows_of_batch(run, frame.sparkSession, batch, note["version"]), batch)
        if run.step.further_sinks
        else {}
    )
    return report, note["rules"]


def _moment(micros: int | None) -> datetime | None:
    return (
        None
        if micros is None
        else datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    )


def refuse_if_stopped(run: StepRun, frame: DataFrame, survey: Survey) -> None:
    """Raise before a byte is written: for a `stop` rule that fails, and for undeclared fields under `unknown_fields: fail`."""
    if survey.rescued and run.step.source.refuses_unknown:
        fields = (
            frame.where(F.col(RESCUED).isNotNull()).select(F.json_object_keys(RESCUED)).first()[0]
        )  # names only: values may be private
        raise SourceError(
            f"{survey.rescued} row(s) have fields the schema does not declare",
            where=f"{run.paths.pipeline}.{run.step.name}",
            value=fields[:10],
            do="Declare them in `schema`, or write `unknown_fields: rescue`",
        )
    results = [
        row_result(rule, *counts)
        for rule, counts in zip(run.rules, survey.rules, strict=True)
        if rule.spec.on_fail == "stop"
    ]
    stops = [rule for rule in run.table_rules if rule.on_fail == "stop"]
    if stops and survey.good:
        rows = frame.where(is_good()).select(*[col(c) for c in run.business.names])
        results += validate_table(rows, stops, run.hidden)
    failed = [result for result in results if result.outcome is not Outcome.PASSED]
    if failed:
        run.table_results = [result for result in failed if result.level == "table"]
        run.refused = run.verdicts(survey)
        names = ", ".join(f"{r.name} ({r.outcome})" for r in failed)
        raise RuleStop(
            f"stopped by {names}: nothing of this batch was written, and the checkpoint is where it was",
            where=f"{run.paths.pipeline}.{run.step.name}",
            value=failed[0].samples or failed[0].message or None,
            do="Mend or remove the rows (or change the rule), then run again: the batch comes again as it is",
        )


def _stamp(run: StepRun, rows: DataFrame, batch: int, *more: str) -> DataFrame:
    """The columns of the target: the user's, `_rescued` where it is kept, where the row came from, and `more`."""
    kept = [RESCUED] if run.step.keeps_rescued else []
    system = [
        F.lit(run.run_ids[0]).alias("_run_id"),
        F.lit(batch).cast("bigint").alias("_batch_id"),
        F.col(SOURCE),
        F.lit(datetime.now(UTC)).alias("_ingested_at"),
    ]
    return rows.select(*[col(c) for c in run.business.names], *kept, *system, *more)


def _write(
    run: StepRun,
    frame: DataFrame,
    batch: int,
    survey: Survey,
    watermark: int,
    lost_files: dict[str, str],
) -> BatchReport:
    """Write the parts of a surveyed batch, each at most once, and count them."""
    refuse_if_stopped(run, frame, survey)
    late = 0 if run.late == "merge" else survey.late
    good = survey.good - late
    counts = Counts(
        read=survey.malformed + survey.parsed + len(lost_files),
        malformed=survey.malformed + len(lost_files),
        parsed=survey.parsed,
        entered=survey.entered,
        late=late,
        late_merged=survey.late - late,
    )
    report = BatchReport(
        batch_id=batch,
        counts=counts,
        event_time_min=_moment(survey.oldest),
        event_time_max=_moment(survey.newest),
        lateness=survey.lateness,
    )
    unique = _one_a_key(run, frame, watermark, survey.oldest, survey.newest)
    with run.take_turn() as turn:
        before = table_version(run.target) if run.target else None
        if survey.refused or lost_files:
            _check_right(run, turn)
            counts.quarantined = quarantine.write(run, frame, batch, survey.refused, lost_files)
            counts.duplicate = survey.refused + len(lost_files) - counts.quarantined
        if late and run.late == "keep":
            _check_right(run, turn)
            counts.late = _write_late(run, unique, batch, survey, watermark)
            counts.duplicate += late - counts.late
        if run.target and (good or run.replace_where):
            _check_right(run, turn)
            note = {
                "run_id": run.run_ids[0],
                "counts": counts.model_dump(),
                "good": good,
                "rules": run.verdicts(survey),
                "oldest": survey.oldest,
                "newest": survey.newest,
                "lateness": survey.lateness,
            }
            counts.written, counts.replaced = _write_target(
                run, unique, batch, survey, watermark, note
            )
            counts.duplicate += good - counts.written
        written = table_version(run.target) if run.target and run.step.further_sinks else None
    if good and run.step.further_sinks:
        rows = (
            _rows_of_batch(run, frame.sparkSession, batch, written)
            if run.target
            else _stamp(run, unique, batch)
        )
        report.delivered = _deliver(run, rows, batch)
        counts.written = counts.written if run.target else good
    if run.target and (
        good or run.replace_where
    ):  # after the turn: it only reads, so no other writer need wait for it
        _count_conflicts(run, unique, report, survey.oldest, survey.newest, before)
    return report


def _rows_of_batch(run: StepRun, session: SparkSession, batch: int, version: int) -> DataFrame:
    """The rows that a batch wrote into the target, as its commit left them: the same whenever they are asked for, with no row that was a copy.

    Args: version: of the target, after the batch.
    """
    table = frame_of(session, run.target, None if version == table_version(run.target) else version)
    return table.where((F.col("_batch_id") == batch) & F.col("_run_id").isin(run.run_ids))


def _deliver(run: StepRun, rows: DataFrame, batch: int) -> dict[str, int]:
    delivery = Delivery(
        run.transaction(batch).app_id,
        batch,
        run.business.names,
        run.folder,
        run.paths.root,
        frozenset(run.hidden),
    )
    return deliver(run.step.further_sinks, rows, delivery, run.before_write)


def _check_right(run: StepRun, turn: Lease | None) -> None:
    run.before_write()
    if turn is not None:
        turn.check()


def _merges(run: StepRun) -> bool:
    return run.step.dedup is not None and run.step.dedup.memory == "table"


def _replaces(run: StepRun) -> bool:
    """True where a row may take the place of its copy in the table."""
    dedup = run.step.dedup
    return (
        bool(dedup.order_by)
        and not dedup.first_arrives_first
        and not compares_whole_rows(run.keys, run.business)
    )


def _one_a_key(
    run: StepRun, frame: DataFrame, watermark: int, oldest: int | None, newest: int | None
) -> DataFrame:
    """The rows that may be written, one a key; where a late and a timely one share a key, the timely one."""
    rows = frame.where(is_good())
    if not _merges(run):
        return rows
    return reduce_by_key(
        rows,
        run.step,
        run.keys,
        run.business,
        (newest or 0) - (oldest or 0),
        is_late(watermark) if run.late != "merge" else None,
    )


def _condition(run: StepRun, oldest: int, newest: int) -> str:
    return merge_condition(run.step, run.keys, run.business, oldest, newest)


def _write_late(run: StepRun, unique: DataFrame, batch: int, survey: Survey, watermark: int) -> int:
    """Put late rows into their table, unless they are copies of what the target or the late table holds; returns how many."""
    condition = _condition(run, survey.oldest, survey.newest)
    target = frame_of(unique.sparkSession, run.target)
    behind = (F.lit(watermark * 1000) - F.unix_micros(TIME)) / 1e6
    rows = (
        unique.where(is_late(watermark))
        .alias("s")
        .join(target.alias("t"), F.expr(condition), "left_anti")
        .withColumn("_late_by_seconds", behind)
    )
    return insert_new(
        run.paths.late(run.step.name),
        _stamp(run, rows, batch, "_late_by_seconds"),
        condition,
        run.transaction(batch),
    )[0]


def _write_target(
    run: StepRun, unique: DataFrame, batch: int, survey: Survey, watermark: int, note: dict
) -> tuple[int, int]:
    """Write the good rows; returns how many the table did not hold before, and how many it held that lost against one of these."""
    rows = _stamp(run, unique.where(~is_late(watermark)) if run.late != "merge" else unique, batch)
    txn = run.transaction(batch, note)
    if run.replace_where:
        append(run.target, rows, txn, replace_where=run.replace_where)
        return read_commit(unique.sparkSession, run.target, txn.app_id, batch)["inserted"], 0
    if not _merges(run):
        append(run.target, rows, txn)
        return note["good"], 0
    beats = (
        beats_condition(
            run.step,
            run.business,
            {name.lower() for name in frame_of(unique.sparkSession, run.target).columns},
        )
        if _replaces(run)
        else None
    )
    return insert_new(run.target, rows, _condition(run, survey.oldest, survey.newest), txn, beats)


def _count_conflicts(
    run: StepRun,
    unique: DataFrame,
    report: BatchReport,
    oldest: int | None,
    newest: int | None,
    version: int | None,
) -> None:
    """Add the keys of which copies differ; read only where there are copies that can. `version`: of the target before this batch.

    Where rows only come in, that is the table of now without this batch: the next batch needs the state of this version anyway, and no other one.
    """
    if (
        not _merges(run)
        or compares_whole_rows(run.keys, run.business)
        or not report.counts.duplicate
        or oldest is None
    ):
        return
    table = None
    if not run.replace_where and version is not None:
        table = frame_of(unique.sparkSession, run.target, version if _replaces(run) else None)
        table = (
            table
            if _replaces(run)
            else table.where(
                ~((F.col("_batch_id") == report.batch_id) & F.col("_run_id").isin(run.run_ids))
            )
        )
    seen = find_conflicts(
        unique, table, _condition(run, oldest, newest), run.step, run.keys, run.business
    )
    report.conflicts, report.overtaken = (
        seen["conflicts"],
        seen["overtaken"] if run.step.dedup.first_arrives_first else 0,
    )
    if seen["conflicts"] and not run.hidden & set(run.keys):
        report.conflict_samples = sorted({seen["first"], seen["last"]})
