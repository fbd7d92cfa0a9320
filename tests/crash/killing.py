"""Runs of a pipeline that are killed again and again, while more comes in."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sluice.errors import ExitCode
from sluice.runner import run_pipeline
from sluice.spec import RunRequest
from sluice.verify.runs import VICTIMS, kill_run, start_run

PATIENCE = 600.0
"""Seconds within which an undisturbed run ends."""
MOST = 50
"""Runs that drain a backlog, at most."""


def drain_here(yaml: Path, root: Path) -> int:
    """Run undisturbed in the tests' own session, until nothing is new; returns how many runs that
    took. A process of its own costs ten seconds more, and is no other to what a dead one left.
    """
    for number in range(1, MOST):
        report = run_pipeline(RunRequest(pipeline=str(yaml), root=str(root)))
        report.check()
        if report.exit_code is ExitCode.NOTHING_NEW:
            return number
        assert report.exit_code is ExitCode.DONE, report.error
    raise AssertionError(f"{MOST} runs did not drain {yaml}")


@dataclass
class Killer:
    """Who starts the runs of a pipeline below a folder, and kills them at random moments."""

    chance: random.Random
    yaml: Path
    root: Path

    @property
    def log(self) -> Path:
        """What the newest run printed."""
        return self.root.parent / "run.log"

    def kill(self, kills: int, feed: Callable[[], None]) -> None:
        """Start run after run, each with what `feed` lands, until as many were killed: at any
        moment of as long as the longest undisturbed run took, the first of which dies nowhere."""
        done, length = 0, 0.0
        while done < kills:
            feed()
            began, victim = time.monotonic(), self.chance.choice(VICTIMS)
            run = start_run(self.yaml, self.root, self.log)
            if kill_run(run, self.chance.uniform(2.0, length) if length else PATIENCE, victim):
                done += 1
                print(f"kill {done}: {victim}", flush=True)
            elif run.returncode == ExitCode.DONE:
                length = max(length, time.monotonic() - began)

    def drain(self) -> None:
        """Run undisturbed, until nothing is new."""
        drain_here(self.yaml, self.root)
