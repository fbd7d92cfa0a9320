"""Kills runs of a pipeline at random moments until its backlog is drained, and compares.

The other side is a run that was never killed. Everything is written below a scratch folder; the
landing folder is only read.
"""

import os
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import ExitCode, SpecError
from ..report import Counts
from ..spec import Pipeline, Step
from .roots import compare_roots, count_rows
from .runs import VICTIMS, drain, kill_run, start_run

_KILLS_A_ROUND = (4, 20)
"""At least and at most, so that a round neither ends at once nor drains its backlog for ever."""
OnKill = Callable[[int, str], None]


@dataclass(frozen=True)
class Outcome:
    """What a torture found.

    `differences`: one sentence a table or count that is not as it is without kills; none means it
    passed.
    """

    kills: int
    runs: int
    rounds: int
    seconds: float
    counts: Counts
    differences: list[str]


@dataclass
class _Torture:
    """One torture under way. `length`: seconds of a run that drains all in peace."""

    spec: Path
    scratch: Path
    rng: random.Random
    length: float
    kills: int = 0
    runs: int = 0

    def kill_for_a_round(self, root: Path, wanted: int, on_kill: OnKill) -> None:
        """Start runs over one root and kill them, then drain what they left."""
        least, most = _KILLS_A_ROUND
        log = self.scratch / "run.log"
        for _ in range(max(least, min(wanted, most))):
            victim = self.rng.choice(VICTIMS)
            moment = self.rng.uniform(0.2, max(self.length, 2.0))
            process = start_run(self.spec, root, log)
            self.runs += 1
            if kill_run(process, moment, victim):
                self.kills += 1
                on_kill(self.kills, f"{victim} after {moment:.1f} s")
            if self.kills == wanted or process.returncode == ExitCode.NOTHING_NEW:
                break
        self.runs += drain(self.spec, root, log)


def torture(
    spec: Path,
    pipeline: Pipeline,
    scratch: Path,
    kills: int,
    seed: int,
    on_kill: OnKill = lambda number, what: None,
) -> Outcome:
    """Drain a pipeline once undisturbed, then again and again with kills, and compare.

    Args:
        spec: the pipeline's file.
        pipeline: what it says.
        scratch: folder for everything that is written; emptied first.
        kills: how many; a round ends when its backlog is drained.
        seed: moments and victims follow from it.
        on_kill: called with the number of each kill and what it was.

    Raises SpecError for a step that writes outside the scratch folder.
    """
    for step in pipeline.steps:
        _check_places(step)
    began = time.monotonic()
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    calm = scratch / "calm"
    started = time.monotonic()
    drain(spec, calm, scratch / "run.log")
    under_way = _Torture(spec, scratch, random.Random(seed), time.monotonic() - started)
    rounds = 0
    differences: list[str] = []
    while under_way.kills < kills and not differences:
        rounds += 1
        killed = scratch / f"killed-{rounds}"
        under_way.kill_for_a_round(killed, kills, on_kill)
        found = compare_roots(pipeline, calm, killed)
        differences = [f"round {rounds}: {difference}" for difference in found]
        if not differences:
            shutil.rmtree(killed)
    counts = count_rows(calm, pipeline.paths().pipeline)
    seconds = time.monotonic() - began
    return Outcome(under_way.kills, under_way.runs, rounds, seconds, counts, differences)


def _check_places(step: Step) -> None:
    """Raise SpecError for a step that writes to a fixed place."""
    target = step.target
    table = target.table if target else None
    fixed: list[str] = [sink.kind for sink in step.further_sinks.values()]
    if target and target.name:
        fixed.append(target.name)
    if table and (os.path.isabs(table) or "://" in table):
        fixed.append(table)
    if fixed:
        raise SpecError(
            "this step writes to a fixed place, and a torture must not",
            where=f"{step.name}: sink",
            value=fixed[0],
            do="Use a table below the root, or a copy of the pipeline without that sink",
        )
