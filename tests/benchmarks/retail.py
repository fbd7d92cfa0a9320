"""Runs over daily retail files: the real ones where they are given, else generated."""

import gzip
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from sluice.setup.jars import jar_paths
from sluice.verify.runs import start_run

from tests.benchmarks.comparison import Comparison
from tests.benchmarks.process import Cost, reap_descendants, run_measured, run_sluice
from tests.retail_files import find_real_files, generate_files

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
PIPELINE = PROJECT / "include" / "pipelines" / "retail.yaml"


class Retail:
    """Folders and commands of one benchmark.

    Histories are made once; each repetition runs on a copy.
    """

    def __init__(self, scratch: Path) -> None:
        self.scratch, self.log = scratch, scratch / "output.log"
        self.files = find_real_files() or generate_files(scratch / "generated", days=200, rows=1500)
        self.landing = scratch / "landing"
        self.jars = ":".join(str(p) for p in jar_paths("core"))
        os.environ["RETAIL_LANDING"] = str(self.landing)  # the pipeline's, for every process below

    def land(self, files: list[Path]) -> None:
        """Put exactly these files into the landing folder, with their own times."""
        shutil.rmtree(self.landing, ignore_errors=True)
        self.landing.mkdir()
        for file in files:
            shutil.copy2(file, self.landing)

    def land_empty(self) -> None:
        """Put a file beside them that has a header and no row."""
        first = self.files[0]
        with gzip.open(first, "rt") if first.suffix == ".gz" else first.open() as file:
            header = file.readline()
        (self.landing / "empty.csv").write_text(header)

    def ours(self, root: Path) -> Cost:
        """One run of the pipeline in a process of its own."""
        return run_sluice("run", PIPELINE, root, self.log)

    def plain(self, root: Path) -> Cost:
        """One run of the hand-written job."""
        root.mkdir(parents=True, exist_ok=True)
        return run_measured(
            [
                sys.executable,
                str(HERE / "plain_retail.py"),
                str(self.landing),
                str(root),
                self.jars,
            ],
            self.log,
        )

    def probe(self, root: Path) -> Cost:
        """The question whether anything is new."""
        return run_sluice("plan", PIPELINE, root, self.log)

    def plain_idle(self, root: Path) -> Cost:
        """The same question asked by starting Spark on a copy of the same checkpoint."""
        copy = self.fresh("idle", root / "checkpoints" / "retail" / "line_items" / "spark")
        return run_measured(
            [sys.executable, str(HERE / "plain_idle.py"), str(self.landing), str(copy)], self.log
        )

    def kill_midway(self, root: Path) -> Path:
        """Start a run, and kill all of it as soon as the first of its batch's rows are on disk.

        Nearly all of the batch is lost.
        """
        table = root / "tables" / "retail" / "line_items"
        before = len(list(table.rglob("*.parquet")))
        run = start_run(PIPELINE, root, self.log)
        while len(list(table.rglob("*.parquet"))) == before:
            if run.poll() is not None:
                raise SystemExit(
                    "the run ended before it could be killed:\n"
                    f"{self.log.read_text(errors='replace')[-2000:]}"
                )
            time.sleep(0.01)
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        reap_descendants()
        return root

    def fresh(self, name: str, history: Path | None = None) -> Path:
        """An empty folder, or a copy of a history."""
        folder = self.scratch / name
        shutil.rmtree(folder, ignore_errors=True)
        if history is not None:
            shutil.copytree(history, folder)
        return folder


def small_runs(scratch: Path) -> Iterator[Comparison]:
    """P1, P2, and days of retail files."""
    bench = Retail(scratch)
    days = len(bench.files)
    bench.land(bench.files[:-1])
    history, plain_history = bench.scratch / "history", bench.scratch / "plain-history"
    bench.ours(history)
    bench.plain(plain_history)
    yield Comparison(
        "P1",
        "idle: `sluice plan` ÷ an idle availableNow run on the same checkpoint",
        0.03,
        lambda: bench.probe(history),
        lambda: bench.plain_idle(history),
    )
    bench.land_empty()
    yield Comparison(
        "P2",
        "a run that Spark is started for and that finds no row (a file with a header alone) "
        "÷ the job by hand",
        0.35,
        lambda: bench.ours(bench.fresh("ours", history)),
        lambda: bench.plain(bench.fresh("plain", plain_history)),
    )
    bench.land(bench.files)
    yield Comparison(
        "one day",
        f"one new day on a history of {days - 1} ÷ the job by hand",
        1.0,
        lambda: bench.ours(bench.fresh("ours", history)),
        lambda: bench.plain(bench.fresh("plain", plain_history)),
    )
    yield Comparison(
        "all days",
        f"all {days} days in one run ÷ the job by hand",
        1.25,
        lambda: bench.ours(bench.fresh("ours")),
        lambda: bench.plain(bench.fresh("plain")),
    )
    yield Comparison(
        "recovery",
        "a run after a kill (as its rows reached the disk) ÷ the same run undisturbed, both ours",
        1.2,
        lambda: bench.ours(bench.kill_midway(bench.fresh("killed", history))),
        lambda: bench.ours(bench.fresh("ours", history)),
    )
