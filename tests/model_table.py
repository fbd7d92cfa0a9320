"""Tables of a page that say what the models say: `python -m tests.model_table` writes them anew."""

import json
import re
from pathlib import Path

from pydantic import BaseModel
from sluice.spec import FileSource
from sluice.spec.reader_options import _OF_FORMAT, READER_OPTIONS

from tests.documentation import FOLDER

PAGE = FOLDER / "file_source.md"


def list_fields(model: type[BaseModel]) -> str:
    """A row for each field of a model: name, default, what its description says."""
    rows = ["| field | default | meaning |", "|---|---|---|"]
    schema = model.model_json_schema()
    for name, found in schema["properties"].items():
        written = json.dumps(found.get("default")).strip('"')
        default = "" if written in ("null", "{}") else f"`{written}`"
        default = "needed" if name in schema["required"] else default
        said = " ".join(found.get("description", "").split()).replace("|", "\\|")
        rows.append(f"| `{name}` | {default} | {said} |")
    return "\n".join(rows)


def list_options() -> str:
    """A row for each format with the options of Spark's reader of it."""
    rows = ["| format | options of Spark's reader |", "|---|---|"]
    for format_, own in _OF_FORMAT.items():
        names = sorted(set(own.split()) & READER_OPTIONS[format_])
        names = [name for name in names if name.lower() not in FileSource.own_fields]
        rows.append(f"| {format_} | {', '.join(f'`{name}`' for name in names)} |")
    return "\n".join(rows)


TABLES = {"fields": lambda: list_fields(FileSource), "options": list_options}


def fill_tables(text: str) -> str:
    """A page's text with its tables as the models say them today."""
    for name, write in TABLES.items():
        part = re.compile(rf"(?<=<!-- {name} of the models -->\n).*?(?=\n\n|\Z)", re.S)
        text = part.sub(lambda _, write=write: write(), text, count=1)
    return text


def main(page: Path = PAGE) -> None:
    """Write the tables of the page anew."""
    page.write_text(fill_tables(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
