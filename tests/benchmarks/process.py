"""Runs a command and counts the CPU of everything it started.

PySpark does not wait for its JVM, so an ordinary timer misses most of it: here every descendant is
adopted and waited for (Linux).
"""

import ctypes
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>


@dataclass(frozen=True)
class Cost:
    """Of a command and all its descendants: CPU seconds (user + system), seconds from its start to
    the end of the command itself, and the most memory at a time, bytes."""

    cpu: float
    wall: float
    peak: int


def run_measured(command: list[str], log: Path, servers: Collection[int] = ()) -> Cost:
    """Run a command to its end. Raises CalledProcessError when it fails.

    Args: servers: process ids of children of ours that go on and are not counted.
    """
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with log.open("ab") as output, watch_memory(servers) as most:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        code = process.wait()
        wall = time.monotonic() - began
        reap_descendants(servers)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code not in (0, 3):
        raise subprocess.CalledProcessError(
            code, command, output=log.read_text(errors="replace")[-2000:]
        )
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(cpu, wall, most[0])


def run_sluice(
    verb: str,
    spec: Path,
    root: Path,
    log: Path,
    servers: Collection[int] = (),
    more: Sequence[str] = (),
) -> Cost:
    """Run `sluice run` or `sluice plan` of a pipeline over a root, in a process of its own.

    Args: more: arguments beside those.
    """
    command = [sys.executable, "-m", "sluice.cli", verb, "--spec", str(spec), "--root", str(root)]
    return run_measured([*command, *more], log, servers)


@contextmanager
def watch_memory(servers: Collection[int], every: float = 0.3) -> Iterator[list[int]]:
    """Look after the memory of all descendants; yields a list that holds the most there was so far,
    bytes. Of pages that several hold each counts its part: a process that is just being forked off
    does not double them."""
    most, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(every):
            total = 0
            for process in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    total += 0 if process.pid in servers else process.memory_full_info().pss
            most[0] = max(most[0], total)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


def reap_descendants(servers: Collection[int] = ()) -> None:
    """Wait for every adopted process, so that its time is counted now and not in the next turn."""
    while ended := {child.pid for child in psutil.Process().children()} - set(servers):
        for pid in ended:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
