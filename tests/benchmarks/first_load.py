"""First loads of orders, in four forms, and ten thousand orders on top of them.

Ours has fourteen row rules, quarantine and report; the hand-written job has none of them.
"""

import shutil
import sys
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import yaml
from sluice.launch.jvm_flags import java_options
from sluice.setup.jars import jar_paths

from tests.benchmarks.comparison import Comparison
from tests.benchmarks.order_files import write_orders
from tests.benchmarks.plain_backlog import NESTED
from tests.benchmarks.process import Cost, run_measured, run_sluice

HERE = Path(__file__).parent
NEW = 10_000
"""Rows of a small run."""


class FirstLoad:
    """Landing folders, made when they are first asked for, and the jobs that load them."""

    def __init__(self, scratch: Path, rows: int) -> None:
        self.scratch, self.rows, self.log = scratch, rows, scratch / "output.log"
        self.landing = cache(self._land)
        self.history = cache(self._load_before)

    def _land(self, form: str, rows: int, seed: int = 1) -> Path:
        return write_orders(self.scratch / f"{form}-{rows}-{seed}", form, rows, seed)

    def ours(self, landing: Path, form: str, history: Path | None = None, **step: object) -> Cost:
        """One run of the pipeline into empty tables, or on a copy of a history."""
        spec, root = self._write_spec(landing, form, step), self._fresh("ours", history)
        return run_sluice("run", spec, root, self.log)

    def tuned(self, landing: Path, form: str, history: Path | None = None, java: str = "") -> Cost:
        """One run of the hand-written job. Args: java: options of its JVM, Java's own without."""
        jars = ":".join(map(str, jar_paths("core")))
        root = self._fresh("tuned", history)
        job = "tests.benchmarks.plain_backlog"
        command = [sys.executable, "-m", job, str(landing), str(root), jars, form, java]
        return run_measured(command, self.log)

    def duckdb(self, landing: Path) -> Cost:
        """The same orders, one an id, from JSON to Parquet by DuckDB."""
        root, job = self._fresh("duckdb"), "tests.benchmarks.duckdb_backlog"
        return run_measured([sys.executable, "-m", job, str(landing), str(root)], self.log)

    def _write_spec(self, landing: Path, form: str, step: dict) -> Path:
        pipeline = yaml.safe_load((HERE / "backlog.yaml").read_text())
        (orders,) = pipeline["steps"]
        source = orders["source"]
        source |= {"path": str(landing), "format": "json" if form == "nested" else form}
        if form == "csv":
            source["header"] = True
        if form == "nested":
            source["schema"] |= NESTED
        orders |= step
        path = self.scratch / "orders.yaml"
        path.write_text(yaml.safe_dump(pipeline, sort_keys=False))
        return path

    def _fresh(self, name: str, history: Path | None = None) -> Path:
        folder = self.scratch / name
        shutil.rmtree(folder, ignore_errors=True)
        if history is None:
            folder.mkdir()
        else:
            shutil.copytree(history, folder)
        return folder

    def _load_before(self, job: str) -> tuple[Path, Path]:
        """What a job has made of all orders, and the folder in which new ones wait as well."""
        landing, kept = self.scratch / "grown", self.scratch / f"{job}-history"
        if not landing.exists():
            shutil.copytree(self.landing("json", self.rows), landing)
        (self.ours if job == "ours" else self.tuned)(landing, "json")
        (self.scratch / job).rename(kept)
        return kept, landing

    def add(self, job: str) -> Cost:
        """One run over ten thousand orders of the next day, after all the others were loaded."""
        for name in ("ours", "tuned"):
            self.history(name)
        history, landing = self.history(job)
        if not list(landing.glob("s0002-*")):
            write_orders(landing, "json", NEW, seed=2)
        run = self.ours if job == "ours" else self.tuned
        return run(landing, "json", history)


def first_loads(scratch: Path, rows: int) -> Iterator[Comparison]:
    """P3 to P7b."""
    bench = FirstLoad(scratch, rows)

    def ours(form: str, count: int = rows, **step: object) -> Cost:
        return bench.ours(bench.landing(form, count), form, **step)

    def tuned(form: str, count: int = rows, java: str = "") -> Cost:
        return bench.tuned(bench.landing(form, count), form, java=java)

    flat = partial(ours, "json")
    by_hand = "the job tuned by hand"
    yield Comparison(
        "P3",
        f"{NEW:,} JSON orders, a new process, empty tables ÷ {by_hand}",
        0.45,
        partial(ours, "json", NEW),
        partial(tuned, "json", NEW),
    )
    yield Comparison(
        "P4", f"{rows:,} JSON orders, first load ÷ {by_hand}", 0.95, flat, partial(tuned, "json")
    )
    yield Comparison(
        "P4 flags",
        "the same ÷ that job under our JVM flags and class archive",
        0.95,
        flat,
        partial(tuned, "json", java=java_options(small=False)),
    )
    yield Comparison(
        "P4n",
        f"{rows:,} nested JSON orders (structs, arrays, a map, unknown fields) ÷ {by_hand}",
        1.05,
        partial(ours, "nested"),
        partial(tuned, "nested"),
    )
    for form in ("csv", "parquet"):
        yield Comparison(
            f"P4c {form}",
            f"{rows:,} orders as {form.upper() if form == 'csv' else 'Parquet'} ÷ {by_hand}",
            1.00,
            partial(ours, form),
            partial(tuned, form),
        )
    yield Comparison(
        "P5",
        f"{rows:,} JSON orders, first load ÷ DuckDB (one an id, into Parquet)",
        14,
        flat,
        lambda: bench.duckdb(bench.landing("json", rows)),
    )
    yield Comparison("P6", "14 row rules ÷ none, both ours", 1.15, flat, partial(flat, rules=[]))
    yield Comparison(
        "P7",
        f"{NEW:,} orders of the next day, {rows:,} are loaded ÷ {by_hand}",
        0.33,
        partial(bench.add, "ours"),
        partial(bench.add, "tuned"),
    )
    yield Comparison(
        "P7b", "dedup ÷ none, first load, both ours", 1.25, flat, partial(flat, dedup=None)
    )
