"""The verb that makes tables again and compares."""

from typing import Annotated

import typer

from ..spec import RunRequest, Verify
from .app import Name, Root, Spec, app, err, load, out
from .run import Master, show_run


@app.command()
def verify(
    name: Name = None,
    *,
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
    master: Master = None,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON a table.")] = False,
) -> None:
    """Read what a pipeline's steps have read once more, and compare what comes of it with what
    their tables hold, row by row.

    A step with `groups` is computed from the versions of its inputs that its last commit tells, any
    other from the records of its finished batches, beside its tables: in one batch, or in as few as
    give the same rows.

    Exit code 0 where all are equal, 6 where one differs.
    """
    file, _ = load(name, spec)
    request = RunRequest(
        pipeline=str(file.resolve()),
        root=root,
        master=master,
        verify=Verify(step=step, share=sample / 100),
    )
    if not as_json:
        show_run(request)
    from ..runner import run_pipeline

    report = run_pipeline(request)
    for part in report.steps:
        for found in part.verified:
            out.print(found.model_dump_json())
    if report.error:
        err.print(report.error, style="red")
    raise typer.Exit(int(report.exit_code))
