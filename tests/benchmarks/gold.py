"""What a gold table costs that is refreshed by group: one new day beside all of it computed again,
and beside the same sums in Spark's state."""

import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import yaml
from sluice.launch.jvm_flags import java_options
from sluice.setup.jars import jar_paths

from tests.benchmarks.comparison import Comparison
from tests.benchmarks.process import Cost, run_measured, run_sluice

DAYS = 365
_JARS = ":".join(str(path) for path in jar_paths("core"))
_DAILY = """SELECT date(at) AS day, product, sum(amount) AS revenue, count(*) AS sales,
  count(DISTINCT customer) AS customers
FROM source GROUP BY date(at), product"""
_SUMS = """SELECT date(at) AS day, product, sum(amount) AS revenue, count(*) AS sales
FROM source GROUP BY date(at), product"""
_WINDOWS = """SELECT CAST(window.start AS date) AS day, product, sum(amount) AS revenue,
  count(*) AS sales
FROM source GROUP BY window(at, '1 day'), product"""


class Gold:
    """A year of sales in a Delta table, and pipelines over it. `rows`: of a day."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder, self.rows, self.log = folder, rows, folder / "output.log"
        self.silver = folder / "silver"
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, first: int, days: int) -> None:
        """Days of sales more, by a process of its own. Args: first: days since the year began."""
        job = [sys.executable, "-m", "tests.benchmarks.silver", str(self.silver), _JARS]
        run_measured([*job, *map(str, (first, days, self.rows))], self.log)

    def pipeline(self, name: str, query: str, **asked: object) -> Path:
        """A pipeline with one step over the sales. Args: asked: what else the step says."""
        (self.folder / f"{name}.sql").write_text(query)
        step = {"name": "daily", "transform": f"{name}.sql", **asked}
        told = {"name": name, "owner": "benchmark", "schedule": None, "steps": [step]}
        spec = self.folder / f"{name}.yaml"
        spec.write_text(yaml.safe_dump(told, sort_keys=False))
        return spec

    def run(self, spec: Path, root: str) -> Cost:
        """One run in a process of its own."""
        return run_sluice("run", spec, self.folder / root, self.log)

    def load(self, spec: Path) -> None:
        """A run whose tables and checkpoints are kept."""
        self.run(spec, f"{spec.stem}-loaded")

    def run_on(self, spec: Path) -> Cost:
        """A run over what came behind those that were kept, on a copy of what they left."""
        loaded, root = self.folder / f"{spec.stem}-loaded", self.folder / f"{spec.stem}-root"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(loaded, root)
        return self.run(spec, root.name)

    def by_hand(self, query: str, java: str = "") -> Cost:
        """All of the table by a job that was written by hand."""
        (self.folder / "by_hand.sql").write_text(query)
        job = [sys.executable, "-m", "tests.benchmarks.plain_gold", str(self.silver)]
        told = [str(self.folder / "by-hand"), _JARS, str(self.folder / "by_hand.sql"), java]
        return run_measured([*job, *told], self.log)


def gold_runs(scratch: Path, rows: int) -> Iterator[Comparison]:
    """G1 to G2. Args: rows: of a year."""
    gold = Gold(scratch / "gold", rows // DAYS)
    groups = {"groups": {"day": "date(at)"}}
    source = {"kind": "table", "path": str(gold.silver)}
    timed = {"source": source, "event_time": {"column": "at"}, "watermark": "1 hour"}
    daily = gold.pipeline("daily", _DAILY, source=source, **groups)
    sums = gold.pipeline("sums", _SUMS, source=source, **groups)
    windows = gold.pipeline("windows", _WINDOWS, inputs={"source": timed})
    # A day is measured behind another: a run behind the first reads what that one read once more,
    # for Spark asks a source for its last batch again, and the first batch is the whole table.
    for first, days in ((0, DAYS), (DAYS, 1)):
        gold.write(first, days)
        for spec in (daily, sums, windows):
            gold.load(spec)
    gold.write(DAYS + 1, 1)
    what = f"a day of {gold.rows:,} sales into {DAYS + 1} days of gold"
    yield Comparison(
        "G1",
        f"{what}, refreshed by group ÷ all of it computed by hand",
        0.08,
        partial(gold.run_on, daily),
        partial(gold.by_hand, _DAILY),
    )
    yield Comparison(
        "G1 flags",
        "the same ÷ that job under our JVM flags and class archive",
        0.08,
        partial(gold.run_on, daily),
        partial(gold.by_hand, _DAILY, java_options(small=False)),
    )
    yield Comparison(
        "G2",
        f"{what} ÷ into the same sums in Spark's state, both ours",
        1.0,
        partial(gold.run_on, sums),
        partial(gold.run_on, windows),
    )
