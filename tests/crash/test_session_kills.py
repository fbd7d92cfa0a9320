"""Runs of a step with a state of the user's own that are killed at random moments.
`make crash SESSION_KILLS=100`.

They end in the sessions that plain Python finds in all hits.
"""

import os
import random

import pytest
from sluice.verify.roots import count_rows

from tests.crash.killing import Killer
from tests.spark.factories import Project
from tests.spark.sessions import COLUMNS, ROWS, SOURCE, STEP, Hit, find_sessions, lines

KILLS = int(os.environ.get("SLUICE_SESSION_KILLS", "0"))
SEED = int(os.environ.get("SLUICE_CRASH_SEED", "20260101"))


class Visitors:
    """Hits of visitors, none of them behind the watermark."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.clock = chance, 0.0
        self.hits: list[Hit] = []

    def make(self) -> list[Hit]:
        """Thirty more."""
        new = []
        for _ in range(30):
            self.clock += self.chance.random() * 8
            name = self.chance.choice([None, *"abcdefgh"])
            new.append((name, self.chance.choice("/xyz"), self.clock - self.chance.random() * 5))
        self.hits += new
        return new


@pytest.mark.skipif(not KILLS, reason="`make crash` kills these")
@pytest.mark.timeout(86400)
def test_sessions_that_are_killed_again_and_again_are_the_sessions_of_all_hits(spark, tmp_path):
    chance = random.Random(SEED)
    visitors, shop = Visitors(chance), Project(spark, tmp_path, SOURCE, STEP)
    (tmp_path / "t.py").write_text(ROWS)
    killer = Killer(chance, shop.write(), tmp_path / "root")

    def feed() -> None:
        for _ in range(chance.randint(1, 2)):
            shop.land(f"{shop.landed:04}.json", lines(*visitors.make()))

    killer.kill(KILLS, feed)
    killer.drain()
    shop.land("last.json", lines(("last", "/", visitors.clock + 10_000)))
    killer.drain()
    told = count_rows(killer.root, "p")
    print(f"{KILLS} kills, seed {SEED}: {told.line}")
    assert shop.rows(*COLUMNS) == find_sessions(visitors.hits)
    assert told.balanced and told.late == 0
