"""The right to use a checkpoint or to commit to a table: one run at a time, with a number that
outranks every earlier holder's.

A claim is a numbered file, created exclusively. The highest number holds; its holder writes it
again at every heartbeat and marks it when it lets go. A run that comes next claims the next number:
at once where the holder let go or its process is known to have ended, otherwise only after it was
silent for as long as a lease lasts and stayed silent for two heartbeats more (where the clock was
set back since its last one: for as long as a lease lasts, while it is watched). Before each write a
holder looks whether a higher number is there.
"""

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from ..errors import CheckpointBusy, LeaseLost
from ..storage import lease_folder
from .holder import Holder
from .lease_store import Claim, LeaseStore, open_leases

_log = logging.getLogger(__name__)

LEASE_SECONDS = float(os.environ.get("SLUICE_LEASE_SECONDS", "60"))
"""How long a silent holder keeps its right."""
BEATS = 12
"""Heartbeats in that time."""


class Lease:
    """A held lease. `number`: the fencing number."""

    def __init__(self, where: str, store: LeaseStore, number: int, me: Holder) -> None:
        self.where, self.store, self.number, self.me = where, store, number, me
        self.lost = False
        """Set by the heartbeat once another run took over."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="lease-heartbeat", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Look whether the right is still ours.

        Raises LeaseLost; an unreachable store raises what it raises.
        """
        newest = self.store.newest()
        if (
            newest is None
            or newest.number != self.number
            or newest.holder is None
            or newest.holder.nonce != self.me.nonce
        ):
            self.lost = True
        self.raise_if_lost()

    def raise_if_lost(self) -> None:
        """Raise LeaseLost when it is known that another run took over; asks nobody."""
        if self.lost:
            raise LeaseLost(
                "this run's lease was taken over, so it stops before its next write",
                where=self.where,
                value=f"number {self.number}",
                do="Nothing: the run that took over goes on from the same place",
            )

    def _beat(self) -> None:
        while not self._ended.wait(LEASE_SECONDS / BEATS):
            try:
                self.check()
                self.me.beats += 1
                self.store.write(self.number, self.me.model_dump_json())
            except LeaseLost:
                return
            except Exception as error:  # noqa: BLE001 (a store that is away for a moment must not end the heartbeat)
                _log.warning(
                    "%s: the lease's heartbeat failed and is tried again: %s", self.where, error
                )

    def release(self) -> None:
        """Let go, so that the next run need not wait."""
        self._ended.set()
        self._thread.join()
        try:
            self.check()
            self.store.write(
                self.number, self.me.model_copy(update={"released": True}).model_dump_json()
            )
        except LeaseLost:
            return
        except Exception as error:  # noqa: BLE001 (what the run did stands; the lease then expires by itself)
            _log.warning(
                "%s: the lease could not be let go of and expires by itself: %s", self.where, error
            )


def _is_free(store: LeaseStore, claim: Claim) -> bool:
    """True when the number after this claim may be claimed."""
    if claim.holder is not None and (claim.holder.released or claim.holder.is_gone()):
        return True
    if -LEASE_SECONDS <= claim.silent <= LEASE_SECONDS:
        return False
    # Clocks jump and machines sleep: a holder that is there after all beats within this time. One
    # whose last beat is yet to come says nothing of how long it is silent, so that is waited for.
    time.sleep(LEASE_SECONDS if claim.silent < 0 else 2 * LEASE_SECONDS / BEATS)
    again = store.newest()
    return again is not None and (again.number, again.beat) == (claim.number, claim.beat)


def _take(store: LeaseStore, me: Holder) -> int | Claim:
    """Claim the next number; the claim that stands in the way where there is one."""
    while True:
        claim = store.newest()
        if claim is not None and not _is_free(store, claim):
            return claim
        number = claim.number + 1 if claim else 1
        if store.create(number, me.model_dump_json()):
            newest = store.newest()
            if (
                newest is not None and newest.number == number
            ):  # else a run that looked too long ago claimed an old number
                store.remove_below(number)
                return number


@contextmanager
def hold_lease(folder: str, run_id: str, wait: float = 0.0) -> Iterator[Lease]:
    """Hold the lease of a folder for the length of a block.

    Args:
        folder: where its claims lie (path or `s3a://` prefix).
        run_id: on whose behalf.
        wait: seconds to wait for a turn.

    Raises CheckpointBusy, saying who holds it and since when.
    """
    store, me, deadline = open_leases(folder), Holder.me(run_id), time.monotonic() + wait
    while isinstance(taken := _take(store, me), Claim):
        if time.monotonic() >= deadline:
            holder = taken.holder
            raise CheckpointBusy(
                f"{holder or 'an unknown run'} holds it since {holder.since if holder else '?'} "
                f"(number {taken.number}, last heard of {max(0.0, taken.silent):.0f} s ago)",
                where=folder,
                do="Wait for it to end, or stop it; a holder that is silent for "
                f"{LEASE_SECONDS:.0f} s is outranked",
            )
        time.sleep(0.1)
    lease = Lease(folder, store, taken, me)
    try:
        yield lease
    finally:
        lease.release()


def take_turn(table: str, run_id: str, wait: float) -> AbstractContextManager[Lease | None]:
    """Hold the right to commit to a table, waiting `wait` seconds for it; None where the store lets
    only one of two commits through by itself.

    On a local disk and on S3, Delta looks whether a version is there and then writes it, so two
    writers at the same instant can lose a commit.
    """
    return (
        hold_lease(lease_folder(table), run_id, wait)
        if table.startswith(("/", "file:", "s3://", "s3a://"))
        else nullcontext()
    )
