"""Drains one step: build its stream, run it, build it again without a file nobody can read, judge the rows it wrote."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial, reduce

from pyspark.sql import SparkSession

from ..backlog import Arrivals, measure_step, table_version
from ..backlog.ranges import Range
from ..checkpoint import (
    Checkpoint,
    Entry,
    Lease,
    check_parents,
    complete_epochs,
    find_unreported,
    forget,
    note_batch,
    take_turn,
)
from ..report import BatchReport, Counts, StepReport, add_histograms, merge_ranges
from ..sinks import describe_sink
from ..sources import Found, Intake, choose_intake
from ..spark.failure import ChangedTable, UnplannedFiles, UnreadableFile
from ..spark.tables import locate_target
from ..spec import (
    Pipeline,
    RunRequest,
    Step,
    Trigger,
    describe_trigger,
    never_ends,
    trigger_kind,
)
from ..storage import Paths
from .batch import process_batch
from .continuous import run_continuous
from .drain import OutOfTime, drain
from .step import build_step, count_dropped_by_state
from .step_run import StepRun
from .trigger import choose_end, choose_trigger

Progress = Callable[[str, int, int, BatchReport | None], None]


@dataclass(frozen=True)
class RunContext:
    """What the steps of one run share. `deadline`: `time.monotonic()` after which no batch starts."""

    spark: SparkSession
    pipeline: Pipeline
    paths: Paths
    request: RunRequest
    deadline: float
    on_progress: Progress
    leases: dict[str, Lease] = field(default_factory=dict)
    """The lease of each step's checkpoint."""
    arrivals: dict[str, Arrivals] = field(default_factory=dict)
    """What a queue named, by step."""

    def raise_if_lost(self) -> None:
        """Raise when it is known that this run must stop: a lease is lost, or nobody waits for it any more. Asks no store."""
        for lease in self.leases.values():
            lease.raise_if_lost()
        check_parents(self.request.parents)

    def check_right(self, step: Step) -> None:
        """Raise when this run may not write for a step any more."""
        self.leases[step.name].check()
        check_parents(self.request.parents)

    def take_turn(self, table: str) -> AbstractContextManager[Lease | None]:
        """Wait for the right to commit to a table, as long as the time budget lasts."""
        return take_turn(
            table, self.request.run_id, wait=max(60.0, self.deadline - time.monotonic())
        )


def run_step(
    context: RunContext, step: Step, report: StepReport, chosen: Range | None = None
) -> bool:
    """Drain one step into its report; False when the time budget ended it before its backlog.

    Args: chosen: the files of a backfill. Raises what building and draining raise.
    """
    place = context.paths.checkpoint(step.name, context.request.backfill) + "/spark"
    complete_epochs(place)  # a continuous run that was killed left them
    checkpoint, trigger = Checkpoint(place), choose_trigger(step, context.request)
    lost = describe_trigger(trigger) if trigger == step.trigger else None
    report.warnings += [lost] if lost else []
    report.offsets_before, report.watermark_before_ms = (
        checkpoint.newest_commit,
        checkpoint.watermark_ms,
    )
    intake = choose_intake(
        context.pipeline,
        step,
        context.paths,
        context.request,
        checkpoint,
        Found(chosen, context.arrivals.get(step.name)),
    )
    target = locate_target(context.spark, step, context.paths)
    report.target = target or ", ".join(describe_sink(sink) for sink in step.sinks)
    if trigger_kind(trigger) == "continuous":
        return run_continuous(context, step, report, intake, trigger)
    run = end = None
    while True:
        began = time.monotonic()
        stream, run = _build(context, step, report, intake, target, run)
        _carry_over(run, context.paths, checkpoint)
        _add_time(report, "prepare", began)
        began = time.monotonic()
        end = end or choose_end(trigger, context.request, context.deadline)
        try:
            if intake.is_empty:
                return True
            done = drain(
                stream,
                place,
                partial(process_batch, run),
                context.deadline,
                context.raise_if_lost,
                trigger=trigger,
                end=end,
                mode=step.output_mode,
            )
            _note_end(context, step, report, trigger, done)
            _add_time(report, "drain", began)
            _judge(context.spark, run, report)
            return True
        except (UnreadableFile, UnplannedFiles, ChangedTable) as error:
            intake.absorb(error)
        except OutOfTime:
            report.left_for_next_run = True
            return False
        finally:
            _close(run, report)


def _note_end(
    context: RunContext, step: Step, report: StepReport, trigger: Trigger, done: bool
) -> None:
    """Say what is left where the query was stopped at its end: what waits then, or what a trial's time was too short for."""
    trial = context.request.dev_seconds is not None
    if not done and not trial:
        place = context.pipeline.source_path(step.source, context.paths)
        waiting = measure_step(step, context.paths, context.pipeline.idle_run_every, place)
        report.left_for_next_run = waiting.open_batch or bool(waiting.amount)
    if not done and trial and not never_ends(trigger):
        report.warnings.append(
            f"the trial's {context.request.dev_seconds:g} seconds ended before its source did"
        )


def _build(
    context: RunContext,
    step: Step,
    report: StepReport,
    intake: Intake,
    target: str,
    earlier: StepRun | None,
) -> tuple:
    """The stream and its bookkeeping; a second try within the run goes on with what the first one counted."""
    with context.take_turn(target or report.quarantine):  # it may create the tables
        stream, run = build_step(
            context.spark, context.pipeline, step, context.paths, context.request, intake, target
        )
    report.warnings += [w for w in intake.warnings if w not in report.warnings]
    run.before_write, run.take_turn = (
        partial(context.check_right, step),
        partial(context.take_turn, target or report.quarantine),
    )
    run.count_dropped = partial(count_dropped_by_state, context.spark)
    if earlier is not None:
        run.finished, run.run_ids = earlier.finished, earlier.run_ids

    def show(newest: Entry | None) -> None:
        context.on_progress(
            step.name,
            sum(entry.amount for entry in run.finished),
            intake.total,
            newest and newest.batch,
        )

    run.on_batch = show
    show(None)
    return stream, run


def _carry_over(run: StepRun, paths: Paths, checkpoint: Checkpoint) -> None:
    """Report what a run that died had finished; forget the notes that a report holds."""
    if run.finished:
        return  # a second try within this run: they are here already
    missing, reported = find_unreported(
        paths, run.step.name, run.checkpoint, run.run_ids[0], checkpoint.newest_commit
    )
    for entry in missing:
        run.carry_over(entry)
        note_batch(run.checkpoint, entry.model_copy(update={"run_id": run.run_ids[0]}))
    forget(run.checkpoint, reported)


def _add_time(report: StepReport, phase: str, began: float) -> None:
    report.timings[phase] = round(report.timings.get(phase, 0.0) + time.monotonic() - began, 3)


def _judge(spark: SparkSession, run: StepRun, report: StepReport) -> None:
    """Table-level rules, on all rows this run wrote."""
    if run.finished and run.table_rules:
        began = time.monotonic()
        run.table_results = run.judge_run(spark)
        _add_time(report, "table rules", began)


def _close(run: StepRun, report: StepReport) -> None:
    """Note the counts, the verdicts and where everything stands now."""
    checkpoint = Checkpoint(f"{run.checkpoint}/spark")
    run.drop_uncommitted(checkpoint.newest_commit)
    report.batches = [entry.batch for entry in run.finished]
    report.files_read, report.bytes_read = (
        sum(entry.batch.files for entry in run.finished),
        sum(entry.bytes for entry in run.finished),
    )
    report.ranges = reduce(merge_ranges, (entry.batch.ranges for entry in run.finished), {})
    report.delivered = dict(
        sum((Counter(entry.batch.delivered) for entry in run.finished), Counter())
    )
    report.counts = sum((batch.counts for batch in report.batches), Counts())
    report.conflicts = sum(batch.conflicts for batch in report.batches)
    report.overtaken = sum(batch.overtaken for batch in report.batches)
    samples = sorted({sample for batch in report.batches for sample in batch.conflict_samples})
    report.conflict_samples = samples[:1] + samples[1:][-1:]
    report.lateness = reduce(add_histograms, (batch.lateness for batch in report.batches), [])
    report.warnings += [
        warning for warning in run.intake.review(report.batches) if warning not in report.warnings
    ]
    report.rules = run.rule_results() + run.table_results
    report.offsets_after, report.watermark_after_ms = (
        checkpoint.newest_commit,
        checkpoint.watermark_ms,
    )
    found = {
        "target": table_version(run.target) if run.target else None,
        "quarantine": table_version(report.quarantine),
        "late": table_version(run.paths.late(run.step.name)),
    }
    report.versions = {name: version for name, version in found.items() if version is not None}
