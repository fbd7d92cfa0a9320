"""The verb that computes a table again and compares."""

from typing import Annotated

import typer

from ..errors import ExitCode
from ..report.verified import tell_verified
from .app import Name, Root, Spec, app, err, load, out


@app.command()
def verify(
    name: Name = None,
    step: Annotated[
        str | None, typer.Option("--step", help="One step; the default is each with `groups`.")
    ] = None,
    sample: Annotated[
        float,
        typer.Option(
            "--sample",
            min=0.000001,
            max=100.0,
            help="Percent of the groups, chosen by a hash of them: of a large table.",
        ),
    ] = 100.0,
    spec: Spec = None,
    root: Root = None,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON a step.")] = False,
) -> None:
    """Compute the tables of steps with `groups` once more, from the versions of their inputs that
    their last commits tell, and compare row by row.

    Exit code 0 where all are equal, 6 where one differs.
    """
    from ..verify.groups import choose_steps, verify_steps

    _, pipeline = load(name, spec)
    equal = True
    chosen = choose_steps(pipeline, step)
    for found in verify_steps(pipeline, chosen, pipeline.paths(root), sample / 100):
        equal = equal and found.equal
        if as_json:
            out.print(found.model_dump_json())
            continue
        for line in tell_verified(found):
            (out if found.equal else err).print(line, style=None if found.equal else "red")
    raise typer.Exit(int(ExitCode.DONE if equal else ExitCode.TERMINAL))
