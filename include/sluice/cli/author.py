"""Verbs that help to write a pipeline: infer, schema, new.

What looks at files is imported when it is asked to: the other verbs start sooner without.
"""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import SpecError
from ..spec import Pipeline, load_pipeline
from ..storage import PROJECT
from .app import app, out, pipelines_folder

if TYPE_CHECKING:
    from ..propose import Proposal

FormatName = Literal["json", "csv", "text", "parquet", "orc", "avro"]
Format = Annotated[
    FormatName | None,
    typer.Option("--format", help="Taken from the file names without it."),
]


@app.command()
def infer(
    files: Annotated[Path, typer.Argument(help="A sample file, or a folder of them.")],
    format: Format = None,
    rows: Annotated[int, typer.Option(help="Rows looked at in all.")] = 50_000,
) -> None:
    """Propose what a `source:` says of files, from a sample; read it before you commit it.

    No Spark is started.
    """
    from ..propose import propose
    from .scaffold import describe, render_template

    found = propose(files, format, rows)
    out.print(render_template("source.yaml.j2", describe("", found)).rstrip())
    for note in found.notes:
        out.print(f"# {note}")


@app.command()
def schema() -> None:
    """Print the JSON Schema of a pipeline file; editors complete and check with it."""
    out.print(json.dumps(Pipeline.model_json_schema(), indent=2))


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
    from ..propose import propose
    from .scaffold import describe, example, write_templates

    found = propose(sample, format) if sample else example(format or "json")
    targets = {
        "pipeline.yaml.j2": pipelines_folder() / f"{name}.yaml",
        "pipeline.sql.j2": pipelines_folder() / f"{name}.sql",
        "test_pipeline.py.j2": PROJECT / "tests" / "pipelines" / f"test_{name}.py",
    }
    write_templates(targets, describe(name, found, sample))
    load_pipeline(targets["pipeline.yaml.j2"])
    for target in targets.values():
        out.print(f"wrote {target}")
    if sample:
        _say_why(found)
    first = f"`sluice run {name}`"
    first = first if sample else f"land files in ./landing/{name}, then {first}"
    out.print(f"\nNext: {first}.")


def _say_why(found: "Proposal") -> None:
    """What was chosen and why, and what the files do not say."""
    lines = [f"{found.layout.format}, {len(found.schema)} column(s)"]
    if found.time:
        lines.append(f"  event time  {found.time.columns[0]}: {found.time.reason}")
        keys = found.keys
        chosen = f"{', '.join(keys.columns)}: {keys.reason}" if keys else "*: the whole row"
        lines.append(f"  keys        {chosen}")
    for rule in found.rules:
        said = ", ".join(f"{name} {value}" for name, value in rule.kwargs.items())
        type_ = rule.type.removeprefix("expect_column_")
        lines.append(f"  rule        {type_} ({said}; {rule.on_fail}): {rule.reason}")
    if found.notes:
        lines += ["", "Look at these; the files do not settle them:"]
    lines += [f"  - {note}" for note in found.notes]
    out.print("\n" + "\n".join(lines))
