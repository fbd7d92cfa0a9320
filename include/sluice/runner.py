"""One run, from lease to report."""

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from .backlog import clean_step, measure_pipeline, note_idle_audits, shorten_logs
from .backlog.due import Waiting
from .backlog.queues import Queues
from .backlog.ranges import refuse_doubling, remove_checkpoint, select_range
from .checkpoint import Rights, hold_lease
from .errors import LeaseLost, SluiceError, TransientError
from .launch import SMALL_BACKLOG, has_class_archive, spark_settings
from .report import UNWATCHED, Progress, RunReport
from .report.ending import NOTHING_NEW, OUT_OF_TIME, UNFINISHED, Ending
from .report.publish import publish_report
from .report.story import Story
from .spec import Pipeline, RunRequest, Step, check_trial, load_neighbours, load_pipeline
from .spec.order import count_at_once, order_steps
from .spec.run import Refill, Verify

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .streaming.run import Run

_log = logging.getLogger(__name__)
_NO_ARCHIVE = "none, so the run cost up to a third more; `python -m sluice.warmup` makes it"


def run_pipeline(request: RunRequest, progress: Progress = UNWATCHED) -> RunReport:
    """Run a pipeline once and report; what goes wrong comes back as the report's status, error and
    exit code. The report is stored unless nothing was new.

    Args: progress: who is told how far it is.
    """
    story, rights = Story(request), Rights(request.run_id, {}, [], 0.0)
    with ExitStack() as held:  # let go only after the report: it is a write like any other
        try:
            pipeline = story.begin(load_pipeline(request.pipeline))
            check_trial(pipeline, story.mode.is_trial)
            refuse_doubling(pipeline, request)
            rights = _take_rights(held, pipeline, story)
            ending = _run(pipeline, story, rights, progress)
        except SluiceError as error:
            ending = Ending.of(error)
        except Exception as error:  # noqa: BLE001 (what nobody foresaw still ends in a report)
            _log.exception("run %s failed", request.run_id)
            ending = Ending.unforeseen(error)
        report = _store(story, ending, rights)
        if story.mode.is_backfill and ending.is_complete and report.status != "failed":
            # After the report, and only with it: without it these notes are what the next try
            # reports, and an outranked run's checkpoint is another's.
            remove_checkpoint(story.paths, pipeline, request)
        return report


def _take_rights(held: ExitStack, pipeline: Pipeline, story: Story) -> Rights:
    """The lease of every step's checkpoint that may be written. Raises CheckpointBusy."""
    run_id, steps = story.request.run_id, pipeline.steps if story.mode.writes else []
    leases = {
        step.name: held.enter_context(hold_lease(story.mode.lease(story.paths, step.name), run_id))
        for step in steps
    }
    deadline = time.monotonic() + pipeline.budget.total_seconds()
    return Rights(run_id, leases, story.request.parents, deadline)


def _run(pipeline: Pipeline, story: Story, rights: Rights, progress: Progress) -> Ending:
    """Ask what waits, and start Spark only when something does."""
    if story.mode.refill is not None:
        return _deliver(pipeline, story, rights, progress, story.mode.refill)
    if story.mode.verify is not None:
        return _verify(pipeline, story, story.mode.verify)
    with Queues(story.warn) as queues:
        waiting = _probe(pipeline, story, queues)
        if waiting.nothing:
            queues.drained.update(queues.arrivals)
            if story.mode.is_scheduled:
                note_idle_audits(pipeline, story.paths, list(waiting.backlog.values()))
            for step in pipeline.steps:  # what a run that was killed left
                for told in _clean(pipeline, story, rights, step):
                    _log.warning("%s: %s", step.name, told)
            return NOTHING_NEW
        from .streaming.run import Run  # Spark is imported only now that something waits
        from .streaming.together import run_steps

        before = order_steps(pipeline, story.paths)
        with _spark(pipeline, story, waiting.bytes) as spark:
            request, most = story.request, count_at_once(pipeline, before)
            run = Run(
                spark, pipeline, story.paths, story.mode, request.run_id, rights, progress, most
            )
            ended = run_steps(run, before, partial(_drain, story, waiting, queues))
    if ended.failures:
        return Ending.of_steps(ended.failures, before)
    if ended.unfinished:
        return UNFINISHED if story.mode.is_backfill else OUT_OF_TIME
    return Ending.behind(story.lacking)


def _drain(story: Story, waiting: Waiting, queues: Queues, run: "Run", step: Step) -> bool:
    """Drain one step; false where the time budget ended it before its backlog."""
    from .sources import Found
    from .streaming.step import begin_step, run_step

    tally = begin_step(run, step)
    story.add(tally)
    tally.warn(*_warnings(waiting, step))
    found = Found(waiting.ranges.get(step.name), queues.arrivals.get(step.name, {}))
    done = run_step(run, step, tally, found)
    tally.warn(*_clean(run.pipeline, story, run.rights, step))
    if story.mode.is_scheduled:
        tally.warn(*shorten_logs(step, story.paths.checkpoint(step.name), run.rights.check))
    if done:
        queues.drained.add(step.name)
    return done


def _clean(pipeline: Pipeline, story: Story, rights: Rights, step: Step) -> list[str]:
    """Archive or delete the files that the schedule has read; sentences about those that stay."""
    if not story.mode.is_scheduled:
        return []

    def may_go_on() -> bool:
        rights.check(step.name)
        return time.monotonic() < rights.deadline

    return clean_step(step, story.paths.checkpoint(step.name), load_neighbours(pipeline), may_go_on)


def _deliver(
    pipeline: Pipeline, story: Story, rights: Rights, progress: Progress, refill: Refill
) -> Ending:
    """Send further sinks what they lack; no source is looked at."""
    steps = [step for step in pipeline.steps if refill.step in (None, step.name)]
    with _spark(pipeline, story, 0) as spark:
        from .streaming.delivering import deliver_step
        from .streaming.run import Run
        from .streaming.step import begin_step

        run = Run(spark, pipeline, story.paths, story.mode, story.request.run_id, rights, progress)
        for step in steps:
            tally = begin_step(run, step)
            story.add(tally)
            deliver_step(run, step, tally, refill)
    return Ending.behind(story.lacking)


def _verify(pipeline: Pipeline, story: Story, verify: Verify) -> Ending:
    """Compare tables with what their inputs give; none is changed."""
    from .verify.steps import conclude, open_verdicts

    verdicts = open_verdicts(pipeline, story.paths, verify.step)
    if not any(verdict.has_run for verdict in verdicts):
        return NOTHING_NEW
    with _spark(pipeline, story, None) as spark:
        for verdict in verdicts:
            story.add(verdict)
            verdict.look(spark, pipeline, verify.share)
    return Ending.verified(conclude(verdicts))


def _probe(pipeline: Pipeline, story: Story, queues: Queues) -> Waiting:
    window = story.mode.window
    if window is not None:
        return Waiting({}, {step.name: select_range(step, window) for step in pipeline.steps})
    if story.mode.redo is not None:
        return Waiting({}, {}, asked=True)
    if not story.mode.is_trial:
        queues.take(pipeline, story.paths)
    found = measure_pipeline(pipeline, story.paths, queues.arrivals)
    return Waiting({backlog.step: backlog for backlog in found}, {})


def _warnings(waiting: Waiting, step: Step) -> list[str]:
    return waiting.backlog[step.name].warnings if step.name in waiting.backlog else []


@contextmanager
def _spark(pipeline: Pipeline, story: Story, size: int | None) -> Iterator["SparkSession"]:
    """A session with the settings that fit the backlog; Great Expectations is imported meanwhile
    where a rule needs it."""
    from .quality import import_in_background, is_table_level
    from .spark.executors import executor_cost
    from .spark.session import open_session

    began, request = time.monotonic(), story.request
    settings = spark_settings(pipeline, size, master=request.master, root=story.paths.root)
    if any(is_table_level(rule) for step in pipeline.steps for rule in step.rules):
        import_in_background()
    with open_session(settings) as spark:
        small = size is not None and size < SMALL_BACKLOG
        story.spark = {
            "version": spark.version,
            "master": settings["spark.master"],
            "profile": "short run" if small else "long run",
            "start_seconds": f"{time.monotonic() - began:.1f}",
            **({} if has_class_archive() else {"class archive": _NO_ARCHIVE}),
        }
        try:
            yield spark
        finally:
            story.spark |= executor_cost(spark)


def _store(story: Story, ending: Ending, rights: Rights) -> RunReport:
    """Tell the report, and store it where there is something to tell; a run that was outranked
    stores none, or one without what the run that took over tells."""
    try:
        report = story.tell(ending)
        report.check()
    except SluiceError as error:
        ending = Ending.of(error)
        report = story.tell(ending)
    if not (ending.stored or story.tallies):
        return report
    try:
        publish_report(report, story, rights.check_all)
    except LeaseLost as error:
        lost = replace(Ending.of(error), error=report.error or str(error))
    except Exception as error:  # noqa: BLE001 (an OSError on a disk; on S3, whatever its client raises)
        lost = Ending.of(
            TransientError(
                f"the report could not be written: {error}",
                where=story.reports,
                value=report.error,
                do="Make room or give the run write access there, then run again: the next run "
                "reports these batches",
            )
        )
    else:
        return report
    code = max(report.exit_code, lost.exit_code)
    told = {"status": lost.status, "error": lost.error, "exit_code": code}
    return report.model_copy(update=told)
