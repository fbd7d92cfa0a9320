"""Verbs that run Spark: run, backfill, redo."""

from datetime import datetime
from typing import Annotated, Literal

import typer
from pydantic import ValidationError

from ..errors import SpecError
from ..report import latest_worked, render_text
from ..spec import Mode, Redo, RunRequest, Window, load_pipeline
from .app import INTERRUPTED, Name, Root, Spec, app, err, is_one_place, load, out

Master = Annotated[
    str | None,
    typer.Option(
        "--master",
        help="Spark master that wins over the pipeline's: local[4], spark://host:7077, yarn",
    ),
]
MOMENTS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"]
Start = Annotated[
    datetime, typer.Option("--from", formats=MOMENTS, help="First moment of event time, UTC.")
]
End = Annotated[
    datetime, typer.Option("--to", formats=MOMENTS, help="End of the range, not included.")
]


@app.command()
def run(
    name: Name = None,
    spec: Spec = None,
    root: Root = None,
    master: Master = None,
    dev: Annotated[
        bool,
        typer.Option(
            "--dev",
            help="A trial: each step reads from its start, for some seconds, into a new folder "
            "below the root's `dev/`. The scheduled checkpoint, tables and reports are neither "
            "read nor written.",
        ),
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Of a trial: how long each step takes rows. Default: 10",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Drain what is new, then print the report."""
    file, pipeline = load(name, spec)
    if seconds is not None and not dev:
        raise SpecError(
            "only a trial ends after some seconds",
            where="--seconds",
            do="Write --dev as well; a run ends within the pipeline's `budget`",
        )
    request = RunRequest(
        pipeline=str(file.resolve()),
        root=root,
        master=master,
        dev_seconds=(seconds or 10.0) if dev else None,
    )
    if dev:
        place = pipeline.paths(root).trial(request.run_id).root
        err.print(
            f"trial: everything it makes lies below {place}, which may be removed at any time"
        )
    show_run(request)


@app.command()
def backfill(
    name: Name = None,
    *,
    start: Start,
    end: End,
    write: Annotated[
        Literal["merge", "replace"],
        typer.Option(help="Insert what is missing, or replace the range atomically."),
    ] = "merge",
    spec: Spec = None,
    root: Root = None,
    master: Master = None,
) -> None:
    """Read a range of the landing files again.

    The scheduled checkpoint is neither read nor moved.
    """
    file, _ = load(name, spec)
    window = _window(start, end)
    show_run(
        RunRequest(
            pipeline=str(file.resolve()), root=root, master=master, window=window, write=write
        )
    )


@app.command()
def redo(
    name: Name = None,
    *,
    step: Annotated[str, typer.Option("--step", help="The step, one with `groups`.")],
    start: Start,
    end: End,
    spec: Spec = None,
    root: Root = None,
    master: Master = None,
) -> None:
    """Compute the groups of a range of a step with `groups` again, and write those that differ.

    From the versions of its inputs that its table was made of: what is new in them is left to the
    next run. Of a group that lies in the range in part all is computed.
    """
    file, _ = load(name, spec)
    asked = Redo(step=step, window=_window(start, end))
    show_run(RunRequest(pipeline=str(file.resolve()), root=root, master=master, redo=asked))


def _window(start: datetime, end: datetime) -> Window:
    """The range. Raises SpecError for an empty one."""
    try:
        return Window(start=start, end=end)
    except ValidationError as error:
        raise SpecError(
            error.errors()[0]["msg"].removeprefix("Value error, "),
            where="--from, --to",
            do="Write the earlier moment first",
        ) from None


def show_run(request: RunRequest) -> None:
    """Run, show the way and the report, and exit with its code.

    The report holds the error; it is told beside it only where that goes elsewhere.
    """
    from ..runner import run_pipeline
    from .progress import show_progress

    try:
        with show_progress() as progress:
            report = run_pipeline(request, progress)
    except KeyboardInterrupt:
        err.print("interrupted: what was committed stays, and the next run goes on from there")
        raise typer.Exit(INTERRUPTED) from None
    if report.error and not is_one_place():
        err.print(report.error, style="red")
    out.print(render_text(report))
    if report.status == "nothing new":
        _name_last_worked(request)
    raise typer.Exit(int(report.exit_code))


def _name_last_worked(request: RunRequest) -> None:
    """An idle run leaves no report; say which one tells of the tables."""
    pipeline = load_pipeline(request.pipeline)
    last = latest_worked(Mode.of(request).place(pipeline.paths(request.root)).reports())
    if last:
        out.print(
            f"The last run with something to do was {last.run_id}: {last.counts.line}\n"
            f"`sluice report {pipeline.name}` shows its report."
        )
