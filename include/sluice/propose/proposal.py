"""A folder of files -> what a pipeline over it would say, with a reason for each."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import SourceError
from .columns import Choice, choose_keys, choose_time, find_personal, find_versions
from .files import find_samples, spread
from .layout import Layout, describe_layout
from .names import FORBIDDEN, choose_format, find_date, find_pattern, is_named_like, name_columns
from .records import Record, read_records
from .rules import RuleProposal, propose_rules
from .texts import describe_lines, find_epochs, lacks_zone, read_texts
from .types import infer_types, read_types


@dataclass(frozen=True)
class Proposal:
    """What files look like and what a pipeline over them would say.

    `schema`: column of the files -> Spark type; `names`: the same -> column of the table; `select`:
    column of the table -> its SQL; `notes`: what could not be told.
    """

    layout: Layout
    schema: dict[str, str]
    names: dict[str, str] = field(default_factory=dict)
    select: dict[str, str] = field(default_factory=dict)
    time: Choice | None = None
    keys: Choice | None = None
    rules: list[RuleProposal] = field(default_factory=list)
    pii: list[str] = field(default_factory=list)
    pattern: str = "*"
    file_date: str | None = None
    notes: tuple[str, ...] = ()


def propose(path: Path, format: str | None = None, rows: int = 50_000) -> Proposal:
    """Look at a file or a folder of files.

    Raises SpecError where no file is there or none says its format, SourceError for a file that is
    not of its format or holds no row.
    """
    files = find_samples(path)
    format = format or choose_format(files)
    alike = [file for file in files if is_named_like(file, format)] or files
    sample = spread(alike)
    layout = describe_layout(sample[0], format)
    records = read_records(sample, layout, rows)
    if format in ("parquet", "orc", "avro"):
        schema = read_types(sample, format)
    else:
        schema = infer_types(records, text=format == "csv")
    if not schema:
        places = ", ".join(map(str, sample[:3]))
        raise SourceError("no rows to learn from", where=places, do="Name files that hold data")
    if format == "csv":
        layout, schema = read_texts(layout, schema, records)
    found = Proposal(
        layout,
        schema,
        pattern=find_pattern(path, alike, len(files)),
        file_date=find_date(path, alike),
        notes=(*layout.notes, *_say_what_was_seen(files, alike, sample)),
    )
    return _describe_lines(found, records) if format == "text" else _choose(found, records)


def _say_what_was_seen(files: list[Path], alike: list[Path], sample: list[Path]) -> Iterator[str]:
    if len(alike) < len(files):
        other = next(file for file in files if file not in alike)
        yield f"{len(files) - len(alike):,} files of other kinds are left out (first: {other.name})"
    if len(sample) < len(alike):
        yield f"{len(sample):,} of {len(alike):,} files were looked at"


def _choose(found: Proposal, records: Sequence[Record]) -> Proposal:
    """Event time, keys and rules."""
    names, epochs = name_columns(found.schema), find_epochs(records, found.schema)
    records = [{names[c]: value for c, value in record.items()} for record in records]
    types = {names[c]: "timestamp" if c in epochs else t for c, t in found.schema.items()}
    select = {name: epochs.get(column, f"`{column}`") for column, name in names.items()}
    times = [c for c, t in types.items() if t in ("timestamp", "timestamp_ntz", "date")]
    time = choose_time(records, types, times)
    keys = choose_keys(records, types)
    notes = (*found.notes, *_say_renamed(names))
    if time is None:
        notes += ("no column is a time: without `event_time` and `dedup` every row is appended",)
    elif lacks_zone(records, time.columns[0]):
        notes += (f"{time.columns[0]} carries no time zone: it is read as UTC",)
    if time and not records:
        keys = Choice((next(iter(types)),), "the first column: no values were looked at")
        notes += (f"values of {found.layout.format} files were not looked at: check the key",)
    elif time and keys is None:
        notes += (_say_whole_row(records, types),)
    rules = propose_rules(records, types, keys.columns if keys else ())
    pii = find_personal(types)
    told = replace(found, names=names, select=select, notes=notes)
    return replace(told, time=time, keys=keys, rules=rules, pii=pii)


def _say_renamed(names: dict[str, str]) -> Iterator[str]:
    renamed = [f"{column!r} is {name}" for column, name in names.items() if column != name]
    if renamed:
        yield f"in the table {', '.join(renamed)}: Delta takes no {FORBIDDEN} in a name"


def _say_whole_row(records: Sequence[Record], types: dict[str, str]) -> str:
    said = "no column or pair of columns tells rows apart: the whole row is the key"
    versions = find_versions(records, types)
    if versions is None or not versions[1]:
        return said
    column, many = versions
    return (
        f"{said}; {many:,} values of {column} are in rows that differ: if those are versions of "
        f"one thing, write `keys: [{column}]` and an `order_by` that names the one that stays"
    )


def _describe_lines(found: Proposal, records: Sequence[Record]) -> Proposal:
    """Lines of a log: time and level are taken out of the text; lines alike are no copies."""
    lines = [record["value"] for record in records]
    made = describe_lines(lines)
    rules = [
        RuleProposal(
            "expect_column_values_to_not_be_null",
            {"column": column} | ({"mostly": math.floor(share * 100) / 100} if share < 1 else {}),
            "warn",
            f"{share:.1%} of {len(lines):,} lines have one",
        )
        for column, (_, share) in made.items()
    ]
    notes = [f"{c} is read from the text ({share:.1%} of lines)" for c, (_, share) in made.items()]
    notes.append("lines are appended as they come: nothing tells a copy from a line that is alike")
    select = {"value": "`value`"} | {column: sql for column, (sql, _) in made.items()}
    return replace(found, select=select, rules=rules, notes=(*found.notes, *notes))
