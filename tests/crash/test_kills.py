"""Runs that are killed at random moments, again and again. `make crash N=300`.

They end in the tables and the counts of a run that never was.
"""

import json
import os
import random
import time
from collections import Counter

import pytest
from sluice.errors import ExitCode
from sluice.report import Counts
from sluice.verify.roots import count_rows
from sluice.verify.runs import VICTIMS, kill_run, start_run

from tests.crash.killing import drain_here
from tests.spark.shop import RULES, Shop, order

KILLS = int(os.environ.get("SLUICE_CRASH_SIZE", "4"))
SEED = int(os.environ.get("SLUICE_CRASH_SEED", "20260101"))
IN_PYTHON = {
    "type": "expect_column_values_to_be_json_parseable",
    "kwargs": {"column": "order_id"},
    "on_fail": "warn",
}
"""A rule that a Python worker of Spark's evaluates by Great Expectations; every text fails it."""
RUN_SECONDS = 12.0
"""How long a run is taken to last until one ended undisturbed."""


def make_backlog(files: int) -> list[list[str]]:
    """Files of orders with copies within and across files, malformed lines, and broken rules."""
    rng, backlog = random.Random(SEED), []
    for _ in range(files):
        numbers = [rng.randrange(40 * files) for _ in range(100)]
        rows = [
            {**order(n, amount=float(n % 50 - 1)), "at": f"2026-01-01T{n % 24:02d}:00:00Z"}
            for n in numbers
        ]
        backlog.append([*map(json.dumps, rows), "{broken", "{broken"])
    return backlog


def results(shop: Shop, spark) -> tuple[Counter, Counter, Counts]:
    """Target and quarantine as multisets, and the sum of all reports."""
    return (
        shop.rows(spark),
        shop.rows(spark, "paid__quarantine", ("row", "reasons")),
        count_rows(shop.root, "orders"),
    )


@pytest.mark.timeout(86400)
def test_killed_runs_end_in_the_tables_and_counts_of_a_run_that_was_never_killed(spark, tmp_path):
    rng, kills, length, began = random.Random(SEED), 0, RUN_SECONDS, time.monotonic()
    backlog = make_backlog(KILLS // 2 + 2)
    killed = Shop(tmp_path / "killed", source={"max_files_per_batch": 1})
    waiting = backlog[1:]
    killed.land(*backlog[0])
    while kills < KILLS:
        if waiting and rng.random() < 0.5:  # more arrives all the time, as long as there is more
            killed.land(*waiting.pop(0))
        victim, started = (
            "Python worker" if kills % 20 == 3 else rng.choice(VICTIMS),
            time.monotonic(),
        )
        killed.step["rules"] = [*RULES, IN_PYTHON] if victim == "Python worker" else RULES
        killed.write()
        moment = rng.uniform(0.0, 2.0) if victim == "Python worker" else rng.uniform(0.5, length)
        run = start_run(killed.yaml, killed.root, killed.folder / "run.log")
        if kill_run(run, moment, victim):
            kills += 1
            print(f"kill {kills}: {victim} after {moment:.1f} s", flush=True)
        elif victim != "Python worker" and run.returncode == ExitCode.DONE:
            length = time.monotonic() - started
    for lines in waiting:
        killed.land(*lines)
    drain_here(killed.yaml, killed.root)
    calm = Shop(tmp_path / "calm")
    for lines in backlog:
        calm.land(*lines)
    drain_here(calm.yaml, calm.root)
    found, wanted = results(killed, spark), results(calm, spark)
    print(f"\n{kills} kills, seed {SEED}, {time.monotonic() - began:.0f} s: {found[2].line}")
    assert found[0] == wanted[0]
    assert found[1] == wanted[1]
    assert found[2].balanced and found[2] == wanted[2]
