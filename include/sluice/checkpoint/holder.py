"""Who holds a lease: a run in a process of a machine, and whether that process is still there.

psutil is imported where it is asked: an idle check asks nothing of it, and starts a tenth sooner.
"""

import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from pydantic import BaseModel

from ..errors import ParentLost

_PROC = Path("/proc")
_START_TICKS = 19
"""Place of the start time among the fields of /proc/<pid>/stat that follow the process's name."""


def _place() -> str:
    """What process ids mean here.

    Two processes share it when each can see the other: same boot, same container.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        import psutil

        return f"{socket.gethostname()} {int(psutil.boot_time())}"


class Holder(BaseModel):
    """A run that holds (or held) a lease."""

    run_id: str
    host: str
    pid: int
    start: float
    """Of the process, as `start_of` tells it: process ids are used again."""
    place: str
    since: str
    nonce: str
    beats: int = 0
    """Heartbeats so far: a store's own times are too coarse to tell one from the next."""
    released: bool = False

    @classmethod
    def me(cls, run_id: str) -> "Holder":
        """This process, on behalf of a run."""
        pid = os.getpid()
        return cls(
            run_id=run_id,
            host=socket.gethostname(),
            pid=pid,
            start=start_of(pid),
            place=_place(),
            since=datetime.now(UTC).isoformat(timespec="seconds"),
            nonce=uuid4().hex,
        )

    def is_gone(self) -> bool:
        """True when the process is known to have ended; False also where it cannot be seen."""
        return self.place == _place() and not is_running(self.pid, self.start)

    def __str__(self) -> str:
        return f"run {self.run_id} (process {self.pid} on {self.host})"


def check_parents(parents: list[tuple[int, float]]) -> None:
    """Raise ParentLost when one of these processes (id, `start_of`) is gone."""
    for pid, start in parents:
        if not is_running(pid, start):
            raise ParentLost(
                "the process that asked for this run is gone, so it stops",
                value=f"process {pid}",
                do="Airflow tries the task again; what was committed is not written twice",
            )


def is_running(pid: int, start: float) -> bool:
    """True while the process of this machine runs that has this `start_of`: ids are used again."""
    import psutil

    try:
        zombie = psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        return not zombie and abs(start_of(pid) - start) < 1
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def start_of(pid: int) -> float:
    """When a process started, told so that setting the clock does not move it.

    Seconds since boot where the system counts them; else the time of day that it kept from then.
    Raises psutil.NoSuchProcess.
    """
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        import psutil

        return psutil.Process(pid).create_time()
    ticks = stat.rpartition(b")")[2].split()[_START_TICKS]  # a name may hold anything before `)`
    return int(ticks) / os.sysconf("SC_CLK_TCK")
