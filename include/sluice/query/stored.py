"""The tables and topics of pipelines, and the names by which SQL knows them."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ..backlog import table_version
from ..errors import SpecError
from ..spec import KafkaSource, Pipeline, Step


@dataclass(frozen=True)
class StoredTable:
    """A target, or the quarantine or late table of a step. `name`: `<step>`, `<step>__quarantine`
    or `<step>__late`."""

    pipeline: Pipeline
    step: Step
    name: str
    path: str

    @property
    def full_name(self) -> str:
        """`<pipeline>.<name>`."""
        return f"{self.pipeline.name}.{self.name}"

    @property
    def exists(self) -> bool:
        """True where it was written. Raises SluiceError for a store that cannot be asked."""
        return table_version(self.path) is not None


@dataclass(frozen=True)
class StoredTopic(StoredTable):
    """The topics that an input reads, as a table of the records that they hold. `name`:
    `<step>__<input>`, or `<step>__source`; `path`: the topics."""

    source: KafkaSource

    @property
    def exists(self) -> bool:
        """The brokers say it when they are asked."""
        return True


def topics_of(pipeline: Pipeline) -> list[StoredTopic]:
    """The inputs of a pipeline that are topics."""
    found = []
    for step in pipeline.steps:
        for name, one in {**step.streams, **step.statics}.items():
            if isinstance(one.source, KafkaSource):
                topics = one.source.subscribe_pattern or ", ".join(
                    [*one.source.subscribe, *one.source.assign]
                )
                found.append(
                    StoredTopic(pipeline, step, f"{step.name}__{name}", topics, one.source)
                )
    return found


def tables_of(pipeline: Pipeline, root: str | None) -> list[StoredTable]:
    """The tables that the steps of a pipeline may have written, whether they are there or not."""
    paths = pipeline.paths(root)
    found = []
    for step in pipeline.steps:
        kinds = {"": step.target_path(paths)}
        kinds |= {"__quarantine": paths.quarantine(step.name), "__late": paths.late(step.name)}
        found += [
            StoredTable(pipeline, step, f"{step.name}{kind}", path)
            for kind, path in kinds.items()
            if path
        ]
    return found


def name_tables(tables: Iterable[StoredTable]) -> dict[str, StoredTable]:
    """Name in SQL -> table: each by its full name, and by its own where no other has it."""
    tables = list(tables)
    times = Counter(table.name for table in tables)
    plain = {table.name: table for table in tables if times[table.name] == 1}
    return {table.full_name: table for table in tables} | plain


def find_mentioned(sql: str, named: dict[str, StoredTable]) -> dict[str, StoredTable]:
    """Those tables whose names are words of a query, and that are there."""
    words = {word.lower() for word in re.findall(r"\w+", sql)}
    told = {name: table for name, table in named.items() if words.issuperset(name.split("."))}
    there = {table.path: table.exists for table in told.values()}
    return {name: table for name, table in told.items() if there[table.path]}


def missing_table(name: str, named: dict[str, StoredTable]) -> SpecError:
    """The error for a name that no table has: those that do, and the nearest."""
    twins = sorted(full for full in named if "." in full and full.partition(".")[2] == name)
    if len(twins) > 1:
        choice = f"Several pipelines have it; write {' or '.join(twins)}"
        return SpecError("no single table has this name", where="SQL", value=name, do=choice)
    if name in named:
        return SpecError(
            "the table is not there yet",
            where=named[name].path,
            value=name,
            do=f"`sluice run {named[name].pipeline.name}` makes it, with the first row that "
            "belongs there",
        )
    there = sorted(full for full, table in named.items() if "." in full and table.exists)
    known = [*there, *(full.partition(".")[2] for full in there)]
    near = difflib.get_close_matches(name.lower(), known, 1, 0.6)
    meant = f"Did you mean {near[0]!r}? " if near else ""
    return SpecError(
        "no table has this name",
        where="SQL",
        value=name,
        do=f"{meant}There are: {', '.join(there) or 'none'}",
    )
