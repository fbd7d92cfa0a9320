"""Kills runs of a pipeline at random moments until its backlog is drained, and compares what they wrote with a run that was never killed.

Everything is written below a scratch folder; the landing folder is only read.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from ..errors import ExitCode, SpecError, TransientError
from ..report import Counts, list_reports
from ..spec import Pipeline
from ..storage import Paths

Victim = Literal["driver and JVM", "driver", "JVM", "Python worker"]
VICTIMS: tuple[Victim, ...] = ("driver and JVM", "driver", "JVM")
"""Those that every run has; Spark starts Python workers only for rules that are evaluated in Python."""
_RETRIES = 5


@dataclass(frozen=True)
class Outcome:
    """What a torture found. `differences`: one sentence a table or count that is not as it is without kills; none means it passed."""

    kills: int
    runs: int
    rounds: int
    seconds: float
    counts: Counts
    differences: list[str]


def start_run(spec: Path, root: Path, log: Path) -> subprocess.Popen:
    """Start `sluice run` in a process group of its own; what it prints goes to a file."""
    command = [sys.executable, "-m", "sluice.cli", "run", "--spec", str(spec), "--root", str(root)]
    with log.open("wb") as output:
        return subprocess.Popen(
            command, start_new_session=True, stdout=output, stderr=subprocess.STDOUT
        )


def kill_run(process: subprocess.Popen, after: float, victim: Victim) -> bool:
    """Kill a run, or one of its processes, some seconds after it (or its Python worker) started, and wait until all of it ended.

    False when it ended by itself before.
    """
    while (
        victim == "Python worker"
        and process.poll() is None
        and not _find_victims(process, victim)[0]
    ):
        time.sleep(0.05)  # until a rule needs one
    try:
        process.wait(after)
        return False
    except subprocess.TimeoutExpired:
        victims, family = _find_victims(process, victim)
        for each in victims:
            try:
                each.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:
                continue
        process.wait(600)
        psutil.wait_procs(family, 60)  # the JVM of a dead driver ends by itself
        return bool(victims)


def _find_victims(
    process: subprocess.Popen, victim: Victim
) -> tuple[list[psutil.Process], list[psutil.Process]]:
    """The processes to kill, and all that belong to the run. A run whose JVM has not started yet has only its driver."""
    driver = psutil.Process(process.pid)
    family = driver.children(recursive=True)
    java = [child for child in family if "".join(_command(child)[:1]).endswith("java")]
    if victim == "Python worker":
        return [child for child in family if "pyspark.daemon" in _command(child)], family
    return {"JVM": java or [driver], "driver": [driver], "driver and JVM": [driver, *family]}[
        victim
    ], family


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def drain(spec: Path, root: Path, log: Path) -> int:
    """Run until nothing is new; returns how many runs that took. Raises TransientError with the end of the log when runs keep failing."""
    failures = 0
    for number in range(1, 10_000):
        code = start_run(spec, root, log).wait()
        if code == ExitCode.NOTHING_NEW:
            return number
        failures = failures + 1 if code != ExitCode.DONE else 0
        if failures > _RETRIES:
            break
    raise TransientError(
        f"the backlog was not drained: the last run ended with {code}",
        where=str(spec),
        value=log.read_text(errors="replace")[-2000:],
        do="Run the pipeline by hand and mend what it says",
    )


def torture(
    spec: Path,
    pipeline: Pipeline,
    scratch: Path,
    kills: int,
    seed: int,
    on_kill: Callable[[int, str], None] = lambda number, what: None,
) -> Outcome:
    """Drain a pipeline once undisturbed, then again and again with kills, and compare; a round ends when its backlog is drained.

    Raises SpecError for a step that writes outside the scratch folder.
    """
    for step in pipeline.steps:
        fixed = [sink.kind for sink in step.further_sinks]
        if (
            fixed
            or step.target.name
            or (
                step.target.table
                and (os.path.isabs(step.target.table) or "://" in step.target.table)
            )
        ):
            raise SpecError(
                "this step writes to a fixed place, and a torture must not",
                where=f"{step.name}: sink",
                value=fixed or step.target.name or step.target.table,
                do="Use a table below the root, or a copy of the pipeline without that sink",
            )
    began, rng, done, runs, rounds, differences = time.monotonic(), random.Random(seed), 0, 0, 0, []
    calm, log = scratch / "calm", scratch / "run.log"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    started = time.monotonic()
    drain(spec, calm, log)
    length = time.monotonic() - started
    while done < kills:
        killed, rounds = scratch / f"killed-{rounds + 1}", rounds + 1
        for _ in range(max(4, min(kills, 20))):
            victim, moment = rng.choice(VICTIMS), rng.uniform(0.2, max(length, 2.0))
            process, runs = start_run(spec, killed, log), runs + 1
            if kill_run(process, moment, victim):
                done += 1
                on_kill(done, f"{victim} after {moment:.1f} s")
            if done == kills or process.returncode == ExitCode.NOTHING_NEW:
                break
        runs += drain(spec, killed, log)
        differences += [
            f"round {rounds}: {difference}" for difference in compare_roots(pipeline, calm, killed)
        ]
        if differences:
            break
        shutil.rmtree(killed)
    return Outcome(
        done, runs, rounds, time.monotonic() - began, count_rows(calm, pipeline.name), differences
    )


def count_rows(root: Path, pipeline: str) -> Counts:
    """The sum of all reports below a root."""
    return sum(
        (report.counts for report in list_reports(Paths.under(root, pipeline).reports())), Counts()
    )


def compare_roots(pipeline: Pipeline, calm: Path, killed: Path) -> list[str]:
    """Everything in which two roots differ: rows of the tables as multisets, and the counts of the reports."""
    from .compare import compare_tables

    wanted, found = count_rows(calm, pipeline.name), count_rows(killed, pipeline.name)
    differences = (
        [] if found == wanted else [f"the reports say {found.line}, without kills {wanted.line}"]
    )
    differences += [
        f"{report.run_id} does not balance: {report.counts.line}"
        for report in list_reports(Paths.under(killed, pipeline.name).reports())
        if not report.counts.balanced
    ]
    pairs = []
    for step in pipeline.steps:
        for path in (
            lambda p, s=step: s.target_path(p),
            lambda p, s=step: p.quarantine(s.name),
            lambda p, s=step: p.late(s.name),
        ):
            pairs.append(
                (path(Paths.under(calm, pipeline.name)), path(Paths.under(killed, pipeline.name)))
            )
    return differences + compare_tables(pairs, pipeline)
