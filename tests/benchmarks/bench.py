"""What a run costs beside plain PySpark. `make bench SIZE=5`.

CPU-seconds of whole process trees, interleaved, medians. Four comparisons over daily retail files
(the real ones where they are given, else generated):
  idle      `sluice plan` after everything was read   ÷ an idle plain availableNow run on the same
            checkpoint
  one day   one new file on a history of all others   ÷ the plain job of plain_retail.py (same read,
            dedup, Delta append; no rules, no report)
  all days  every file in one run                     ÷ the same plain job
  recovery  one new file, after a run that was killed as its rows reached the disk ÷ the same run
            without the kill (one start and the batch)
"""

import argparse
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from sluice.setup.jars import jar_paths
from sluice.verify.runs import start_run

from tests.benchmarks.process import cpu_seconds, reap_descendants
from tests.retail_files import find_real_files, generate_files

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
PIPELINE = PROJECT / "include" / "pipelines" / "retail.yaml"


class Bench:
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

    def ours(self, root: Path) -> float:
        """One run of the pipeline in a process of its own."""
        return cpu_seconds(
            [
                sys.executable,
                "-m",
                "sluice.cli",
                "run",
                "--spec",
                str(PIPELINE),
                "--root",
                str(root),
            ],
            self.log,
        )

    def plain(self, root: Path) -> float:
        """One run of the hand-written job."""
        root.mkdir(parents=True, exist_ok=True)
        return cpu_seconds(
            [
                sys.executable,
                str(HERE / "plain_retail.py"),
                str(self.landing),
                str(root),
                self.jars,
            ],
            self.log,
        )

    def probe(self, root: Path) -> float:
        """The question whether anything is new."""
        return cpu_seconds(
            [
                sys.executable,
                "-m",
                "sluice.cli",
                "plan",
                "--spec",
                str(PIPELINE),
                "--root",
                str(root),
            ],
            self.log,
        )

    def plain_idle(self, root: Path) -> float:
        """The same question asked by starting Spark on a copy of the same checkpoint."""
        copy = self.fresh("idle", root / "checkpoints" / "retail" / "line_items" / "spark")
        return cpu_seconds(
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


def compare(
    title: str,
    size: int,
    ours: Callable[[], float],
    plain: Callable[[], float],
    bound: float,
    names: tuple[str, str] = ("ours", "plain"),
) -> None:
    """Run both in turn; print the medians, and the median of the ratios beside the promise."""
    pairs = []
    for turn in range(size):
        first, second = (ours, plain) if turn % 2 == 0 else (plain, ours)
        a, b = first(), second()
        pairs.append((a, b) if turn % 2 == 0 else (b, a))
    ratios = sorted(a / b for a, b in pairs)
    middle = statistics.median(ratios)
    print(
        f"{title:9s} {names[0]} {statistics.median(a for a, _ in pairs):6.2f}"
        f"  {names[1]} {statistics.median(b for _, b in pairs):6.2f} CPU-s"
        f"   ratio {middle:.3f}  [{ratios[0]:.3f} .. {ratios[-1]:.3f}]"
        f"  promised <= {bound:.2f}  {'ok' if middle <= bound else 'MISSED'}",
        flush=True,
    )


def main() -> None:
    """Run the four comparisons."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=3, help="repetitions of each pair")
    size = parser.parse_args().size
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        bench = Bench(Path(folder))
        print(
            f"{len(bench.files)} daily files, "
            f"{sum(f.stat().st_size for f in bench.files) / 1e6:.1f} MB; "
            f"{size} interleaved pairs each",
            flush=True,
        )
        bench.land(bench.files[:-1])
        history, plain_history = bench.scratch / "history", bench.scratch / "plain-history"
        bench.ours(history)
        bench.plain(plain_history)
        compare("idle", size, lambda: bench.probe(history), lambda: bench.plain_idle(history), 0.10)
        bench.land(bench.files)
        compare(
            "one day",
            size,
            lambda: bench.ours(bench.fresh("ours", history)),
            lambda: bench.plain(bench.fresh("plain", plain_history)),
            1.0,
        )
        compare(
            "all days",
            size,
            lambda: bench.ours(bench.fresh("ours")),
            lambda: bench.plain(bench.fresh("plain")),
            1.25,
        )
        compare(
            "recovery",
            size,
            lambda: bench.ours(bench.kill_midway(bench.fresh("killed", history))),
            lambda: bench.ours(bench.fresh("ours", history)),
            1.2,
            ("after a kill", "undisturbed"),
        )


if __name__ == "__main__":
    main()
