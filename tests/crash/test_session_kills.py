"""Runs of a step with a state of the user's own that are killed at random moments.
`make crash SESSION_KILLS=100`.

They end in the sessions that plain Python finds in all hits.
"""

import os
import random
import time

import pytest
from sluice.errors import ExitCode
from sluice.verify.roots import count_rows
from sluice.verify.runs import drain, kill_run, start_run

from tests.spark.factories import Project
from tests.spark.sessions import COLUMNS, ROWS, SOURCE, STEP, Hit, find_sessions, lines

KILLS = int(os.environ.get("SLUICE_SESSION_KILLS", "3"))
SEED = int(os.environ.get("SLUICE_CRASH_SEED", "20260101"))
VICTIMS = ("driver", "JVM")


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


@pytest.mark.timeout(86400)
def test_sessions_that_are_killed_again_and_again_are_the_sessions_of_all_hits(spark, tmp_path):
    chance, kills, length = random.Random(SEED), 0, 12.0
    visitors, shop = Visitors(chance), Project(spark, tmp_path, SOURCE, STEP)
    (tmp_path / "t.py").write_text(ROWS)
    yaml, root, log = shop.write(), tmp_path / "root", tmp_path / "run.log"
    while kills < KILLS:
        for _ in range(chance.randint(1, 2)):
            shop.land(f"{shop.landed:04}.json", lines(*visitors.make()))
        began, victim = time.monotonic(), chance.choice(VICTIMS)
        run = start_run(yaml, root, log)
        if kill_run(run, chance.uniform(2.0, length), victim):
            kills += 1
            print(f"kill {kills}: {victim}", flush=True)
        elif run.returncode == ExitCode.DONE:
            length = time.monotonic() - began
    drain(yaml, root, log)
    shop.land("last.json", lines(("last", "/", visitors.clock + 10_000)))
    drain(yaml, root, log)
    told = count_rows(root, "p")
    print(f"{kills} kills, seed {SEED}: {told.line}")
    assert shop.rows(*COLUMNS) == find_sessions(visitors.hits)
    assert told.balanced and told.late == 0
