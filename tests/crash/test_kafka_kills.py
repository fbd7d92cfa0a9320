"""Runs from Kafka to Delta, PostgreSQL and Kafka, killed at random moments.

They write and count every record once. `make crash KAFKA_KILLS=30`.
"""

import os
import random
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from sluice.errors import ExitCode
from sluice.verify.runs import VICTIMS, kill_run, start_run

from tests.crash.kafka_shop import KafkaShop, make_records
from tests.crash.killing import drain_here

KILLS = int(os.environ.get("SLUICE_KAFKA_KILLS", "2"))
SEED = int(os.environ.get("SLUICE_CRASH_SEED", "20260101"))
RUN_SECONDS = 20.0
"""How long a run is taken to last, until one ended undisturbed or came to no batch in that time."""
AT_ONCE = 80
"""Records that are produced together."""


def produce(shop: KafkaShop, rng: random.Random) -> None:
    """Append some records: half of them in transactions, of which some are aborted.

    The marks that end transactions take offsets that no record has.
    """
    shop.produce(make_records(rng, AT_ONCE // 2, 60 * (KILLS + 2)))
    shop.produce(make_records(rng, AT_ONCE // 4, 60 * (KILLS + 2)), transaction=True)
    shop.produce(
        make_records(rng, AT_ONCE // 4, 60 * (KILLS + 2)),
        transaction=True,
        abort=rng.random() < 0.5,
    )


def goes_on(run: subprocess.Popen, seconds: float) -> bool:
    """Whether a run is under way after so many seconds more."""
    with suppress(subprocess.TimeoutExpired):
        run.wait(seconds)
    return run.poll() is None


def wait_for_a_batch(run: subprocess.Popen, shop: KafkaShop) -> None:
    """Wait until the database has one batch more, or the run ended."""
    before = shop.delivered
    while run.poll() is None and shop.delivered == before:
        time.sleep(0.05)


def count_batches(shop: KafkaShop) -> int:
    """Batches that the newest run says it finished."""
    return shop.log.read_text(errors="replace").count(" read = ")


def list_acts(shop: KafkaShop) -> list[tuple[int, Callable[[], None]]]:
    """What people do to the sinks meanwhile, and after how many kills.

    One refuses rows for good and is mended, and (in a long test, where that is apart in time) is
    away and comes back; another is added and filled.
    """
    pairs = [(shop.refuse_some, shop.accept_all), (shop.add_sink, shop.fill_sink)]
    if KILLS >= 6:
        pairs.append((shop.postgres.stop, shop.postgres.start))
    acts = []
    for number, (begin, end) in enumerate(pairs):
        first = 1 + number * (KILLS - 1) // len(pairs)
        acts += [(first, begin), (first + max(1, KILLS // 6), end)]
    return sorted(acts, key=lambda act: act[0])


@pytest.mark.timeout(86400)
def test_killed_runs_from_kafka_lose_and_double_nothing_in_delta_postgresql_and_kafka(
    spark, kafka_broker, postgres, tmp_path, monkeypatch
):
    monkeypatch.setenv("PG_PASSWORD", postgres.password)
    rng, kills, runs, length, began = random.Random(SEED), 0, 0, RUN_SECONDS, time.monotonic()
    shop = KafkaShop(tmp_path, kafka_broker, postgres, "killed", max_offsets_per_batch=AT_ONCE)
    produce(shop, rng)
    acts = list_acts(shop)
    while kills < KILLS:
        while acts and acts[0][0] <= kills:
            acts.pop(0)[1]()
        if runs % 2:
            produce(shop, rng)
        run, started, runs = start_run(shop.yaml, shop.root, shop.log), time.monotonic(), runs + 1
        victim, moment = rng.choice(VICTIMS), rng.uniform(1.0, length)
        if runs % 2 == 0:  # between the sinks of a batch, or soon after them
            wait_for_a_batch(run, shop)
            moment = time.monotonic() - started + rng.uniform(0.0, 2.0)
        if runs % 2 and goes_on(run, rng.uniform(0.0, moment)):  # more arrives while it goes on
            produce(shop, rng)
        if kill_run(run, max(0.0, started + moment - time.monotonic()), victim):
            kills += 1
            print(
                f"kill {kills}: {victim} after {moment:.1f} s, {count_batches(shop)} batches",
                flush=True,
            )
            length = length if count_batches(shop) else max(length, 1.5 * moment)
        elif run.returncode == ExitCode.DONE:
            length = time.monotonic() - started
    for _, act in acts:
        act()
    runs += drain_here(shop.yaml, shop.root)
    assert shop.differences(spark) == []
    print(
        f"\n{kills} kills in {runs} runs, seed {SEED}, {time.monotonic() - began:.0f} s: "
        f"{shop.counts.line}; {len(shop.truth.good)} rows in Delta, PostgreSQL and Kafka, "
        f"{shop.replayed} batches replayed, {shop.sent_again} records sent again",
        flush=True,
    )
