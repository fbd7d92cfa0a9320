"""What a run cost so far."""

import os
import time

import psutil


def measure_cost() -> tuple[float, float]:
    """Seconds since the process tree started, and the CPU seconds of all of it.

    PySpark does not wait for its JVM, so the JVM is counted while it lives: as a child of Python,
    or as the parent when spark-submit started Python.
    """
    root = psutil.Process(os.getpid())
    parent = root.parent()
    if parent is not None and "java" in parent.name():
        root = parent
    total = 0.0
    for process in [root, *root.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += (
            times.user
            + times.system
            + getattr(times, "children_user", 0.0)
            + getattr(times, "children_system", 0.0)
        )
    return round(time.time() - root.create_time(), 2), round(total, 2)
