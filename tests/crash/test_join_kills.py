"""Runs of a join of two streams that are killed at random moments. `make crash JOIN_KILLS=100`.

They end in what a query over all of the rows gives.
"""

import os
import random
from collections import Counter

import pytest
from sluice.verify.roots import count_rows

from tests.crash.killing import Killer
from tests.spark.several import Ads, clicked, shown

KILLS = int(os.environ.get("SLUICE_JOIN_KILLS", "0"))
SEED = int(os.environ.get("SLUICE_CRASH_SEED", "20260101"))
COLUMNS = ("ad", "id", "at", "clicked")


def feed(ads: Ads, chance: random.Random, clock: dict[str, float]) -> None:
    """New rows of one input or of both, none behind the watermark of the slower one."""
    for name in chance.choice([["impressions"], ["clicks"], ["impressions", "clicks"]]):
        make = shown if name == "impressions" else clicked
        clock[name] = max(clock[name], min(clock.values())) + chance.random() * 20
        rows = [make(chance.randint(1, 20), clock[name] - chance.random() * 5) for _ in range(30)]
        ads.land(name, *rows)


@pytest.mark.skipif(not KILLS, reason="`make crash` kills these")
@pytest.mark.timeout(86400)
def test_a_join_that_is_killed_again_and_again_is_the_join_of_all_rows(spark, tmp_path):
    chance = random.Random(SEED)
    ads, clock = Ads(tmp_path), dict.fromkeys(("impressions", "clicks"), 0.0)
    killer = Killer(chance, tmp_path / "ads.yaml", tmp_path / "root")
    killer.kill(KILLS, lambda: feed(ads, chance, clock))
    killer.drain()
    for name, make in (("impressions", shown), ("clicks", clicked)):
        ads.land(name, make("last", 100_000))
    killer.drain()
    expected = Counter({r: n for r, n in ads.expected(spark, *COLUMNS).items() if "last" not in r})
    found = Counter({r: n for r, n in ads.rows(spark, *COLUMNS).items() if "last" not in r})
    told = count_rows(killer.root, "ads")
    print(f"{KILLS} kills, seed {SEED}: {told.line}")
    assert found == expected
    assert told.balanced and told.late == 0
