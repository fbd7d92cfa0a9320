"""The queues of a run: what they name is taken as it begins, and settled when it ends."""

import logging
import math
from collections.abc import Callable
from datetime import timedelta

from ..checkpoint import Checkpoint
from ..spec import Pipeline
from ..storage import Paths
from .notified import Arrivals, settle
from .probes import probe_of

_log = logging.getLogger(__name__)
_LONGEST_HOLD = 43_200
"""Seconds a queue keeps messages hidden at most."""
_AFTER_BUDGET = timedelta(minutes=5)
"""How long a run may take after its budget, to end its last batch and to report."""


class Queues:
    """What queues name to the steps of a scheduled run.

    As a context: on leaving, the messages of steps that took everything in are deleted, the others
    given back. Before the report: a batch it does not hold is noted beside the checkpoint, but a
    message that stays is what it has to tell.
    """

    def __init__(self, warn: Callable[[str, list[str]], None]) -> None:
        self._warn = warn
        self.arrivals: dict[str, dict[str, Arrivals]] = {}
        self.drained: set[str] = set()

    def take(self, pipeline: Pipeline, paths: Paths) -> None:
        """Take the messages of every step that has a queue. Raises SourceError."""
        hold = math.ceil((pipeline.budget + _AFTER_BUDGET).total_seconds())
        for step in pipeline.steps:
            for number, (name, one) in enumerate(step.streams.items()):
                checkpoint = Checkpoint.below(paths.checkpoint(step.name), number)
                taken = probe_of(one.source).take(checkpoint, min(_LONGEST_HOLD, hold))
                if taken is not None:
                    self.arrivals.setdefault(step.name, {})[name] = taken

    def __enter__(self) -> "Queues":
        return self

    def __exit__(self, *_: object) -> None:
        for name, taken in self.arrivals.items():
            warnings = [w for one in taken.values() for w in settle(one, name in self.drained)]
            self._warn(name, warnings)
            for warning in warnings:
                _log.warning("%s: %s", name, warning)
