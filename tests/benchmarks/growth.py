"""What a run costs when much lies behind it: files in its folder, days, runs."""

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import yaml

from tests.benchmarks.comparison import Comparison
from tests.benchmarks.process import Cost, run_measured, run_sluice

HERE = Path(__file__).parent
FEW, NEW, ROWS_A_DAY = 100, 10, 2_000
RESTED = 3
"""Seconds after which the time of a folder tells its next change from its last."""


class Growing:
    """A pipeline whose landing folder gets a file a day, and its state after so many of them.

    `apart`: how far a day's orders are behind those of the day before, over which they are spread;
    with the usual hour more and more days lie within the reach of a copy.
    """

    def __init__(
        self, scratch: Path, name: str, rows: int, apart: timedelta = timedelta(hours=1)
    ) -> None:
        self.folder, self.rows, self.apart = scratch / name, rows, apart
        self.days, self.landing = self.folder / "days", self.folder / "landing"
        self.log, self.spec = self.folder / "output.log", self.folder / "orders.yaml"
        self.days.mkdir(parents=True)
        self.say_order(None)

    def say_order(self, ordered_by: str | None) -> None:
        """Say in the pipeline what sorts in the order in which files arrive."""
        pipeline = yaml.safe_load((HERE / "backlog.yaml").read_text())
        pipeline["steps"][0]["source"] |= {"path": str(self.landing), "ordered_by": ordered_by}
        self.spec.write_text(yaml.safe_dump(pipeline, sort_keys=False))

    def write_day(self, day: int) -> Path:
        """The orders of a day, in a file that is as old as its day."""
        path, begin = self.days / f"{day:07d}.json", datetime(2020, 1, 1) + day * self.apart
        rows = [self._order(day, number, begin) for number in range(self.rows)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (1.6e9 + day, 1.6e9 + day))
        return path

    def _order(self, day: int, number: int, begin: datetime) -> dict:
        return {
            "id": f"{day:016x}{number:016x}",
            "customer": f"c{number % 1_000_000:06d}",
            "country": "DE",
            "status": "paid",
            "price": number % 500,
            "quantity": number % 20,
            "sku": f"sku-{number % 5000:05d}",
            "event_time": (begin + number * self.apart / self.rows).isoformat(timespec="seconds"),
            "note": "x" * (number % 80),
            "channel": "web",
        }

    def land(self, count: int) -> None:
        """Have exactly the first days in the landing folder."""
        shutil.rmtree(self.landing, ignore_errors=True)
        self.landing.mkdir()
        for day in range(count):
            path = self.days / f"{day:07d}.json"
            os.link(path if path.exists() else self.write_day(day), self.landing / path.name)

    def state(self, count: int) -> Path:
        """Where the tables and checkpoints of so many days are kept."""
        return self.folder / f"after-{count}"

    def drain_days(self, count: int) -> Iterator[Cost]:
        """One run after the other over a day each, from empty tables."""
        root = self.folder / "root"
        shutil.rmtree(root, ignore_errors=True)
        for day in range(count):
            self.land(day + 1)
            yield self._sluice("run", root)

    def load(self, count: int) -> None:
        """Load so many days, the last few of them in a run of their own: whenever Spark starts, it
        lists what the batch before had read, and in a folder that grew that is not all of it."""
        for landed in (count - NEW, count):
            self.land(landed)
            self._sluice("run", self.state(count))

    def grow(self, *counts: int) -> None:
        """Load day after day, a run each in one process, and keep the states after these."""
        self.land(0)
        for day in range(max(counts)):
            self.write_day(day)
        job = [sys.executable, "-m", "tests.benchmarks.grow", str(self.spec), str(self.folder)]
        run_measured([*job, *map(str, counts)], self.log)

    def run_after(self, count: int, new: int = 1, ordered_by: str | None = None) -> Cost:
        """One run over the files that are new after so many, on a copy of that state, once the
        folder has rested."""
        self.say_order(ordered_by)
        self.land(count + new)
        time.sleep(RESTED)
        root = self.folder / "root"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(self.state(count), root)
        return self._sluice("run", root)

    def probe_after(self, count: int) -> Cost:
        """The question whether anything is new, after so many files: as a schedule asks it, after
        an idle look that noted the folder, which has to rest for that."""
        self.land(count)
        time.sleep(RESTED)
        self._sluice("run", self.state(count))
        return self._sluice("plan", self.state(count))

    def _sluice(self, verb: str, root: Path) -> Cost:
        return run_sluice(verb, self.spec, root, self.log)


def grown_runs(scratch: Path, files: int, runs: int) -> Iterator[Comparison]:
    """P8 and P9."""
    many = Growing(scratch, "files", rows=1)
    for count in (FEW, files):
        many.load(count)
    yield Comparison(
        "P8 idle",
        f"idle check of a folder of {files:,} files ÷ of {FEW}, both ours",
        1.25,
        partial(many.probe_after, files),
        partial(many.probe_after, FEW),
    )
    for name, ordered_by in (("run", None), ("ordered", "name")):
        told = f", ordered_by: {ordered_by}" if ordered_by else ""
        yield Comparison(
            f"P8 {name}",
            f"a run of {NEW} new files in a folder of {files:,}{told} ÷ of {FEW}, both ours",
            1.25,
            partial(many.run_after, files, NEW, ordered_by),
            partial(many.run_after, FEW, NEW, ordered_by),
        )
    daily = Growing(scratch, "days", rows=ROWS_A_DAY)
    daily.grow(1, 9, 49, runs - 1)
    for name, late, early in (("days", 50, 2), ("runs", runs, 10)):
        yield Comparison(
            f"P9 {name}",
            f"run {late:,} ÷ run {early}, {ROWS_A_DAY:,} orders each, both ours",
            1.10,
            partial(daily.run_after, late - 1),
            partial(daily.run_after, early - 1),
        )
