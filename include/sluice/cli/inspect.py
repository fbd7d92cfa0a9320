"""Verbs that look and change nothing: validate, plan, report."""

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..backlog import StepBacklog, describe_landing, measure_pipeline
from ..checkpoint import live_bytes, noted_held
from ..errors import ExitCode, SluiceError, SourceError, SpecError
from ..report import (
    latest_report,
    list_reports,
    read_report,
    render_text,
    report_path,
)
from ..report.estimate import RUNS, Amount, estimate_run
from ..report.units import format_bytes
from ..spec import (
    FileSource,
    Pipeline,
    Step,
    check_schedule,
    describe_limits,
    find_pipelines,
    load_pipeline,
)
from ..spec.order import count_at_once, order_steps
from ..spec.quantities import format_duration
from ..storage import spark_folder
from .app import Name, Root, Spec, app, err, find_file, find_reports, load, out, pipelines_folder

if TYPE_CHECKING:  # only `validate` needs what reads lines, and it costs imports
    from ..spec.lines import Lines

_NOT_CHECKED = (
    "not checked: columns, SQL, Python and rules as Spark sees them; `--spark` builds every step "
    "without data"
)


@app.command()
def validate(
    name: Name = None,
    spec: Spec = None,
    every: Annotated[
        bool, typer.Option("--all", help="All pipelines of the project; the default without NAME.")
    ] = False,
    spark: Annotated[
        bool,
        typer.Option(
            "--spark",
            help="Also start Spark and build every step without data: SQL, Python, rules, columns.",
        ),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Also say what each step does not promise, and why."),
    ] = False,
) -> None:
    """Check pipeline files; each wrong one is named with file, field, value and what to write."""
    files = (
        find_pipelines(pipelines_folder())
        if every or not (name or spec)
        else [find_file(name, spec)]
    )
    failed = 0
    for file in files:
        try:
            pipeline = _check_file(file, spark)
            if explain:
                for sentence in _describe_order(pipeline):
                    out.print(f"    {sentence}", style="dim")
                for step in pipeline.steps:
                    for limit in (*describe_limits(step), *_describe_state(pipeline, step)):
                        out.print(f"    {limit}", style="dim")
        except SluiceError as error:
            failed += 1
            err.print(str(error), style="red")
    if not spark:
        out.print(_NOT_CHECKED, style="dim")
    if failed:
        raise typer.Exit(int(ExitCode.TERMINAL))


def _describe_order(pipeline: Pipeline) -> Iterator[str]:
    """What each of several steps waits for, and how many may run at once."""
    before = order_steps(pipeline, pipeline.paths())
    if len(before) == 1:
        return
    for name, waits in before.items():
        earlier = [other for other in before if other in waits]
        yield f"{name}: waits for {', '.join(earlier) or 'no other step'}"
    yield f"steps that run at once, at most: {count_at_once(pipeline, before)}"


def _describe_state(pipeline: Pipeline, step: Step) -> Iterator[str]:
    """How large the state of a step is by now, where its last report told it."""
    checkpoint = pipeline.paths().checkpoint(step.name)
    held = noted_held(checkpoint)
    if held is None:
        return
    for number, amount in held.amounts.items():
        size = live_bytes(spark_folder(checkpoint), int(number))
        told = f", {format_bytes(size)}" if size else ""
        yield f"{step.name}: its state held {amount:,} entries{told} after run {held.run_id}"


def _check_file(file: Path, spark: bool) -> Pipeline:
    """The pipeline of a right file, after saying so and what may not be meant. Raises SluiceError.

    Args: spark: whether to start it and to build every step.
    """
    from ..spec.lines import Lines

    pipeline = load_pipeline(file)
    lines = Lines(file.read_text(encoding="utf-8"))
    warnings = _review(pipeline, file, lines)
    if spark:
        from ..streaming.rehearsal import build_without_data

        with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
            build_without_data(file, Path(folder))
    out.print(f"ok  {file.stem}")
    for warning in [*warnings, *_describe_landing(pipeline, lines)]:
        err.print(f"    warning: {warning}", style="yellow")
    return pipeline


def _review(pipeline: Pipeline, file: Path, lines: "Lines") -> list[str]:
    """Warnings of what may not be meant. Raises SpecError of all that cannot be meant."""
    from ..spec.review import review_pipeline

    check_schedule(pipeline.schedule, str(file), lines.describe(("schedule", "or_at")))
    check_schedule(pipeline.verify, str(file), lines.describe(("verify",)), "verify")
    found = review_pipeline(pipeline, file)
    errors = [finding.to_error(file, lines) for finding in found if not finding.warns]
    if errors:
        raise SpecError("\n".join(map(str, errors)))
    return [str(finding.to_error(file, lines)) for finding in found]


def _describe_landing(pipeline: Pipeline, lines: "Lines") -> list[str]:
    """What does not fit the files there are; more may come, so nothing is refused for it."""
    warnings = []
    for number, step in enumerate(pipeline.steps):
        for name, one in step.streams.items():
            at = ("inputs", name) if step.inputs else ()
            for sentence in (
                describe_landing(one.source) if isinstance(one.source, FileSource) else ()
            ):
                field = sentence.partition(":")[0].removeprefix("source").strip(".") or "path"
                place = lines.describe(("steps", number, *at, "source", field))
                warnings.append(f"{step.name}: {sentence} ({place})")
    return warnings


@app.command()
def plan(name: Name = None, spec: Spec = None, root: Root = None) -> None:
    """Show what is waiting and what a run would do, without starting Spark.

    Exit code 3 when nothing is new.
    """
    _, pipeline = load(name, spec)
    paths = pipeline.paths(root)
    backlog = measure_pipeline(pipeline, paths)
    for step in backlog:
        out.print(f"{pipeline.name}.{step.step}: {_describe_backlog(step)}")
        out.print(f"  because {step.reason}")
        for name, amount in step.inputs.items():
            out.print(f"  {name}: {amount or 'nothing new'}")
        out.print(f"  checkpoint: {_describe_age(step.last_run)}")
        for sentence in step.undelivered:
            out.print(f"  {sentence}")
        for warning in filter(None, [*step.warnings, step.redefined]):
            err.print(f"  warning: {warning}", style="yellow")
    if not any(step.must_run for step in backlog):
        raise typer.Exit(int(ExitCode.NOTHING_NEW))
    out.print(f"estimate: {_estimate(backlog, paths.reports())}")


def _estimate(backlog: list[StepBacklog], reports: str) -> str:
    amount = Amount(
        bytes=sum(step.bytes for step in backlog if step.files),
        records=sum(step.records for step in backlog),
        commits=sum(step.commits for step in backlog),
    )
    found = estimate_run(amount, list_reports(reports, limit=2 * RUNS))
    return found.sentence if found else "none, no earlier run tells what this amount takes"


def _describe_backlog(step: StepBacklog) -> str:
    if not step.must_run:
        return "nothing to do, no JVM would start"
    oldest = f", the oldest from {step.oldest:%Y-%m-%d %H:%M:%S} UTC" if step.oldest else ""
    return f"would run Spark over {step.amount or 'an unknown amount'}{oldest}"


def _describe_age(last_run: datetime | None) -> str:
    if last_run is None:
        return "none yet"
    seconds = round((datetime.now(UTC) - last_run).total_seconds())
    return f"last moved {format_duration(timedelta(seconds=seconds))} ago"


@app.command()
def report(
    name: Name = None,
    spec: Spec = None,
    root: Root = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="Run id; the newest run without it.")
    ] = None,
    html: Annotated[
        bool, typer.Option("--html", help="Print the path of the HTML report instead.")
    ] = False,
) -> None:
    """Show the report of a run."""
    _, pipeline = load(name, spec)
    folder = find_reports(pipeline.paths(root), run)
    try:
        found = read_report(folder, run) if run else latest_report(folder)
    except FileNotFoundError:
        found = None
    if found is None:
        raise SourceError(
            f"no report of run {run!r}" if run else "no run has been reported yet",
            where=folder,
            do=f"`sluice run {pipeline.name}` makes one",
        )
    out.print(str(report_path(folder, run or found.run_id, "html")) if html else render_text(found))
