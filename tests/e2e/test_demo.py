"""`make demo`, with fewer rows: a real Airflow drains three days as they land, then skips."""

import pytest
from sluice.demo.drive import run_demo


@pytest.mark.timeout(1800)
def test_airflow_drains_three_days_as_they_land_and_skips_when_nothing_is_new(tmp_path):
    said: list[str] = []
    runs = run_demo(tmp_path / "demo", said.append, rows=3_000)
    assert [run.report is not None for run in runs] == [True, True, True, False]
    assert all(run.report.counts.balanced and run.report.status == "done" for run in runs[:3])
    assert [run.report.counts.read for run in runs[:3]] == [1_000, 1_000, 1_000]
    assert "nothing is new" in runs[3].said
    assert "No Spark was started: that saved about" in runs[3].said
    assert sum(text.startswith("Landed") for text in said) == 3
