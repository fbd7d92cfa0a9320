"""Verbs for the further sinks of a pipeline: deliver, give-up."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from ..checkpoint import hold_lease, read_position, write_position
from ..errors import SpecError
from ..spec import Pipeline, Refill, RunRequest
from .app import Name, Root, Spec, app, load, out
from .run import MOMENTS, Master, show_run

Sink = Annotated[
    str | None,
    typer.Option("--sink", metavar="TITLE", help="The sink, as reports name it: `jdbc orders`."),
]


@app.command()
def deliver(
    name: Name = None,
    *,
    sink: Sink = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            help="All that the target holds and the sink does not: one that was added later, or "
            "emptied. A topic and your own code get every batch again, under its headers or token. "
            "Of a step with `groups` the sink becomes what the target is: what else is there goes.",
        ),
    ] = False,
    since: Annotated[
        datetime | None,
        typer.Option(
            formats=MOMENTS,
            help="The same, of what the target took in from then on; of a step with `groups` all.",
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="KEY", help="A batch, also one that was given up."),
    ] = None,
    spec: Spec = None,
    root: Root = None,
    master: Master = None,
) -> None:
    """Send further sinks what they lack of the target; no source is read.

    Each run does this by itself, for what a sink is known to lack.
    """
    file, pipeline = load(name, spec)
    found = None if sink is None else _find(pipeline, sink)
    refill = Refill(
        step=found,
        sink=sink,
        everything=everything,
        since=since and since.replace(tzinfo=since.tzinfo or UTC),
        keys=key or [],
    )
    show_run(RunRequest(pipeline=str(file.resolve()), root=root, master=master, refill=refill))


@app.command("give-up")
def give_up(
    name: Name = None,
    *,
    key: Annotated[str, typer.Option(metavar="KEY", help="The batch, as `sluice plan` shows it.")],
    sink: Annotated[
        str, typer.Option("--sink", metavar="TITLE", help="The sink that shall not get it.")
    ],
    reason: Annotated[str, typer.Option(help="Why; it stays readable in reports and plans.")],
    spec: Spec = None,
    root: Root = None,
) -> None:
    """Take a batch off the list of what a sink lacks.

    The target keeps its rows, and `sluice deliver --key` sends them after all.
    """
    _, pipeline = load(name, spec)
    paths, step = pipeline.paths(root), _find(pipeline, sink)
    with hold_lease(f"{paths.positions(step)}/lease", f"give-up {key}", wait=60.0):
        path = paths.position(step, sink)
        position = read_position(path)
        if position is None:
            raise SpecError("this sink lacks nothing yet", where=sink, do="Run the pipeline first")
        left = position.without(key, reason)
        write_position(path, left)
    rows = left.given_up[-1].rows
    out.print(f"{sink} will not get the {rows:,} row(s) of {key}: {reason}")


def _find(pipeline: Pipeline, sink: str) -> str:
    """The step that has a sink. Raises SpecError where none or several have it."""
    steps = [step.name for step in pipeline.steps if sink in step.further_sinks]
    if len(steps) == 1:
        return steps[0]
    titles = ", ".join(title for step in pipeline.steps for title in step.further_sinks)
    raise SpecError(
        "several steps have such a sink" if steps else "no step has such a sink",
        where="--sink",
        value=sink,
        do=f"Give each its own place: {', '.join(steps)}" if steps else f"There are: {titles}",
    )
