"""Runs that are killed at random moments, again and again, end in the tables and the counts of a run that never was. `make crash SIZE=300`."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from sluice.report import Counts, list_reports

from tests.spark.shop import Shop, order

KILLS = int(os.environ.get("SLUICE_CRASH_SIZE", "4"))
SEED = int(os.environ.get("SLUICE_CRASH_SEED", "20260101"))
RUN_SECONDS = 25.0


def make_backlog(files: int) -> list[list[str]]:
    """Files of orders with copies within and across files, malformed lines and rows that break a rule."""
    rng, backlog = random.Random(SEED), []
    for _ in range(files):
        numbers = [rng.randrange(40 * files) for _ in range(100)]
        rows = [{**order(n, amount=float(n % 50 - 1)), "at": f"2026-01-01T{n % 24:02d}:00:00Z"} for n in numbers]
        backlog.append([*map(json.dumps, rows), "{broken", "{broken"])
    return backlog


def start(shop: Shop) -> subprocess.Popen:
    """A run in a process group of its own."""
    command = [sys.executable, "-m", "sluice.cli", "run", "--spec", str(shop.yaml), "--root", str(shop.root)]
    with (shop.folder / "run.log").open("w") as log:
        return subprocess.Popen(command, start_new_session=True, stdout=log, stderr=subprocess.STDOUT)


def kill(process: subprocess.Popen, after: float) -> bool:
    """Kill the whole group (driver and JVM) after some seconds; False when the run ended before."""
    try:
        process.wait(after)
        return False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True


def drain(shop: Shop) -> None:
    """Run until nothing is new."""
    for _ in range(10):
        if (code := start(shop).wait(600)) == 3:
            return
    pytest.fail(f"the backlog was not drained in ten runs; the last ended with {code} and said: {(shop.folder / 'run.log').read_text()[-4000:]}")


def results(shop: Shop, spark) -> tuple[Counter, Counter, Counts]:
    """Target and quarantine as multisets, and the sum of all reports."""
    counts = sum((report.counts for report in list_reports(shop.root / "reports" / "orders")), Counts())
    return shop.rows(spark), shop.rows(spark, "paid__quarantine", ("row", "reasons")), counts


@pytest.mark.timeout(86400)
def test_killed_runs_end_in_the_tables_and_counts_of_a_run_that_was_never_killed(spark, tmp_path):
    rng, kills, began = random.Random(SEED), 0, time.monotonic()
    backlog = make_backlog(2 * KILLS + 2)
    killed = Shop(tmp_path / "killed", source={"max_files_per_batch": 1})
    waiting = list(backlog)
    while kills < KILLS:
        for _ in range(2):  # more arrives all the time, as long as there is more
            if waiting:
                killed.land(*waiting.pop(0))
        kills += kill(start(killed), after=rng.uniform(1.0, RUN_SECONDS))
    for lines in waiting:
        killed.land(*lines)
    drain(killed)
    calm = Shop(tmp_path / "calm")
    for lines in backlog:
        calm.land(*lines)
    drain(calm)
    found, wanted = results(killed, spark), results(calm, spark)
    print(f"\n{kills} kills, seed {SEED}, {time.monotonic() - began:.0f} s: {found[2].line}")
    assert found[0] == wanted[0]
    assert found[1] == wanted[1]
    assert found[2].balanced and found[2] == wanted[2]
