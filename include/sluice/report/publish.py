"""A run's report is stored while the run has the right to write, and each batch is told once."""

import logging
from collections.abc import Callable

from ..errors import LeaseLost
from .ending import Ending
from .model import RunReport
from .store import leave_to_others, list_reports, write_report
from .story import Story

_log = logging.getLogger(__name__)

_RECENT = 100
"""Reports of so many runs are looked at for those of a run that took over."""


def publish_report(report: RunReport, story: Story, may_write: Callable[[], None]) -> None:
    """Store the report of a run, and note what it tells, so that no other does.

    A run may be frozen between its last look and its write, and wake up when another one has taken
    over its batches: so it looks once more behind the write, and takes back what that one tells.

    Args: may_write: raises LeaseLost where another run took over.
    Raises LeaseLost, and what a store raises that cannot be written.
    """
    write_report(report, story.reports, may_write)
    try:
        may_write()
    except LeaseLost as error:
        # Notes before reports: who took over removes the former only when the latter are there.
        claimed = set().union(*(tally.claimed for tally in story.tallies))
        told = report.told & (claimed | _told_by_others(story.reports, report.run_id))
        if told:
            end = Ending.of(error)
            lost = {"status": end.status, "error": end.error, "exit_code": end.exit_code}
            leave_to_others(report.model_copy(update=lost), story.reports, told)
        raise
    _settle(story)


def _told_by_others(folder: str, run_id: str) -> set[str]:
    found = list_reports(folder, limit=_RECENT)
    return set().union(*(report.told for report in found if report.run_id != run_id))


def _settle(story: Story) -> None:
    """What cannot be noted is told once more."""
    try:
        for tally in story.tallies:
            tally.settle()
    except Exception:  # noqa: BLE001 (as above)
        _log.warning("what the report tells could not be noted", exc_info=True)
