"""Verbs that help to write a pipeline: infer, schema, new."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from ..errors import SpecError
from ..propose import Choice, Layout, Proposal, RuleProposal, propose
from ..spec import Pipeline, load_pipeline
from ..storage import PROJECT
from .app import app, out, pipelines_folder
from .scaffold import describe, render_template, write_templates

FormatName = Literal["json", "csv", "text", "parquet", "orc", "avro"]
Format = Annotated[
    FormatName | None,
    typer.Option("--format", help="Taken from the file names without it."),
]
_UNSEEN = Proposal(
    Layout("json"),
    {"id": "string", "happened_at": "timestamp", "amount": "double"},
    select={column: f"`{column}`" for column in ("id", "happened_at", "amount")},
    time=Choice(("happened_at",), "the time of the example"),
    keys=Choice(("id",), "the key of the example"),
    rules=[
        RuleProposal(
            "expect_column_values_to_not_be_null",
            {"column": "id"},
            "quarantine",
            "a key is always there",
        )
    ],
)
"""What a pipeline says before there are files: an example to write over."""


@app.command()
def infer(
    files: Annotated[Path, typer.Argument(help="A sample file, or a folder of them.")],
    format: Format = None,
    rows: Annotated[int, typer.Option(help="Rows looked at in all.")] = 50_000,
) -> None:
    """Propose what a `source:` says of files, from a sample; read it before you commit it.

    No Spark is started.
    """
    found = propose(files, format, rows)
    out.print(render_template("source.yaml.j2", describe("", found)).rstrip(), markup=False)
    for note in found.notes:
        out.print(f"# {note}", markup=False)


@app.command()
def schema() -> None:
    """Print the JSON Schema of a pipeline file; editors complete and check with it."""
    out.print(json.dumps(Pipeline.model_json_schema(), indent=2), markup=False)


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits and underscores.")],
    sample: Annotated[
        Path | None,
        typer.Option("--from", metavar="FOLDER", help="Where its files land: they are looked at."),
    ] = None,
    format: Format = None,
) -> None:
    """Write a pipeline: YAML, SQL and a test that passes; of files that are there, with a reason
    for each choice."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name):
        raise SpecError(
            "not a pipeline name",
            where="NAME",
            value=name,
            do="Write lower-case letters, digits and underscores, a letter first",
        )
    found = propose(sample, format) if sample else replace(_UNSEEN, layout=Layout(format or "json"))
    targets = {
        "pipeline.yaml.j2": pipelines_folder() / f"{name}.yaml",
        "pipeline.sql.j2": pipelines_folder() / f"{name}.sql",
        "test_pipeline.py.j2": PROJECT / "tests" / "pipelines" / f"test_{name}.py",
    }
    write_templates(targets, describe(name, found, sample))
    load_pipeline(targets["pipeline.yaml.j2"])
    for target in targets.values():
        out.print(f"wrote {target}", markup=False)
    if sample:
        _say_why(found)
    first = f"`sluice run {name}`"
    first = first if sample else f"land files in ./landing/{name}, then {first}"
    out.print(f"\nNext: {first}.", markup=False)


def _say_why(found: Proposal) -> None:
    """What was chosen and why, and what the files do not say."""
    lines = [f"{found.layout.format}, {len(found.schema)} column(s)"]
    if found.time:
        lines.append(f"  event time  {found.time.columns[0]}: {found.time.reason}")
        keys = found.keys or Choice(("*",), "the whole row")
        lines.append(f"  keys        {', '.join(keys.columns)}: {keys.reason}")
    for rule in found.rules:
        said = ", ".join(f"{name} {value}" for name, value in rule.kwargs.items())
        type_ = rule.type.removeprefix("expect_column_")
        lines.append(f"  rule        {type_} ({said}; {rule.on_fail}): {rule.reason}")
    if found.notes:
        lines += ["", "Look at these; the files do not settle them:"]
    lines += [f"  - {note}" for note in found.notes]
    out.print("\n" + "\n".join(lines), markup=False)
