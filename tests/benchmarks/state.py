"""What state costs: a run beside a million keys, and a windowed aggregate beside one by hand."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import yaml
from sluice.launch.jvm_flags import java_options
from sluice.setup.jars import jar_paths

from tests.benchmarks.comparison import Comparison
from tests.benchmarks.process import Cost, run_measured, run_sluice

FEW, MANY, NEW = 10_000, 1_000_000, 10_000
BEGIN = datetime(2026, 1, 1)


class Windows:
    """A pipeline that counts the events of each key by window, its landing folder and its state
    after a first run. `delay`: of the watermark; `length`: of a window."""

    def __init__(self, folder: Path, length: str, delay: str) -> None:
        self.folder, self.landing = folder, folder / "landing"
        self.landing.mkdir(parents=True)
        self.log, self.spec, self.length, self.delay = (
            folder / "output.log",
            folder / "events.yaml",
            length,
            delay,
        )
        source = {
            "kind": "files",
            "path": str(self.landing),
            "format": "json",
            "schema": {"key": "bigint", "amount": "bigint", "at": "timestamp"},
        }
        timed = {"source": source, "event_time": {"column": "at"}, "watermark": delay}
        step = {
            "name": "counts",
            "inputs": {"events": timed},
            "transform": "counts.sql",
            "sink": {"kind": "delta", "mode": "append"},
        }
        told = {"name": "events", "owner": "benchmark", "schedule": None, "steps": [step]}
        self.spec.write_text(yaml.safe_dump(told, sort_keys=False))
        (folder / "counts.sql").write_text(
            "SELECT window.start AS start, key, count(*) AS events, sum(amount) AS amount "
            f"FROM events GROUP BY window(at, '{length}'), key"
        )

    def land(self, name: str, rows: int, keys: int, seconds: float) -> None:
        """A file of events, their keys in turn, so many seconds from the first to the last."""
        path = self.landing / f"{name}.json"
        with path.open("w") as file:
            for number in range(rows):
                at = BEGIN + timedelta(seconds=seconds * number / rows)
                event = {"key": number % keys, "amount": number % 100, "at": at.isoformat()}
                file.write(json.dumps(event) + "\n")
        moment = 1.6e9 + len(list(self.landing.iterdir()))
        os.utime(path, (moment, moment))

    def load(self) -> None:
        """A first run, whose state is kept."""
        self.ours(self.folder / "loaded")

    def run_on(self) -> Cost:
        """A run over what landed after the first, on a copy of its state."""
        root = self.folder / "root"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(self.folder / "loaded", root)
        return self.ours(root)

    def ours(self, root: Path) -> Cost:
        """One run in a process of its own."""
        return run_sluice("run", self.spec, root, self.log)

    def first(self) -> Cost:
        """A run over all there is."""
        return self.ours(self._anew())

    def by_hand(self, java: str = "") -> Cost:
        """The same by a job that was written by hand. Args: java: options of its JVM."""
        jars = ":".join(str(path) for path in jar_paths("core"))
        job = [sys.executable, "-m", "tests.benchmarks.plain_windows", str(self.landing)]
        told = [str(self._anew()), jars, self.length, self.delay, java]
        return run_measured([*job, *told], self.log)

    def _anew(self) -> Path:
        root = self.folder / "first"
        shutil.rmtree(root, ignore_errors=True)
        return root


def state_runs(scratch: Path, rows: int) -> Iterator[Comparison]:
    """S1 to S2 flags."""
    many, few = (Windows(scratch / name, "1 day", "30 days") for name in ("many", "few"))
    for windows, keys in ((many, MANY), (few, FEW)):
        windows.land("first", keys, keys, 3600)
        windows.load()
        windows.land("new", NEW, FEW, 7200)
    yield Comparison(
        "S1",
        f"{NEW:,} new rows beside {MANY:,} keys in state ÷ beside {FEW:,}, both ours",
        1.30,
        many.run_on,
        few.run_on,
    )
    hourly = Windows(scratch / "hourly", "1 hour", "1 hour")
    hourly.land("events", rows, 1_000, 2 * 86_400)
    yield Comparison(
        "S2",
        f"{rows:,} events counted by hour and key ÷ by hand, tuned",
        1.10,
        hourly.first,
        hourly.by_hand,
    )
    yield Comparison(
        "S2 flags",
        "the same ÷ that job under our JVM flags and class archive",
        1.10,
        hourly.first,
        partial(hourly.by_hand, java_options(small=False)),
    )
