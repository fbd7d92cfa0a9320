"""Runs of a pipeline as processes of their own: started, killed, drained."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import psutil

from ..errors import ExitCode, TransientError

Victim = Literal["driver and JVM", "driver", "JVM", "Python worker"]
VICTIMS: tuple[Victim, ...] = ("driver and JVM", "driver", "JVM")
"""Those that every run has; Spark starts Python workers only for rules evaluated in Python."""
_RETRIES = 5


def start_run(spec: Path, root: Path, log: Path) -> subprocess.Popen:
    """Start `sluice run` in a process group of its own; what it prints goes to a file."""
    command = [sys.executable, "-m", "sluice.cli", "run", "--spec", str(spec), "--root", str(root)]
    with log.open("wb") as output:
        return subprocess.Popen(
            command, start_new_session=True, stdout=output, stderr=subprocess.STDOUT
        )


def kill_run(process: subprocess.Popen, after: float, victim: Victim) -> bool:
    """Kill a run, or one of its processes, and wait until all of it ended.

    Args:
        process: what `start_run` returned.
        after: seconds since the run, or its Python worker, started.
        victim: whom to kill.

    Returns False when the run ended by itself before.
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
    """The processes to kill, and all that belong to the run.

    A run whose JVM has not started yet has only its driver.
    """
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
    """Run until nothing is new; returns how many runs that took.

    Raises TransientError with the end of the log when runs keep failing.
    """
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
