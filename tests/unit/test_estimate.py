"""What a run will take is told by what earlier ones took."""

from datetime import UTC, datetime

import pytest
from sluice.report import RunReport, StepReport
from sluice.report.estimate import Amount, estimate_run

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def report(seconds: float, *, status: str = "done", kind: str = "scheduled", **step: object):
    read = StepReport(name="s", target="t", quarantine="q", **step)
    return RunReport(
        pipeline="p",
        run_id="r",
        kind=kind,
        started=NOW,
        ended=NOW,
        status=status,
        steps=[read],
        seconds_up=seconds,
        core_seconds=2 * seconds,
        spark={"executor_core_seconds": str(seconds)},
    )


def test_runs_of_different_sizes_give_what_a_start_takes_and_what_a_byte_takes():
    runs = [report(8 + mb, bytes_read=mb * 10**6) for mb in (1, 2, 5, 10)]
    found = estimate_run(Amount(bytes=20 * 10**6), runs)
    assert (found.seconds, found.core_seconds) == pytest.approx((28, 84))
    assert found.sentence == "about 28.0 s and 84 core-seconds, by the last 4 runs"


def test_far_beyond_the_largest_run_it_is_called_a_guess():
    found = estimate_run(Amount(bytes=10**9), [report(10, bytes_read=10**6)])
    assert found.sentence == (
        "about 2 h 46 min and 30,000 core-seconds, by the last run; that is 1,000 times the "
        "largest of them, so a guess"
    )


def test_less_than_any_run_so_far_still_takes_a_start():
    runs = [report(10, bytes_read=10**8), report(60, bytes_read=10**9)]
    assert 5 <= estimate_run(Amount(bytes=1), runs).seconds <= 10
    same = [report(10, bytes_read=10**8)] * 3
    assert estimate_run(Amount(bytes=1), same).seconds == 10


def test_a_topic_is_measured_in_offsets_and_a_table_in_commits():
    topic = report(20, ranges={"orders/0": (0, 60), "orders/1": (10, 50)})
    assert estimate_run(Amount(records=200), [topic]).seconds == 40
    table = report(20, ranges={"commits of /t": (3, 5)})
    assert estimate_run(Amount(commits=3), [table]).seconds == 30
    assert estimate_run(Amount(records=200), [table]) is None


@pytest.mark.parametrize(
    "other", [{"status": "failed"}, {"kind": "backfill"}, {"bytes_read": 0}, {"kind": "trial"}]
)
def test_runs_that_tell_nothing_of_an_ordinary_one_are_left_out(other):
    assert estimate_run(Amount(bytes=5), [report(20, **{"bytes_read": 9, **other})]) is None
    assert estimate_run(Amount(), [report(20, bytes_read=9)]) is None
