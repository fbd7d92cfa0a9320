"""What the last runs of a pipeline came to: of a folder with thousands of reports only the newest
are read, and each of them once.
"""

import logging
import os
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from ..storage import open_path
from .counts import Counts
from .model import Outcome, RunReport
from .store import newest_first
from .units import to_utc

_log = logging.getLogger(__name__)
_MAX_ERROR = 240


@dataclass(frozen=True)
class FailedRule:
    """A rule that did not pass."""

    step: str
    name: str
    outcome: str
    on_fail: str
    unexpected: int | None

    @property
    def blocks(self) -> bool:
        """True where nothing downstream may run because of it."""
        return self.on_fail == "stop" or self.outcome == Outcome.ERROR


@dataclass(frozen=True)
class RunSummary:
    """A run in a line. `rules`: how many were judged. `unbalanced`: names of steps. `lacking`:
    True where a further sink lacks rows. `tables`: that a run which verifies has compared."""

    run_id: str
    kind: str
    started: datetime
    ended: datetime
    seconds_up: float
    status: str
    counts: Counts
    rules: int
    failed: tuple[FailedRule, ...]
    unbalanced: tuple[str, ...]
    blocks: bool
    lacking: bool
    error: str
    tables: int

    @property
    def idle(self) -> bool:
        """True where nothing was new."""
        return self.status == "nothing new"


def summarize_run(report: RunReport) -> RunSummary:
    """A report -> its line."""
    failed = [
        FailedRule(step.name, rule.name, rule.outcome.value, rule.on_fail, rule.unexpected)
        for step in report.steps
        for rule in step.rules
        if rule.outcome is not Outcome.PASSED
    ]
    return RunSummary(
        run_id=report.run_id,
        kind=report.kind,
        started=to_utc(report.started),
        ended=to_utc(report.ended),
        seconds_up=report.seconds_up,
        status=report.status,
        counts=report.counts,
        rules=sum(not rule.unmet for step in report.steps for rule in step.rules),
        failed=tuple(sorted(failed, key=lambda rule: (not rule.blocks, rule.name))),
        unbalanced=tuple(step.name for step in report.steps if not step.counts.balanced),
        blocks=report.blocks,
        lacking=bool(report.undelivered),
        error=(report.error or "")[:_MAX_ERROR],
        tables=sum(len(step.verified) for step in report.steps),
    )


def list_runs(folder: str | os.PathLike, limit: int) -> list[RunSummary]:
    """The last runs that left a report, newest `started` first.

    A file that is no report, or cannot be read now, is left out with a warning.
    """
    found: list[RunSummary] = []
    for file in newest_first(folder, limit):
        try:
            found.append(_read_summary(str(open_path(folder) / file.name), file.written, file.size))
        except (ValueError, OSError) as error:
            _log.warning("%s in %s was left out: %s", file.name, folder, type(error).__name__)
    found.sort(key=lambda run: (run.started, run.run_id), reverse=True)
    return found[:limit]


# A file is replaced whole, so what it said holds as long as its time and its size stay.
@lru_cache(maxsize=4096)
def _read_summary(path: str, _written: float, _size: int) -> RunSummary:
    return summarize_run(RunReport.model_validate_json(open_path(path).read_bytes()))
