"""Inputs that meet: a shop of advertisements whose impressions and clicks come apart, or streams of
other names and columns."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml
from sluice.report import RunReport
from sluice.runner import run_pipeline
from sluice.spec import RunRequest

from tests.delta_rows import read_rows

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEN_MINUTES = timedelta(minutes=10)
LEFT = """SELECT i.ad, i.id, i.at, c.at AS clicked FROM impressions i LEFT JOIN clicks c
  ON i.id = c.id AND c.at BETWEEN i.at AND i.at + INTERVAL 1 HOUR"""


def moment(minutes: float) -> str:
    """A time, minutes after noon."""
    return (NOON + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def shown(id_: object, minutes: float, ad: str | None = "A") -> dict:
    """An impression."""
    return {"ad": ad, "id": str(id_), "at": moment(minutes)}


def clicked(id_: object, minutes: float) -> dict:
    """A click."""
    return {"id": str(id_), "at": moment(minutes)}


SCHEMAS = {
    "impressions": {"ad": "string", "id": "string", "at": "timestamp"},
    "clicks": {"id": "string", "at": "timestamp"},
}
"""The columns of each stream of files."""


def without_size(said: str) -> str:
    """What a report says of a state but for its bytes, which hang on how well they were
    compressed, and its growth."""
    return re.sub(r"(held in state) \([^)]*\)", r"\1", said)


@dataclass
class Ads:
    """The pipeline, its landing folders and its root, all below a folder. `changes`: of the step;
    `asked`: of each input; `schemas`: of each that is a folder of files."""

    folder: Path
    transform: str = LEFT
    python: bool = False
    changes: dict = field(default_factory=dict)
    asked: dict[str, dict] = field(default_factory=dict)
    schemas: dict[str, dict[str, str]] = field(default_factory=lambda: SCHEMAS)
    landed: int = 0

    def __post_init__(self) -> None:
        for name in self.schemas:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.write()

    def source(self, name: str) -> dict:
        """Files of one of them."""
        return {
            "kind": "files",
            "path": str(self.folder / name),
            "format": "json",
            "schema": self.schemas[name],
        }

    def write(self) -> None:
        """The pipeline as it is now."""
        inputs = {
            name: {
                "source": self.source(name),
                "event_time": {"column": "at"},
                "watermark": "10 minutes",
                **self.asked.get(name, {}),
            }
            for name in self.schemas
        }
        inputs |= {name: one for name, one in self.asked.items() if name not in inputs}
        code = "t.py:join" if self.python else "t.sql"
        step = {"name": "rates", "inputs": inputs, "transform": code, **self.changes}
        (self.folder / code.partition(":")[0]).write_text(self.transform)
        told = yaml.safe_dump({"name": "ads", "steps": [step]}, sort_keys=False)
        (self.folder / "ads.yaml").write_text(told)

    def land(self, name: str, *rows: dict | str) -> None:
        """A file of rows, or of lines as they are."""
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        self.landed += 1
        file = self.folder / name / f"{self.landed:04}.json"
        file.write_text("".join(f"{line}\n" for line in lines))

    def run(self, run_id: str | None = None) -> RunReport:
        """One run, whose report balances."""
        named = {"run_id": run_id} if run_id else {}
        request = RunRequest(
            pipeline=str(self.folder / "ads.yaml"), root=str(self.folder / "root"), **named
        )
        report = run_pipeline(request)
        report.check()
        return report

    def table(self, name: str = "rates") -> str:
        """Where a table lies."""
        return str(self.folder / "root" / "tables" / "ads" / name)

    def rows(self, spark, *columns: str) -> Counter:
        """The target as a multiset. Args: columns: names, or expressions, which Spark computes."""
        if all(map(str.isidentifier, columns)):
            return Counter(map(tuple, read_rows(self.table(), *columns)))
        rows = spark.read.format("delta").load(self.table()).selectExpr(*columns)
        return Counter(map(tuple, rows.collect()))

    def expected(self, spark, *columns: str) -> Counter:
        """What the same SQL gives over all that ever landed."""
        for name, columns_of in self.schemas.items():
            schema = ", ".join(f"{c} {t}" for c, t in columns_of.items())
            files = str(self.folder / name)
            spark.read.schema(schema).json(files).createOrReplaceTempView(name)
        rows = spark.sql(self.transform).selectExpr(*columns).collect()
        for name in self.schemas:
            spark.catalog.dropTempView(name)
        return Counter(tuple(row) for row in rows)
