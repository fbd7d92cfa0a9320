"""The verb that tries what a pipeline is connected to: check."""

import json
from typing import Annotated

import typer

from .app import Name, Root, Spec, app, load, out


@app.command()
def check(
    name: Name = None,
    spec: Spec = None,
    root: Root = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as JSON, one list.")
    ] = False,
) -> None:
    """Try each connection of a pipeline: folders, buckets, queues, Kafka, PostgreSQL, tables.

    No Spark is started, no row is read or sent. Exit code 0 when all answer; 5 when all that failed
    may answer later, else 6.
    """
    from ..check import check_pipeline

    _, pipeline = load(name, spec)
    findings = []
    for found in check_pipeline(pipeline, root):
        findings.append(found)
        if not as_json:
            mark = typer.style("ok    ", "green") if found.ok else typer.style("failed", "red")
            out.print(f"{mark} {found.seconds:5.2f} s  {found.part}: {found.says}")
    if as_json:
        listed = [
            {"part": f.part, "ok": f.ok, "says": f.says, "seconds": round(f.seconds, 3)}
            for f in findings
        ]
        out.print(json.dumps(listed, indent=2))
    if failed := [found.exit_code for found in findings if not found.ok]:
        raise typer.Exit(int(max(failed)))
