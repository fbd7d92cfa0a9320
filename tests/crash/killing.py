"""Runs of a pipeline that are killed again and again, while more comes in."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sluice.errors import ExitCode
from sluice.verify.runs import VICTIMS, drain, kill_run, start_run

PATIENCE = 600.0
"""Seconds within which an undisturbed run ends."""


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
        drain(self.yaml, self.root, self.log)
