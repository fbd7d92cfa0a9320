"""The right to use a checkpoint: one run at a time, on a local disk by exclusive create."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from ..errors import CheckpointBusy, LeaseLost
from ..spec import is_remote

HEARTBEAT_SECONDS = 5.0
EXPIRY_SECONDS = 60.0


def _read(path: Path) -> dict | None:
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None


def _is_dead(path: Path, holder: dict | None) -> bool:
    """True when the holder's process is gone (same host) or its heartbeat stopped long ago."""
    try:
        silent = time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return True
    if holder is None:
        return silent > HEARTBEAT_SECONDS  # its file is being written this very moment
    if holder.get("host") == socket.gethostname() and not Path(f"/proc/{holder['pid']}").exists() and Path("/proc").exists():
        return True
    return silent > EXPIRY_SECONDS


def _take(path: Path, me: dict) -> None:
    for _ in range(3):
        try:
            with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY), "w") as handle:
                json.dump(me, handle)
            return
        except FileExistsError:
            holder = _read(path)
            if not _is_dead(path, holder):
                who = holder or {}
                raise CheckpointBusy(f"run {who.get('run_id', '?')} holds this checkpoint since {who.get('since', '?')} (process {who.get('pid', '?')} on {who.get('host', '?')})",
                                     where=str(path.parent), do="Wait for it to end, or stop it") from None
            # Rename first: of two runs that see the same dead holder, one moves the file and the other finds it gone.
            try:
                os.rename(path, path.with_name(f".lease.{os.getpid()}.{time.monotonic_ns()}.dead"))
            except FileNotFoundError:
                continue
    raise CheckpointBusy("the lease changes hands too fast", where=str(path.parent), do="Try again")


@contextmanager
def hold_lease(checkpoint: str, run_id: str) -> Iterator[Callable[[], None]]:
    """Hold a checkpoint for the length of a block; yields a check that raises LeaseLost once another run took it over.

    Raises CheckpointBusy, saying who holds it and since when. Object stores: the check always passes (the store's own lease is not there yet).
    """
    if is_remote(checkpoint):
        yield lambda: None
        return
    path = Path(checkpoint) / "lease.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    me = {"run_id": run_id, "pid": os.getpid(), "host": socket.gethostname(), "since": datetime.now(UTC).isoformat(timespec="seconds"), "nonce": time.monotonic_ns()}
    _take(path, me)
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(HEARTBEAT_SECONDS):
            if _read(path) == me:
                os.utime(path)

    def check() -> None:
        if _read(path) != me:
            raise LeaseLost("this run's lease was taken over, so it stops before its next write", where=str(path), do="The run that took over goes on from the same place")

    thread = threading.Thread(target=beat, name="lease-heartbeat", daemon=True)
    thread.start()
    try:
        yield check
    finally:
        ended.set()
        thread.join()
        if _read(path) == me:
            path.unlink()
        for dead in path.parent.glob(".lease.*.dead"):
            dead.unlink(missing_ok=True)
