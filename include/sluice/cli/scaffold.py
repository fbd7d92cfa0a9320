"""A proposal -> the files of a pipeline, by templates."""

import json
from pathlib import Path
from typing import Any

from ..errors import SpecError
from ..propose import (
    Choice,
    Layout,
    Proposal,
    RuleProposal,
    dialect,
    format_schema,
    make_row,
)


def example(format: str) -> Proposal:
    """What a pipeline says before there are files: something to write over."""
    return Proposal(
        Layout(format),
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


def describe(name: str, found: Proposal, folder: Path | None = None) -> dict[str, Any]:
    """What the templates ask for. `folder`: where the files land; `./landing/NAME` without."""
    place = folder.parent if folder and folder.is_file() else folder
    return {
        "name": name,
        "variable": f"{name.upper()}_LANDING" if place else "LANDING",
        "place": str(place.resolve()) if place else "./landing",
        "below": "" if place else f"/{name}",
        "found": found,
        "schema": format_schema(found.schema),
        "options": json.dumps(found.layout.options, ensure_ascii=False),
        "keys": json.dumps(found.keys.columns if found.keys else "*", ensure_ascii=False),
        "row": make_row(found),
        "test_file": found.pattern.replace("*", "") or f"1.{found.layout.format}",
        "dialect": "".join(f", {k}={v!r}" for k, v in dialect(found.layout).items()),
    }


def write_templates(targets: dict[str, Path], values: dict[str, Any]) -> None:
    """Fill in each template.

    Raises SpecError, before anything is written, for a file in the way.
    """
    for target in targets.values():
        if target.exists():
            raise SpecError(
                "the file is already there", where=str(target), do="Choose another name"
            )
    for template, target in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(render_template(template, values), encoding="utf-8")


def render_template(name: str, values: dict[str, Any]) -> str:
    """A template filled in."""
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
    templates.filters["flow"] = lambda value: json.dumps(value, ensure_ascii=False, default=str)
    return templates.get_template(name).render(values)


def _as_python(value: object) -> str:
    """A literal as the project's formatter writes it."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
