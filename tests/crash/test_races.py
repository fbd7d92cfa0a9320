"""Two runs at once, again and again: on one checkpoint, and on one table. `SLUICE_RACES` says how many races are run."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from sluice.errors import ExitCode
from sluice.report import list_reports
from sluice.torture import count_rows, drain

from tests.spark.shop import Shop, order

RACES = int(os.environ.get("SLUICE_RACES", "3"))
SEED = int(os.environ.get("SLUICE_CRASH_SEED", "20260101"))
KINDS = ("cleared task", "backfill beside schedule", "zombie")
ENVIRONMENT = {**os.environ, "SLUICE_LEASE_SECONDS": "3"}


def start(shop: Shop, *verb: str) -> subprocess.Popen:
    """A command of `sluice` on the shop's pipeline, in a process group of its own."""
    command = [sys.executable, "-m", "sluice.cli", *verb, "--spec", str(shop.yaml), "--root", str(shop.root)]
    with (shop.folder / "run.log").open("ab") as log:
        return subprocess.Popen(command, start_new_session=True, stdout=log, stderr=subprocess.STDOUT, env=ENVIRONMENT)


def race_cleared_task(shop: Shop, rng: random.Random) -> str:
    """A second run starts while the first is under way: one of them works, the other is told to wait. Returns how they ended, as all races do."""
    first = start(shop, "run")
    time.sleep(rng.uniform(0.0, 6.0))  # the moment is what is drawn
    second = start(shop, "run")
    ended = first.wait(600), second.wait(600)
    assert set(ended) <= {ExitCode.DONE, ExitCode.NOTHING_NEW, ExitCode.TRANSIENT}
    return "one was told to wait" if ExitCode.TRANSIENT in ended else "one after the other"


def race_backfill_beside_schedule(shop: Shop, rng: random.Random) -> str:
    """A backfill of everything beside the schedule: both end well, because they take turns."""
    verbs = [("run",), ("backfill", "--from", "2026-01-01", "--to", "2026-02-01")]
    rng.shuffle(verbs)
    first = start(shop, *verbs[0])
    time.sleep(rng.uniform(0.0, 4.0))  # the moment is what is drawn
    second = start(shop, *verbs[1])
    overlapped = first.poll() is None
    assert {first.wait(600), second.wait(600)} <= {ExitCode.DONE, ExitCode.NOTHING_NEW}, (shop.folder / "run.log").read_text()[-3000:]
    return "both wrote, in turns" if overlapped else "one after the other"


def race_zombie(shop: Shop, rng: random.Random) -> str:
    """A run is frozen, another takes over and drains, and the first wakes up: it must not write any more."""
    frozen = start(shop, "run")
    try:
        frozen.wait(rng.uniform(1.0, 10.0))
        return "it ended before it could be frozen"
    except subprocess.TimeoutExpired:
        os.killpg(frozen.pid, signal.SIGSTOP)
    deadline = time.monotonic() + 300
    while start(shop, "run").wait(600) not in (ExitCode.DONE, ExitCode.NOTHING_NEW):
        assert time.monotonic() < deadline, (shop.folder / "run.log").read_text()[-3000:]
    os.killpg(frozen.pid, signal.SIGCONT)
    return "outranked" if frozen.wait(600) == ExitCode.TRANSIENT else "frozen before it held the lease or after its report"


RUN = {"cleared task": race_cleared_task, "backfill beside schedule": race_backfill_beside_schedule, "zombie": race_zombie}


def land(shop: Shop, rng: random.Random) -> list[dict]:
    """Three files with copies within and across them."""
    rows = [order(n, amount=float(n % 7 - 1)) for n in (rng.randrange(30) for _ in range(60))]
    for part in (rows[:20], rows[20:40], rows[40:]):
        shop.land(*part)
    return rows


def check(shop: Shop, spark, rows: list[dict], kind: str) -> None:
    """One row a key in the target and in quarantine, and reports that say so."""
    drain(shop.yaml, shop.root, shop.folder / "drain.log")
    good, refused = ({row["order_id"] for row in rows if (row["amount"] >= 0) is wanted} for wanted in (True, False))
    assert shop.rows(spark, "paid", ("order_id",)) == Counter((key,) for key in good)
    assert sum(shop.rows(spark, "paid__quarantine", ("_row_hash",)).values()) == len(refused)
    counts = count_rows(shop.root, "orders")
    assert all(report.counts.balanced for report in list_reports(shop.root / "reports" / "orders"))
    assert (counts.written, counts.quarantined) == (len(good), len(refused))
    assert kind == "backfill beside schedule" or counts.read == len(rows)


@pytest.mark.timeout(86400)
def test_two_runs_at_once_neither_lose_nor_double_nor_miscount_a_row(spark, tmp_path: Path):
    rng, began, ended = random.Random(SEED), time.monotonic(), Counter()
    for number in range(RACES):
        kind = KINDS[number % len(KINDS)]
        shop = Shop(tmp_path / str(number), source={"max_files_per_batch": 1})
        rows = land(shop, rng)
        ended[kind, RUN[kind](shop, rng)] += 1
        check(shop, spark, rows, kind)
        print(f"race {number + 1} ({kind}) after {time.monotonic() - began:.0f} s: ok", flush=True)
    print(f"{RACES} races, seed {SEED}: {', '.join(f'{number} {kind}: {how}' for (kind, how), number in sorted(ended.items()))}", flush=True)
