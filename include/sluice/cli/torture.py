"""The verb that kills."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from .app import Name, Spec, app, err, load, out


@app.command()
def torture(
    name: Name = None,
    kills: Annotated[int, typer.Option(min=1, help="How many runs to kill.")] = 50,
    seed: Annotated[int, typer.Option(help="Moments and victims follow from it.")] = 1,
    spec: Spec = None,
    scratch: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the tables of the torture; emptied first. Default: a temporary one."
        ),
    ] = None,
) -> None:
    """Kill runs of a pipeline at random moments, drain it, and prove that nothing is lost or
    doubled."""
    from ..verify.torture import torture as kill

    file, pipeline = load(name, spec)
    with tempfile.TemporaryDirectory(prefix="sluice-torture-") as temporary:
        outcome = kill(
            file.resolve(),
            pipeline,
            (scratch or Path(temporary) / "work").resolve(),
            kills,
            seed,
            lambda number, what: err.print(f"kill {number}: {what}"),
        )
    out.print(
        f"{outcome.kills} kills in {outcome.runs} runs and {outcome.rounds} rounds, seed {seed}, "
        f"{outcome.seconds:.0f} s"
    )
    out.print(outcome.counts.line)
    for difference in outcome.differences:
        err.print(difference, style="red")
    out.print(
        "Nothing was lost or doubled."
        if not outcome.differences
        else "The tables differ from those of a run that was never killed."
    )
    raise typer.Exit(1 if outcome.differences else 0)
