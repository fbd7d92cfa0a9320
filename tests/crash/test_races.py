"""Two runs at once, again and again: on one checkpoint, and on one table.

`SLUICE_RACES` says how many races are run.
"""

import os
import random
import time
from collections import Counter
from pathlib import Path

import pytest
from sluice.errors import ExitCode
from sluice.report import list_reports
from sluice.spec import RunRequest, Window
from sluice.verify.roots import count_rows

from tests.crash.racer import Racer
from tests.spark.shop import Shop, order

RACES = int(os.environ.get("SLUICE_RACES", "3"))
SEED = int(os.environ.get("SLUICE_CRASH_SEED", "20260101"))
WHOLE = Window(start="2026-01-01", end="2026-02-01")


def schedule(shop: Shop) -> RunRequest:
    """A run of what is new."""
    return RunRequest(pipeline=str(shop.yaml), root=str(shop.root))


def backfill(shop: Shop) -> RunRequest:
    """A run of everything, through a checkpoint of its own."""
    return RunRequest(pipeline=str(shop.yaml), root=str(shop.root), window=WHOLE)


def race_cleared_task(shop: Shop, rng: random.Random, first: Racer, second: Racer) -> str:
    """A second run starts while the first is under way: one works, the other is told to wait.

    Returns how they ended, as all races do.
    """
    first.start(schedule(shop))
    time.sleep(rng.uniform(0.0, first.length))  # the moment is what is drawn
    second.start(schedule(shop))
    ended = first.wait(), second.wait()
    assert set(ended) <= {ExitCode.DONE, ExitCode.NOTHING_NEW, ExitCode.TRANSIENT}
    return "one was told to wait" if ExitCode.TRANSIENT in ended else "one after the other"


def race_backfill_beside_schedule(
    shop: Shop, rng: random.Random, first: Racer, second: Racer
) -> str:
    """A backfill of everything beside the schedule: both end well, because they take turns."""
    requests = [schedule(shop), backfill(shop)]
    rng.shuffle(requests)
    first.start(requests[0])
    time.sleep(rng.uniform(0.0, first.length))  # the moment is what is drawn
    overlapped = first.is_running()
    second.start(requests[1])
    assert {first.wait(), second.wait()} <= {ExitCode.DONE, ExitCode.NOTHING_NEW}, (
        first.log.read_text()[-3000:]
    )
    return "both wrote, in turns" if overlapped else "one after the other"


def race_zombie(shop: Shop, rng: random.Random, first: Racer, second: Racer) -> str:
    """A frozen run is taken over by another, which drains; when it wakes it must write no more."""
    first.start(schedule(shop))
    if not first.is_running(rng.uniform(0.0, first.length)):
        first.wait()
        return "ended before it could be frozen"
    first.freeze()
    deadline = time.monotonic() + 300
    second.start(schedule(shop))
    while second.wait() not in (ExitCode.DONE, ExitCode.NOTHING_NEW):
        assert time.monotonic() < deadline, second.log.read_text()[-3000:]
        time.sleep(0.5)  # until the lease expires
        second.start(schedule(shop))
    first.wake()
    return (
        "outranked"
        if first.wait() is ExitCode.TRANSIENT
        else "frozen before it held the lease or after its report"
    )


RUN = {
    "cleared task": race_cleared_task,
    "backfill beside schedule": race_backfill_beside_schedule,
    "zombie": race_zombie,
}


def land(shop: Shop, rng: random.Random) -> list[dict]:
    """Two files with copies within and across them."""
    rows = [order(n, amount=float(n % 7 - 1)) for n in (rng.randrange(20) for _ in range(40))]
    shop.land(*rows[:20])
    shop.land(*rows[20:])
    return rows


def drain(shop: Shop, racer: Racer) -> None:
    """Run until nothing is new."""
    for _ in range(5):
        racer.start(schedule(shop))
        if racer.wait() is ExitCode.NOTHING_NEW:
            return
    raise AssertionError(f"the runs never came to an end:\n{racer.log.read_text()[-3000:]}")


def check(shop: Shop, spark, rows: list[dict], kind: str) -> None:
    """One row a key in the target and in quarantine, and reports that say so."""
    good, refused = (
        {row["order_id"] for row in rows if (row["amount"] >= 0) is wanted}
        for wanted in (True, False)
    )
    assert shop.rows(spark, "paid", ("order_id",)) == Counter((key,) for key in good)
    assert sum(shop.rows(spark, "paid__quarantine", ("_row_hash",)).values()) == len(refused)
    counts = count_rows(shop.root, "orders")
    assert all(report.counts.balanced for report in list_reports(shop.root / "reports" / "orders"))
    assert (counts.written, counts.quarantined) == (len(good), len(refused))
    assert kind == "backfill beside schedule" or counts.read == len(rows)


@pytest.fixture
def racers(tmp_path):
    """Two processes that have run before: their sessions are up, and how long a run takes is
    known."""
    pair = [Racer(tmp_path / f"racer-{number}.log") for number in range(2)]
    calm = [Shop(tmp_path / f"calm-{number}") for number in range(2)]
    try:
        for number in range(2):  # the first run waits for the session, the second is as any later
            for racer, shop in zip(pair, calm, strict=True):
                shop.land(order(number))
                racer.start(schedule(shop))
            assert [racer.wait() for racer in pair] == [ExitCode.DONE] * 2
        yield pair
    finally:
        for racer in pair:
            racer.end()


@pytest.mark.timeout(86400)
def test_two_runs_at_once_neither_lose_nor_double_nor_miscount_a_row(spark, racers, tmp_path: Path):
    rng, began, ended = random.Random(SEED), time.monotonic(), Counter()
    for number in range(RACES):
        kind = list(RUN)[number % len(RUN)]
        shop = Shop(tmp_path / str(number), source={"max_files_per_batch": 1})
        rows = land(shop, rng)
        ended[kind, RUN[kind](shop, rng, *racers)] += 1
        drain(shop, racers[number % 2])
        check(shop, spark, rows, kind)
        print(f"race {number + 1} ({kind}) after {time.monotonic() - began:.0f} s: ok", flush=True)
    print(
        f"{RACES} races, seed {SEED}: "
        + ", ".join(f"{number} {kind}: {how}" for (kind, how), number in sorted(ended.items())),
        flush=True,
    )
