"""Small pipelines in a temporary folder.

Write the YAML, land files, run, read the tables as multisets.
"""

import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from pyspark.sql import Row, SparkSession
from sluice.backlog import StepBacklog, measure_pipeline
from sluice.errors import ExitCode
from sluice.report import RunReport
from sluice.runner import run_pipeline
from sluice.spec import RunRequest, load_pipeline
from sluice.storage import Paths

from tests.delta_rows import read_rows


@dataclass
class Project:
    """One pipeline `p` with one step `s`, its landing folder and its root.

    `source`, `step`, `pipeline`: entries of the YAML.
    """

    spark: SparkSession
    folder: Path
    source: dict
    step: dict = field(default_factory=lambda: {"sink": {"mode": "append"}})
    pipeline: dict = field(default_factory=dict)
    reports: list[RunReport] = field(default_factory=list)
    landed: int = 0

    def __post_init__(self) -> None:
        self.landing.mkdir(parents=True, exist_ok=True)

    @property
    def landing(self) -> Path:
        return self.folder / "landing"

    @property
    def paths(self) -> Paths:
        return Paths.under(self.folder / "root", "p")

    def land(self, name: str, content: bytes | str) -> Path:
        """Write one file, a second younger than the one before: Spark takes them in this order."""
        path = self.landing / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.stamp(path)
        return path

    def stamp(self, path: Path) -> None:
        self.landed += 1
        moment = time.time() - 10_000 + self.landed
        os.utime(path, (moment, moment))

    def write(self) -> Path:
        """Write the pipeline's YAML."""
        folder = {"path": str(self.landing)} if self.source.get("kind", "files") == "files" else {}
        source = {**folder, **self.source}
        file = self.folder / "p.yaml"
        file.write_text(
            yaml.safe_dump(
                {
                    "name": "p",
                    "steps": [{"name": "s", "source": source, **self.step}],
                    **self.pipeline,
                },
                sort_keys=False,
            )
        )
        return file

    def run(self, **request: object) -> RunReport:
        """Run once. Every report must balance, whatever happened."""
        report = run_pipeline(
            RunRequest(pipeline=str(self.write()), root=str(self.folder / "root"), **request)
        )
        report.check()
        self.reports.append(report)
        return report

    def rows(self, *columns: str, source: str | None = None) -> Counter:
        """The target as a multiset of tuples; of one file's rows when `source` names it."""
        file = () if source is None else ("_source",)
        rows = _of_file(read_rows(self.paths.table("s"), *columns, *file), source)
        return Counter(tuple(row)[: len(columns)] for row in rows)

    def quarantine(self, source: str | None = None) -> list[Row]:
        """The quarantined rows; of one file when `source` names it."""
        return _of_file(read_rows(self.paths.quarantine("s")), source)

    def plan(self) -> StepBacklog:
        """What the probe says."""
        return measure_pipeline(load_pipeline(self.write()), self.paths)[0]

    def _table(self, path: str) -> object:
        return self.spark.read.format("delta").load(path)


def _of_file(rows: list[Row], source: str | None) -> list[Row]:
    return [row for row in rows if source is None or row["_source"].endswith(f"/{source}")]


def details(project: Project, source: str | None = None) -> dict[str, str]:
    """Quarantined records -> why, all of them for the reason `malformed`.

    Args: source: the file whose records are wanted; all where it is None.
    """
    rows = project.quarantine(source)
    assert all(row.reasons == ["malformed"] for row in rows)
    return {row.row: row.detail for row in rows}


def assert_next_run_works(
    project: Project, name: str, content: str, row: tuple, *columns: str
) -> None:
    project.land(name, content)
    report = project.run()
    assert (report.status, report.exit_code, report.error) == ("done", ExitCode.DONE, None)
    assert (report.counts.read, report.counts.written) == (1, 1)
    assert project.rows(*columns, source=name) == Counter([row])
