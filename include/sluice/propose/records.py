"""Files -> records as Python reads them, without Spark: samples to learn from."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from . import filetypes
from .files import open_bytes, unreadable
from .layout import Layout, dialect

Record = dict[str, Any]


def read_records(files: list[Path], layout: Layout, rows: int) -> list[Record]:
    """So many records in all, as many of each file.

    Raises SourceError for a file that is not of this format.
    """
    share = max(rows // len(files), 1)
    return [record for file in files for record in islice(_read_file(file, layout), share)]


def _read_file(file: Path, layout: Layout) -> Iterator[Record]:
    read: dict[str, Callable[[Path, Layout], Iterator[Record]]] = {
        "json": _read_json,
        "csv": _read_csv,
        "text": _read_text,
        "parquet": lambda path, _: filetypes.read_parquet_rows(path),
        "orc": lambda path, _: filetypes.read_orc_rows(path),
    }
    if layout.format not in read:
        return
    try:
        yield from read[layout.format](file, layout)
    except (ValueError, OSError, EOFError, csv.Error) as error:
        raise unreadable(file, layout.format, error) from None


def _open_text(file: Path, layout: Layout) -> io.TextIOWrapper:
    encoding = "utf-8-sig" if layout.encoding == "UTF-8" else layout.encoding
    return io.TextIOWrapper(open_bytes(file), encoding=encoding, newline="")


def _read_json(file: Path, layout: Layout) -> Iterator[Record]:
    """Objects of JSON lines; lines that are not JSON are left out: they go to quarantine in a run,
    and say nothing of the schema. Where a file is one document, of that."""
    with _open_text(file, layout) as lines:
        if layout.multi_line:
            whole = json.load(lines)
            yield from _objects(whole if isinstance(whole, list) else [whole])
        else:
            yield from _objects(_parsed(lines))


def _parsed(lines: Iterable[str]) -> Iterator[object]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue


def _objects(values: Iterable[object]) -> Iterator[Record]:
    return (value for value in values if isinstance(value, dict))


def _read_csv(file: Path, layout: Layout) -> Iterator[Record]:
    with _open_text(file, layout) as lines:
        rows = csv.reader(lines, **dialect(layout))
        names: list[str] | None = None
        for row in rows:
            if not row:
                continue
            if names is None:
                names = row if layout.header else name_places(len(row))
                if layout.header:
                    continue
            yield dict(zip(names, row + [""] * (len(names) - len(row)), strict=False))


def name_places(count: int) -> list[str]:
    """Names for the columns of a file without a header."""
    return [f"column_{place}" for place in range(1, count + 1)]


def _read_text(file: Path, layout: Layout) -> Iterator[Record]:
    with _open_text(file, layout) as lines:
        yield from ({"value": line.rstrip("\r\n")} for line in lines if line.strip())
