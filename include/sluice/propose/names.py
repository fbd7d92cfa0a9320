"""What the names of files say, and names that columns may have in a table."""

import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from ..errors import SpecError

_FORMATS = {name: name for name in ("json", "csv", "text", "parquet", "orc", "avro")} | {
    "jsonl": "json",
    "ndjson": "json",
    "tsv": "csv",
    "txt": "text",
    "log": "text",
}
_DATES = (
    (r"\d{4}-\d{2}-\d{2}", "%Y-%m-%d"),
    (r"(?<!\d)\d{8}(?!\d)", "%Y%m%d"),
    (r"\d{4}/\d{2}/\d{2}", "%Y/%m/%d"),
    (r"\d{4}_\d{2}_\d{2}", "%Y_%m_%d"),
)
FORBIDDEN = "space , ; { } ( ) ="
"""What Delta takes in no column's name, tabs and line breaks beside it."""


def name_columns(columns: Iterable[str]) -> dict[str, str]:
    """Columns of files -> names that a Delta table takes, each another without regard to case."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for column in columns:
        plain = re.sub(r"[ ,;{}()\n\t=]+", "_", column).strip("_") or "column"
        name, number = plain, 1
        while name.lower() in taken:
            number += 1
            name = f"{plain}_{number}"
        names[column] = name
        taken.add(name.lower())
    return names


def choose_format(files: list[Path]) -> str:
    """The format that most names say. Raises SpecError where none does."""
    said = Counter(format for file in files if (format := _format_of(file)))
    if not said:
        raise SpecError(
            "the file's name does not say its format",
            where=str(files[0]),
            do="Write --format json, csv, text, parquet, orc or avro",
        )
    return said.most_common(1)[0][0]


def is_named_like(file: Path, format: str) -> bool:
    """True for a name that says this format."""
    return _format_of(file) == format


def _format_of(file: Path) -> str | None:
    known = (_FORMATS.get(suffix[1:].lower()) for suffix in reversed(file.suffixes))
    return next(filter(None, known), None)


def find_pattern(path: Path, alike: list[Path], files: int) -> str:
    """The glob of the names of the files: their own name for a file, `*` where they are all there
    is."""
    if path.is_file():
        return path.name
    if len(alike) == files:
        return "*"
    known = [next(s for s in f.suffixes if s[1:].lower() in _FORMATS) for f in alike]
    return f"*{Counter(known).most_common(1)[0][0]}*"


def find_date(path: Path, files: list[Path]) -> str | None:
    """The strptime pattern of a date that every name below the folder carries; None without."""
    names = [file.relative_to(path).as_posix() if path.is_dir() else file.name for file in files]
    for looks, pattern in _DATES:
        found = [re.search(looks, name) for name in names]
        if all(date and _is_date(date.group(), pattern) for date in found):
            return pattern
    return None


def _is_date(text: str, pattern: str) -> bool:
    try:
        return 1990 <= datetime.strptime(text, pattern).year <= 2100  # noqa: DTZ007 (a day's name)
    except ValueError:
        return False
