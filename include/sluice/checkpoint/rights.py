"""What a run may do: use its checkpoints, write, and take its turn at a table."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..errors import ParentLost
from .holder import check_parents
from .lease import Lease, hold_lease, take_turn

_SHORTEST_WAIT = 60.0
"""Seconds for which a run waits for its turn even when its time is nearly up."""


class Rights:
    """The leases of a run's checkpoints and the processes that asked for it; nothing else knows
    leases. `deadline`: `time.monotonic()` until which a turn is waited for."""

    def __init__(
        self,
        run_id: str,
        leases: dict[str, Lease],
        parents: list[tuple[int, float]],
        deadline: float,
    ) -> None:
        self._run_id, self._leases, self._parents = run_id, leases, parents
        self.deadline = deadline
        self._given_up = False

    def give_up(self) -> None:
        """Let every step of the run stop before its next write: it was interrupted."""
        self._given_up = True

    def raise_if_lost(self) -> None:
        """Raise when it is known that this run must stop: a lease is lost, nobody waits for it any
        more, or it was interrupted. Asks no store."""
        self._raise_if_given_up()
        for lease in self._leases.values():
            lease.raise_if_lost()
        check_parents(self._parents)

    def check(self, step: str) -> None:
        """Raise LeaseLost or ParentLost when this run may not write for a step any more."""
        self._raise_if_given_up()
        self._leases[step].check()
        check_parents(self._parents)

    def _raise_if_given_up(self) -> None:
        if self._given_up:
            raise ParentLost("the run was interrupted, so it stops", do="Run again")

    def check_all(self) -> None:
        """Raise LeaseLost when any step's checkpoint was taken over."""
        for lease in self._leases.values():
            lease.check()

    @property
    def _wait(self) -> float:
        """Seconds for which a turn is waited for."""
        return max(_SHORTEST_WAIT, self.deadline - time.monotonic())

    @contextmanager
    def turn_at_sinks(self, folder: str) -> Iterator[None]:
        """The right to change what the further sinks of a step are known to have: a backfill may
        be at them as well as the schedule. Args: folder: of their positions."""
        with hold_lease(f"{folder}/lease", self._run_id, self._wait):
            yield

    @contextmanager
    def turn(self, step: str, table: str) -> Iterator[Callable[[], None]]:
        """The right to commit to a table for the length of a block; yields what to call before
        each write, which raises where the right is gone."""
        with take_turn(table, self._run_id, wait=self._wait) as turn:

            def check() -> None:
                self.check(step)
                if turn is not None:
                    turn.check()

            yield check
