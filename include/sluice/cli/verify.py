"""The verb that makes tables again and compares."""

from typing import Annotated

import typer

from ..errors import ExitCode
from ..report.verified import tell_verified
from .app import Name, Root, Spec, app, err, load, out


@app.command()
def verify(
    name: Name = None,
    step: Annotated[
        str | None, typer.Option("--step", help="One step; the default is all that can be.")
    ] = None,
    sample: Annotated[
        float,
        typer.Option(
            "--sample",
            min=0.000001,
            max=100.0,
            help="Percent of the groups of steps with `groups`, chosen by a hash of them.",
        ),
    ] = 100.0,
    spec: Spec = None,
    root: Root = None,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON a table.")] = False,
) -> None:
    """Read what a pipeline's steps have read once more, and compare what comes of it with what
    their tables hold, row by row.

    A step with `groups` is computed from the versions of its inputs that its last commit tells, any
    other from the records of its finished batches, in one batch beside its tables.

    Exit code 0 where all are equal, 6 where one differs.
    """
    from ..verify.steps import choose_steps, verify_steps

    _, pipeline = load(name, spec)
    chosen, left_out = choose_steps(pipeline, step)
    for left, why in left_out.items():
        err.print(f"{left}: not verified: {why}", style="yellow")
    whole = [one.name for one in chosen if not one.groups]
    if sample < 100 and whole:
        err.print(f"{', '.join(whole)}: read whole; `--sample` is of groups", style="yellow")
    equal = True
    for found in verify_steps(pipeline, chosen, pipeline.paths(root), sample / 100):
        equal = equal and found.equal
        if as_json:
            out.print(found.model_dump_json())
            continue
        for line in tell_verified(found):
            (out if found.equal else err).print(line, style=None if found.equal else "red")
    raise typer.Exit(int(ExitCode.DONE if equal else ExitCode.TERMINAL))
