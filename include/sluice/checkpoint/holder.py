"""Who holds a lease: a run in a process of a machine, and whether that process is still there."""

import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import psutil
from pydantic import BaseModel

from ..errors import ParentLost


def _place() -> str:
    """What process ids mean here: two processes share it when each can see the other (same boot, same container)."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{socket.gethostname()} {int(psutil.boot_time())}"


class Holder(BaseModel):
    """A run that holds (or held) a lease. `started`: of the process, epoch seconds, because process ids are used again."""

    run_id: str
    host: str
    pid: int
    started: float
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
            started=psutil.Process(pid).create_time(),
            place=_place(),
            since=datetime.now(UTC).isoformat(timespec="seconds"),
            nonce=uuid4().hex,
        )

    def is_gone(self) -> bool:
        """True when the process is known to have ended; False when it lives or cannot be seen from here."""
        return self.place == _place() and not is_running(self.pid, self.started)

    def __str__(self) -> str:
        return f"run {self.run_id} (process {self.pid} on {self.host})"


def check_parents(parents: list[tuple[int, float]]) -> None:
    """Raise ParentLost when one of these processes (id, start time) is gone."""
    for pid, started in parents:
        if not is_running(pid, started):
            raise ParentLost(
                "the process that asked for this run is gone, so it stops",
                value=f"process {pid}",
                do="Airflow tries the task again; what was committed is not written twice",
            )


def is_running(pid: int, started: float) -> bool:
    """True while a process of this machine runs that started then (epoch seconds): ids are used again."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and abs(process.create_time() - started) < 1
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
