"""One run, from lease to report."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from .backfill import Range, remove_checkpoint, select_range
from .backlog import Checkpoint, LandedFile, StepBacklog, measure_pipeline, waiting_files
from .checkpoint import hold_lease
from .errors import ExitCode, RuleStop, SluiceError, TerminalError, TransientError
from .report import BatchReport, Counts, RunReport, StepReport, write_report
from .report.cost import measure_cost
from .spec import Paths, Pipeline, RunRequest, Step, load_pipeline

Progress = Callable[[str, int, int, BatchReport | None], None]


def run_pipeline(request: RunRequest, on_progress: Progress | None = None) -> RunReport:
    """Run a pipeline once and report; what goes wrong comes back as the report's status, error and exit code.

    on_progress(step, bytes done, bytes waiting, newest batch) is called as batches end. The report is stored unless nothing was new.
    """
    now = datetime.now(UTC)
    report = RunReport(pipeline=Path(request.pipeline).stem, run_id=request.run_id, started=now, ended=now, status="done",
                       kind="backfill" if request.window else "scheduled", window=f"{request.window.start} .. {request.window.end}" if request.window else None)
    paths = Paths.under(request.root, report.pipeline)
    try:
        pipeline = load_pipeline(request.pipeline)
        report.pipeline, paths = pipeline.name, Paths.under(request.root, pipeline.name)
        _run(pipeline, paths, request, report, on_progress or (lambda *_: None))
    except SluiceError as error:
        report.error, report.exit_code = str(error), error.exit_code
        report.status = "stopped by a rule" if isinstance(error, RuleStop) else "failed"
    return _finish(report, paths)


def _run(pipeline: Pipeline, paths: Paths, request: RunRequest, report: RunReport, on_progress: Progress) -> None:
    """Lease every checkpoint, ask what waits, and start Spark only when something does."""
    deadline = time.monotonic() + pipeline.budget.total_seconds()
    with ExitStack() as stack:
        leases = {step.name: stack.enter_context(hold_lease(paths.checkpoint(step.name, request.backfill), request.run_id)) for step in pipeline.steps}
        ranges = {step.name: select_range(step.source, request.window) for step in pipeline.steps if request.window}
        backlog = measure_pipeline(pipeline, paths) if not ranges else []
        if not any(b.must_run for b in backlog) and not any(r.files for r in ranges.values()):
            report.status, report.exit_code = "nothing new", ExitCode.NOTHING_NEW
            return
        spark = _start_spark(stack, pipeline, request, report, backlog, ranges)
        for step in pipeline.steps:
            step_report = StepReport(name=step.name, target=paths.table(step.name, step.sink.table), quarantine=paths.quarantine(step.name),
                                     warnings=next((b.warnings for b in backlog if b.step == step.name), []))
            report.steps.append(step_report)
            if not _run_step(spark, pipeline, step, paths, request, step_report, leases[step.name], deadline, ranges.get(step.name), on_progress):
                report.status = "out of time"
                break
        if request.window and report.status == "done":
            remove_checkpoint(paths, pipeline, request)
    report.check()


def _start_spark(stack: ExitStack, pipeline: Pipeline, request: RunRequest, report: RunReport, backlog: list[StepBacklog], ranges: dict[str, Range]) -> object:
    """Open the session with the settings that fit the backlog; Great Expectations is imported meanwhile where a rule needs it."""
    from .quality import import_in_background, is_table_level
    from .streaming.session import open_session
    from .streaming.settings import SMALL_BACKLOG, spark_settings

    began = time.monotonic()
    waiting = sum(b.bytes for b in backlog) + sum(f.size for r in ranges.values() for f in r.files)
    settings = spark_settings(pipeline, waiting, master=request.master)
    if any(is_table_level(rule) for step in pipeline.steps for rule in step.rules):
        import_in_background()
    spark = stack.enter_context(open_session(settings))
    profile = "short run" if waiting < SMALL_BACKLOG else "long run"
    report.spark = {"version": spark.version, "master": settings["spark.master"], "profile": profile, "start_seconds": f"{time.monotonic() - began:.1f}"}
    return spark


def _run_step(spark: object, pipeline: Pipeline, step: Step, paths: Paths, request: RunRequest, report: StepReport, check_lease: Callable[[], None],
              deadline: float, chosen: Range | None, on_progress: Progress) -> bool:
    """Drain one step; False when the time budget ended it before its backlog."""
    from .streaming.drain import OutOfTime, UnreadableFile, drain
    from .streaming.step import build_step, count_dropped_by_state

    checkpoint = Checkpoint(paths.checkpoint(step.name, request.backfill) + "/spark")
    report.offsets_before, report.watermark_before_ms = checkpoint.newest_commit, checkpoint.watermark_ms
    waiting = chosen.files if chosen else waiting_files(step.source, checkpoint)[0]
    unreadable: dict[str, str] = {}
    while True:
        began = time.monotonic()
        stream, run, warnings = build_step(spark, pipeline, step, paths, request, waiting, unreadable=unreadable,
                                           path=chosen.path if chosen else None, pattern=chosen.pattern if chosen else None)
        report.warnings += [w for w in warnings if w not in report.warnings]
        _add_time(report, "prepare", began)
        run.before_write, run.batches = check_lease, report.batches
        run.written_batch = _watch(report, waiting, step, on_progress)
        began = time.monotonic()
        try:
            count_dropped_by_state(run.batches, drain(stream, f"{run.checkpoint}/spark", run.process, deadline))
            return True
        except UnreadableFile as error:
            if error.path in unreadable:
                raise TransientError(error.why, where=error.path, do="Move the file out of the landing folder if it stays so") from None
            unreadable[error.path] = error.why
        except OutOfTime:
            report.left_for_next_run = True
            return False
        finally:
            _add_time(report, "drain", began)
            _close_step(spark, run, report)


def _add_time(report: StepReport, phase: str, began: float) -> None:
    report.timings[phase] = round(report.timings.get(phase, 0.0) + time.monotonic() - began, 3)


def _watch(report: StepReport, waiting: list[LandedFile], step: Step, on_progress: Progress) -> Callable:
    """Count files and bytes as batches end, and tell whoever watches."""
    sizes, total = {f.path: f.size for f in waiting}, sum(f.size for f in waiting)
    on_progress(step.name, report.bytes_read, total, None)

    def written(batch: BatchReport, files: list) -> None:
        report.files_read += len(files)
        report.bytes_read += sum(sizes.get(f.path, 0) for f in files)
        on_progress(step.name, report.bytes_read, total, batch)

    return written


def _close_step(spark: object, run: object, report: StepReport) -> None:
    """Judge the run's rows as a table, and note where everything stands now."""
    from .streaming.tables import table_version

    report.counts = sum((batch.counts for batch in report.batches), Counts())
    table_stops = [result for result in run.stopped if result.level == "table"]
    report.rules = run.rule_results() + table_stops
    if report.batches and run.table_rules and not run.stopped:
        began = time.monotonic()
        report.rules += run.judge_run(spark)
        _add_time(report, "table rules", began)
    checkpoint = Checkpoint(f"{run.checkpoint}/spark")
    report.offsets_after, report.watermark_after_ms = checkpoint.newest_commit, checkpoint.watermark_ms
    found = {"target": table_version(run.target), "quarantine": table_version(report.quarantine), "late": table_version(run.paths.late(run.step.name))}
    report.versions = {name: version for name, version in found.items() if version is not None}


def _finish(report: RunReport, paths: Paths) -> RunReport:
    """Add what the run cost, and store the report."""
    report.ended = datetime.now(UTC)
    report.seconds_up, report.core_seconds = measure_cost()
    if report.exit_code is ExitCode.DONE and any(rule.on_fail == "stop" for rule in report.failed_rules):
        report.status, report.exit_code = "stopped by a rule", ExitCode.STOPPED_BY_RULE
    if report.status != "nothing new":
        try:
            write_report(report, paths.reports())
        except OSError as error:
            raise TerminalError(f"the report could not be written: {error}", where=paths.reports(), do="Give the run write access there") from error
    return report
