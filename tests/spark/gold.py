"""A step that is refreshed by group, the tables it reads, and what its own table must be: the batch
query over the inputs, at the versions that the run recorded."""

import json
import random
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import yaml
from pyspark.sql import DataFrame
from sluice.backlog import table_version
from sluice.errors import ExitCode
from sluice.report import RunReport
from sluice.runner import run_pipeline
from sluice.spark import writes
from sluice.spec import RunRequest
from sluice.streaming import tally as tally_module

from tests.delta_rows import read_rows
from tests.spark.gold_queries import Query

GONE = "the machine is gone"
BEFORE, AFTER = "before the table's commit", "between the table's commit and Spark's"
DEATHS = (BEFORE, AFTER)
Groups = dict[tuple, Counter]
"""Group -> its rows, each with the run that wrote it."""


def freeze(value: object) -> object:
    """A value that can be counted: lists as tuples, NaN as what equals itself."""
    if isinstance(value, dict):
        return frozenset((freeze(key), freeze(one)) for key, one in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(freeze, value))
    return "NaN" if value != value else value


@dataclass
class Gold:
    """A pipeline `gold` with a step `daily`. Its inputs lie beside the targets, named as the tables
    of the query, so that all of it can be copied. `step`: what else the step says; `behind`:
    further steps."""

    spark: object
    folder: Path
    query: Query
    step: dict = field(default_factory=dict)
    behind: list[dict] = field(default_factory=list)

    def copied(self, folder: Path) -> "Gold":
        """The same in another folder, to go on from."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return replace(self, folder=folder)

    @property
    def tables(self) -> Path:
        return self.folder / "root" / "tables"

    def path(self, table: str) -> str:
        return str(self.tables / table)

    def target(self, step: str = "daily") -> str:
        return self.path(f"gold/{step}")

    def sql(self, statement: str, table: str = "orders") -> None:
        """Do something to an input; `{table}` is its name."""
        self.spark.sql(statement.format(table=f"delta.`{self.path(table)}`"))

    def meddle(self, chance: random.Random) -> None:
        """Somebody writes to the target, where there is one."""
        newest = table_version(self.target())
        if newest is None:
            return
        table, group = f"delta.`{self.target()}`", f"`{next(iter(self.query.groups))}`"
        some = f"pmod(xxhash64({group}), 2) = {chance.randrange(2)}"
        act = chance.choice(
            [
                f"DELETE FROM {table} WHERE {some}",
                f"INSERT INTO {table} SELECT * FROM {table} WHERE {some}",
                f"RESTORE TABLE {table} TO VERSION AS OF {chance.randint(0, newest)}",
                f"TRUNCATE TABLE {table}",
            ]
        )
        self.spark.sql(act)

    @contextmanager
    def unseen(self) -> Iterator[None]:
        """What is written to a table looks like a run's, so that none finds that it was not: as if
        a defect had written it."""
        name = "spark.databricks.delta.commitInfo.userMetadata"
        self.spark.conf.set(name, json.dumps({"sluice": "sluice/a/defect"}))
        yield
        self.spark.conf.unset(name)

    def write(self) -> Path:
        """The pipeline as it is now."""
        query, code = self.query, "daily.py" if self.query.is_python else "daily.sql"
        (self.folder / code).write_text(query.code)
        sources = {
            name: {"source": {"kind": "table", "path": table}}
            | ({"static": True} if table in query.static else {})
            | query.through.get(table, {})
            for name, table in query.tables.items()
        }
        one = len(sources) == 1
        step = {
            "name": "daily",
            **(sources["source"] if one else {"inputs": sources}),
            "transform": f"{code}:daily" if query.is_python else code,
            "groups": query.groups,
            **({"rules": list(query.rules)} if query.rules else {}),
            **self.step,
        }
        file = self.folder / "gold.yaml"
        told = {"name": "gold", "schedule": None, "steps": [step, *self.behind]}
        file.write_text(yaml.safe_dump(told, sort_keys=False))
        return file

    def run(self, **asked: object) -> RunReport:
        """One run, whose report balances. Args: asked: of the request."""
        root = str(self.folder / "root")
        report = run_pipeline(RunRequest(pipeline=str(self.write()), root=root, **asked))
        report.check()
        for step in report.steps:
            for refresh in (batch.refresh for batch in step.batches if batch.refresh):
                fates = refresh.inserted + refresh.updated + refresh.deleted + refresh.unchanged
                assert refresh.touched == fates, refresh
        return report

    def refresh(self) -> object:
        """One run, which ends well and has one batch; what that did."""
        report = self.run()
        assert report.exit_code is ExitCode.DONE, report.error
        (batch,) = report.steps[0].batches
        self.check()
        return batch.refresh

    def die(self, when: str) -> RunReport:
        """A run that ends in the middle, if anything is new."""
        with dying(when):
            report = self.run()
        died = GONE in (report.error or "")
        assert died or report.exit_code is ExitCode.NOTHING_NEW, report.error
        return report

    def notes(self, step: str = "daily") -> list[dict]:
        """What the target's commits carry, the oldest first."""
        log = sorted((Path(self.target(step)) / "_delta_log").glob("*.json"))
        lines = [json.loads(line) for file in log for line in file.read_text().splitlines()]
        infos = [line["commitInfo"] for line in lines if "commitInfo" in line]
        told = [json.loads(info["userMetadata"]) for info in infos if info.get("userMetadata")]
        return [note for note in told if "versions" in note]

    @property
    def versions(self) -> dict[str, int]:
        """The versions of the inputs that the newest refresh recorded."""
        return self.notes()[-1]["versions"]

    def table(self, step: str = "daily", *columns: str) -> DataFrame:
        """The user's columns of a target, and others."""
        rows = self.spark.read.format("delta").load(self.target(step))
        return rows.select(*(f"`{c}`" for c in rows.columns if c[0] != "_" or c in columns))

    def batch(self, versions: dict[str, int]) -> DataFrame:
        """The query over its inputs at some versions, as a batch."""
        reader, tables = self.spark.read.format("delta"), self.query.tables
        frames = {
            name: reader.option("versionAsOf", versions[name]).load(self.path(table))
            for name, table in tables.items()
        }
        if self.query.is_python:
            names: dict = {}
            exec(self.query.code, names)  # noqa: S102 (of this folder)
            return names["daily"](**frames)
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        made = self.spark.sql(self.query.code)
        for name in frames:
            self.spark.catalog.dropTempView(name)
        return made

    def newest(self) -> dict[str, int]:
        """The recorded versions, and the newest of what is read commit by commit."""
        return self.versions | {
            name: table_version(self.path(table))
            for name, table in self.query.tables.items()
            if table not in self.query.static
        }

    def check(self, held: Groups | None = None, newest: bool = True) -> None:
        """The law: the table is the query over the recorded versions, no row more and none less.

        Args: held: what the table holds, where it is known. newest: it is so as well over the
        newest versions, because nothing is left out.
        """
        columns, found = self.table().columns, Counter()
        for rows in (self.groups() if held is None else held).values():
            for (row, _), times in rows.items():
                found[row] += times
        asked = (self.versions, self.newest() if newest else self.versions)
        for versions in {repr(one): one for one in asked}.values():
            made = self.batch(versions)
            assert sorted(columns) == sorted(made.columns), made.columns
            expected = count(made.select(*(f"`{name}`" for name in columns)))
            lacks, strange = expected - found, found - expected
            assert not (lacks or strange), f"at {versions} it lacks {lacks}, and has {strange}"

    def groups(self) -> Groups:
        """What the table holds, by group."""
        found: Groups = defaultdict(Counter)
        if not Path(self.target(), "_delta_log").exists():
            return found
        for row in read_rows(self.target()):
            told = row.asDict()
            group = freeze([told[name] for name in self.query.groups])
            users = [value for name, value in told.items() if name[0] != "_"]
            found[group][freeze(users), told["_run_id"]] += 1
        return found

    @property
    def files(self) -> list[str]:
        """The files of the table."""
        return sorted(self.table().inputFiles())


@contextmanager
def dying(when: str) -> Iterator[None]:
    """Runs end in the middle."""

    def die(*args: object) -> None:
        raise OSError(GONE)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            *((writes, "_keyed") if when == BEFORE else (tally_module, "note_batch")), die
        )
        yield


def count(frame: DataFrame) -> Counter:
    return Counter(map(freeze, frame.collect()))
