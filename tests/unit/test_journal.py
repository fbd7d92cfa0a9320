"""Each finished batch is told by one report: the notes beside a checkpoint say by whom."""

from datetime import UTC, datetime

import pytest
from sluice.checkpoint import Entry, find_unreported, note_batch
from sluice.report import BatchReport, Counts, RunReport, StepReport, write_report
from sluice.storage import Paths

ROW = Counts(read=1, entered=1, made=1, written=1)


@pytest.fixture
def paths(tmp_path) -> Paths:
    return Paths.under(str(tmp_path), "orders")


def make_batch(step: str, number: int) -> BatchReport:
    return BatchReport(batch_id=number, key=f"orders/{step}/g1/{number}", counts=ROW)


def report(paths: Paths, run_id: str, **steps: list[int]) -> None:
    """Write the report of a run that tells of these batches."""
    told = [
        StepReport(
            name=step, target="t", quarantine="q", batches=[make_batch(step, n) for n in numbers]
        )
        for step, numbers in steps.items()
    ]
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    times = {"started": moment, "ended": moment, "status": "done"}
    write_report(RunReport(pipeline="orders", run_id=run_id, steps=told, **times), paths.reports())


def note(paths: Paths, run_id: str, number: int) -> None:
    entry = Entry(run_id=run_id, written_by=run_id, batch=make_batch("s", number))
    note_batch(paths.checkpoint("s"), entry)


def missing(paths: Paths, run_id: str | None) -> list[int]:
    found, _ = find_unreported(paths, "s", paths.checkpoint("s"), run_id, 9)
    return [entry.batch.batch_id for entry in found]


def test_batches_of_a_run_that_died_and_of_the_run_itself_are_told_by_its_report(paths):
    for number, run_id in enumerate(["reported", "died", "again"]):
        note(paths, run_id, number)
    report(paths, "reported", s=[0])
    report(paths, "again", s=[2])
    assert missing(paths, "again") == [1, 2]
    assert missing(paths, "next") == [1]


def test_what_an_earlier_try_of_a_run_told_is_told_once(paths):
    note(paths, "cleared", 0)
    report(paths, "cleared", s=[0])
    report(paths, "cleared", other=[0])  # its second try did not come to this step
    assert missing(paths, "next") == []
    assert missing(paths, "cleared") == []
