"""What a first load costs beside hand-written PySpark. `make bench-backlog ROWS=3000000`.

CPU-seconds of whole process trees, interleaved, each into empty tables. Ours has fourteen row
rules, quarantine and report; the hand-written job has none of them.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from sluice.launch.jvm_flags import java_options
from sluice.setup.jars import jar_paths

from tests.benchmarks.bench import compare
from tests.benchmarks.order_files import write_orders
from tests.benchmarks.process import cpu_seconds, watch_memory

HERE = Path(__file__).parent
ROWS_PER_FILE = 125_000


class Bench:
    """One backlog, and the jobs that load it."""

    def __init__(self, scratch: Path, rows: int) -> None:
        self.scratch, self.log = scratch, scratch / "output.log"
        files = max(1, rows // ROWS_PER_FILE)
        self.landing = write_orders(scratch / "landing", rows, files)
        os.environ["BACKLOG_LANDING"] = str(self.landing)  # the pipeline's
        self.peaks = {"ours": 0, "tuned": 0}
        """Bytes of memory, of whole process trees."""

    def _empty(self, name: str) -> Path:
        folder = self.scratch / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def ours(self) -> float:
        """One run of the pipeline with fourteen rules."""
        spec, root = str(HERE / "backlog.yaml"), str(self._empty("ours"))
        command = [sys.executable, "-m", "sluice.cli", "run", "--spec", spec, "--root", root]
        return self._run("ours", command)

    def _run(self, job: str, command: list[str]) -> float:
        with watch_memory() as most:
            seconds = cpu_seconds(command, self.log)
        self.peaks[job] = max(self.peaks[job], most[0])
        return seconds

    def tuned(self, *java: str) -> float:
        """One run of the hand-written job."""
        jars = ":".join(map(str, jar_paths("core")))
        job, root = "tests.benchmarks.plain_backlog", str(self._empty("tuned"))
        command = [sys.executable, "-m", job, str(self.landing), root, jars, *java]
        return self._run("tuned", command)


def main() -> None:
    """Compare with the hand-written job, under Java's own flags and under ours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1, help="repetitions of each pair")
    parser.add_argument("--rows", type=int, default=3_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        bench = Bench(Path(folder), options.rows)
        size = sum(file.stat().st_size for file in bench.landing.iterdir())
        print(
            f"{options.rows:,} rows, {size / 1e6:.0f} MB; {options.size} pair(s) each", flush=True
        )
        compare("by hand", options.size, bench.ours, bench.tuned, 1.2)
        flags = java_options(small=False)
        ours, tuned = (bench.peaks[job] / 1e6 for job in ("ours", "tuned"))
        print(f"peak memory  ours {ours:,.0f} MB  tuned {tuned:,.0f} MB  ratio {ours / tuned:.2f}")
        compare("our flags", options.size, bench.ours, lambda: bench.tuned(flags), 1.35)


if __name__ == "__main__":
    main()
