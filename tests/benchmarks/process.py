"""Runs a command and counts the CPU of everything it started.

PySpark does not wait for its JVM, so an ordinary timer misses most of it: here every descendant is
adopted and waited for (Linux).
"""

import ctypes
import os
import resource
import subprocess
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import psutil

_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>


def cpu_seconds(command: list[str], log: Path, servers: Collection[int] = ()) -> float:
    """CPU seconds (user + system) of a command and all its descendants.

    Raises CalledProcessError when it fails.

    Args: servers: process ids of children of ours that go on and are not counted.
    """
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        code = process.wait()
    reap_descendants(servers)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code not in (0, 3):
        raise subprocess.CalledProcessError(
            code, command, output=log.read_text(errors="replace")[-2000:]
        )
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def reap_descendants(servers: Collection[int] = ()) -> None:
    """Wait for every adopted process, so that its time is counted now and not in the next turn."""
    while ended := {child.pid for child in psutil.Process().children()} - set(servers):
        for pid in ended:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
