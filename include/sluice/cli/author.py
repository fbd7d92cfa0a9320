"""Verbs that help to write a pipeline: infer, schema, new."""

import json
import re
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from ..errors import SpecError
from ..spec import Pipeline, load_pipeline
from ..storage import PROJECT
from .app import app, out, pipelines_folder
from .inference import format_schema, infer_columns, sample_value

FormatName = Literal["json", "csv", "text", "parquet", "orc", "avro"]
Format = Annotated[
    FormatName | None,
    typer.Option("--format", help="Taken from the file names without it."),
]
_SUFFIXES: dict[str, FormatName] = {name: name for name in get_args(FormatName)} | {
    "jsonl": "json",
    "ndjson": "json",
    "tsv": "csv",
    "txt": "text",
}
_FIRST_COLUMNS = {"id": "string", "happened_at": "timestamp", "amount": "double"}


@app.command()
def infer(
    files: Annotated[list[Path], typer.Argument(help="Sample files, or a folder of them.")],
    format: Format = None,
    rows: Annotated[int, typer.Option(help="Rows looked at in all.")] = 50_000,
) -> None:
    """Propose the `schema:` of a source from a sample; read it before you commit it. No Spark."""
    sample = _expand(files)
    columns = infer_columns(sample, format or _guess_format(sample), rows)
    out.print(format_schema(columns), markup=False)


def _expand(paths: list[Path]) -> list[Path]:
    """Files, and the visible files below folders. Raises SpecError when there are none."""
    found = [
        file
        for path in paths
        for file in (
            sorted(p for p in path.rglob("[!._]*") if p.is_file()) if path.is_dir() else [path]
        )
    ]
    missing = [str(path) for path in found if not path.is_file()]
    if missing or not found:
        raise SpecError(
            "no such file" if missing else "the folder holds no file",
            where=", ".join(missing or map(str, paths)),
            do="Name the files to look at",
        )
    return found


def _guess_format(files: list[Path]) -> FormatName:
    for suffix in reversed(files[0].suffixes):
        if suffix[1:].lower() in _SUFFIXES:
            return _SUFFIXES[suffix[1:].lower()]
    raise SpecError(
        "the file's name does not say its format",
        where=str(files[0]),
        do="Write --format json, csv, text, parquet, orc or avro",
    )


@app.command()
def schema() -> None:
    """Print the JSON Schema of a pipeline file; editors complete and check with it."""
    out.print(json.dumps(Pipeline.model_json_schema(), indent=2), markup=False)


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits and underscores.")],
    sample: Annotated[
        list[Path] | None, typer.Option("--sample", help="Files to propose the schema from.")
    ] = None,
    format: Format = None,
) -> None:
    """Write a pipeline to start from: YAML, SQL and a test that passes."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name):
        raise SpecError(
            "not a pipeline name",
            where="NAME",
            value=name,
            do="Write lower-case letters, digits and underscores, a letter first",
        )
    files = _expand(sample) if sample else []
    chosen = format or (_guess_format(files) if files else "json")
    columns = infer_columns(files, chosen) if files else _FIRST_COLUMNS
    targets = {
        "pipeline.yaml.j2": pipelines_folder() / f"{name}.yaml",
        "pipeline.sql.j2": pipelines_folder() / f"{name}.sql",
        "test_pipeline.py.j2": PROJECT / "tests" / "pipelines" / f"test_{name}.py",
    }
    _write_templates(targets, _describe(name, chosen, columns))
    load_pipeline(targets["pipeline.yaml.j2"])
    out.print(f"\nNext: land files in ./landing/{name}, then `sluice run {name}`.", markup=False)


def _describe(name: str, format: FormatName, columns: dict[str, str]) -> dict[str, object]:
    """What the templates ask for."""
    times = [column for column, type_ in columns.items() if type_ == "timestamp"]
    return {
        "name": name,
        "format": format,
        "schema": format_schema(columns, indent=6),
        "time": times[0] if times else None,
        "key": next(iter(columns)),
        "columns": list(columns),
        "row": {column: sample_value(type_) for column, type_ in columns.items()},
    }


def _write_templates(targets: dict[str, Path], values: dict[str, object]) -> None:
    """Fill in each template.

    Raises SpecError, before anything is written, for a file in the way.
    """
    for target in targets.values():
        if target.exists():
            raise SpecError(
                "the file is already there", where=str(target), do="Choose another name"
            )
    # Only here: importing it is a twentieth of what a look for news costs.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(  # noqa: S701 (YAML, SQL and Python, not HTML)
        loader=PackageLoader("sluice.cli"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        keep_trailing_newline=True,
    )
    templates.filters["python"] = _as_python
    for template, target in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(templates.get_template(template).render(values), encoding="utf-8")
        out.print(f"wrote {target}", markup=False)


def _as_python(value: object) -> str:
    """A literal as the project's formatter writes it."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
