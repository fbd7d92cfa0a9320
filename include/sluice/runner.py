"""One run, from lease to report."""

import logging
import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from .backlog import Arrivals, measure_pipeline, settle, take_arrivals
from .backlog.ranges import remove_checkpoint, select_range
from .checkpoint import Checkpoint, Lease, hold_lease
from .errors import CheckpointBusy, ExitCode, LeaseLost, RuleStop, SluiceError, TransientError
from .report import BatchReport, RunReport, StepReport, write_report
from .report.cost import measure_cost
from .spec import FileSource, Pipeline, RunRequest, check_trial, clean_run_id, load_pipeline
from .storage import Paths

if TYPE_CHECKING:
    from .streaming.execute import RunContext

_log = logging.getLogger(__name__)

Progress = Callable[[str, int, int, BatchReport | None], None]
_LONGEST_HOLD = 43_200
"""Seconds a queue keeps messages hidden at most."""
_AFTER_BUDGET = 300
"""Seconds a run may take after its budget, to end its last batch and to report."""


def run_pipeline(request: RunRequest, on_progress: Progress | None = None) -> RunReport:
    """Run a pipeline once and report; what goes wrong comes back as the report's status, error and exit code.

    on_progress(step, done, waiting, newest batch) is called as batches end. The report is stored unless nothing was new.
    """
    now = datetime.now(UTC)
    report = RunReport(
        pipeline=Path(request.pipeline).stem,
        run_id=request.run_id,
        started=now,
        ended=now,
        status="done",
        kind="backfill" if request.window else "trial" if request.dev_seconds else "scheduled",
        window=f"{request.window.start} .. {request.window.end}" if request.window else None,
    )
    paths = _paths(request, report.pipeline)
    leases: dict[str, Lease] = {}
    with ExitStack() as rights:  # let go only after the report: it is a write like any other
        try:
            pipeline = load_pipeline(request.pipeline)
            report.pipeline, paths = pipeline.name, _paths(request, pipeline.name)
            check_trial(pipeline, request.dev_seconds is not None)
            for step in pipeline.steps:
                leases[step.name] = rights.enter_context(
                    hold_lease(paths.lease(step.name, request.backfill), request.run_id)
                )
            _run(pipeline, paths, request, report, leases, on_progress or (lambda *_: None))
        except SluiceError as error:
            report.error, report.exit_code = str(error), error.exit_code
            report.status = "stopped by a rule" if isinstance(error, RuleStop) else "failed"
            if isinstance(error, CheckpointBusy) and not report.spark:
                return report  # it read nothing, and the run that is at work reports
        except Exception as error:  # noqa: BLE001 (what nobody foresaw still ends in a report, and is worth one more try)
            _log.exception("run %s failed", request.run_id)
            what = f"unexpected {type(error).__name__}: {' '.join(str(error).split())[:400]}"
            unforeseen = TransientError(
                what, do="Run again; if it fails the same way, the task's log has the rest"
            )
            report.error, report.exit_code, report.status = (
                str(unforeseen),
                unforeseen.exit_code,
                "failed",
            )
        complete = report.status in ("done", "nothing new")
        _finish(report, paths, leases)
        if request.window and complete and report.status != "failed":
            # After the report, and only with it: without it these notes are what the next try reports, and an outranked run's checkpoint is another's.
            remove_checkpoint(paths, pipeline, request)
        return report


def _paths(request: RunRequest, pipeline: str) -> Paths:
    paths = Paths.under(request.root, pipeline)
    return paths.trial(clean_run_id(request.run_id)) if request.dev_seconds is not None else paths


def _run(
    pipeline: Pipeline,
    paths: Paths,
    request: RunRequest,
    report: RunReport,
    leases: dict[str, Lease],
    on_progress: Progress,
) -> None:
    """Ask what waits, and start Spark only when something does."""
    deadline = time.monotonic() + pipeline.budget.total_seconds()
    with ExitStack() as stack:
        ranges = {
            step.name: select_range(step, request.window)
            for step in pipeline.steps
            if request.window
        }
        arrivals, drained = _take_arrivals(stack, pipeline, paths, request, report)
        backlog = measure_pipeline(pipeline, paths, arrivals) if not ranges else []
        if not any(b.must_run for b in backlog) and all(r.is_empty for r in ranges.values()):
            report.status, report.exit_code = "nothing new", ExitCode.NOTHING_NEW
            drained.update(arrivals)
            return
        from .streaming.execute import run_step  # Spark is imported only now that something waits

        sizes = [b.weight for b in backlog] + [r.bytes for r in ranges.values()]
        waiting = None if None in sizes else sum(sizes)
        context = _start_spark(
            stack, pipeline, paths, request, report, waiting, deadline, on_progress
        )
        context.leases.update(leases)
        context.arrivals.update(arrivals)
        for step in pipeline.steps:
            warnings = next((b.warnings for b in backlog if b.step == step.name), [])
            target, quarantine = step.target_path(paths), paths.quarantine(step.name)
            report.steps.append(
                StepReport(
                    name=step.name,
                    target=target,
                    quarantine=quarantine,
                    warnings=warnings,
                    within=step.dedup and step.dedup.horizon,
                )
            )
            if not run_step(context, step, report.steps[-1], ranges.get(step.name)):
                report.status = "out of time"
                break
            drained.add(step.name)
    report.check()


def _take_arrivals(
    stack: ExitStack, pipeline: Pipeline, paths: Paths, request: RunRequest, report: RunReport
) -> tuple[dict[str, Arrivals], set[str]]:
    """What queues name to the steps of a scheduled run, and the names of the steps that took it all in, to be filled by the run; messages are settled with the stack."""
    arrivals: dict[str, Arrivals] = {}
    drained: set[str] = set()
    if request.window is not None or request.dev_seconds is not None:
        return arrivals, drained

    def settle_all() -> None:
        """Before the report: a batch it does not hold is noted beside the checkpoint, but a message that stays is what it has to tell."""
        for name, taken in arrivals.items():
            warnings = settle(taken, name in drained)
            for step in report.steps:
                step.warnings += warnings if step.name == name else []
            for warning in warnings:
                _log.warning("%s: %s", name, warning)

    stack.callback(settle_all)
    hold = min(_LONGEST_HOLD, math.ceil(pipeline.budget.total_seconds()) + _AFTER_BUDGET)
    for step in pipeline.steps:
        if isinstance(step.source, FileSource) and step.source.notifications is not None:
            arrivals[step.name] = take_arrivals(
                step.source, Checkpoint(f"{paths.checkpoint(step.name)}/spark"), hold
            )
    return arrivals, drained


def _start_spark(
    stack: ExitStack,
    pipeline: Pipeline,
    paths: Paths,
    request: RunRequest,
    report: RunReport,
    waiting_bytes: int | None,
    deadline: float,
    on_progress: Progress,
) -> "RunContext":
    """Open the session with the settings that fit the backlog; Great Expectations is imported meanwhile where a rule needs it."""
    from .launch import SMALL_BACKLOG, spark_settings
    from .quality import import_in_background, is_table_level
    from .spark.executors import executor_cost
    from .spark.session import open_session
    from .streaming.execute import RunContext

    began = time.monotonic()
    settings = spark_settings(pipeline, waiting_bytes, master=request.master, root=paths.root)
    if any(is_table_level(rule) for step in pipeline.steps for rule in step.rules):
        import_in_background()
    spark = stack.enter_context(open_session(settings))
    stack.callback(lambda: report.spark.update(executor_cost(spark)))
    profile = (
        "short run" if waiting_bytes is not None and waiting_bytes < SMALL_BACKLOG else "long run"
    )
    report.spark = {
        "version": spark.version,
        "master": settings["spark.master"],
        "profile": profile,
        "start_seconds": f"{time.monotonic() - began:.1f}",
    }
    return RunContext(spark, pipeline, paths, request, deadline, on_progress)


def _finish(report: RunReport, paths: Paths, leases: dict[str, Lease]) -> None:
    """Add what the run cost, and store the report; a run that was outranked stores none, because the one that took over reports its batches."""
    report.ended = datetime.now(UTC)
    report.seconds_up, report.core_seconds = measure_cost()
    if report.exit_code is ExitCode.DONE and any(
        rule.on_fail == "stop" for rule in report.failed_rules
    ):
        report.status, report.exit_code = "stopped by a rule", ExitCode.STOPPED_BY_RULE
    if report.status != "nothing new":
        try:
            for lease in leases.values():
                lease.check()
            write_report(report, paths.reports())
        except LeaseLost as error:
            report.status, report.error, report.exit_code = (
                "failed",
                report.error or str(error),
                ExitCode.TRANSIENT,
            )
        except Exception as error:  # noqa: BLE001 (an OSError on a disk; on S3, whatever its client raises)
            unwritten = TransientError(
                f"the report could not be written: {error}",
                where=paths.reports(),
                value=report.error,
                do="Make room or give the run write access there, then run again: the next run reports these batches",
            )
            report.status, report.error, report.exit_code = (
                "failed",
                str(unwritten),
                max(report.exit_code, unwritten.exit_code),
            )
