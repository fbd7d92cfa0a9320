"""The report says why rows were refused: how many for each reason, with two samples of each."""

import json

import pytest
from sluice.report import render_html, render_text

from .factories import Project

SOURCE = {"format": "json", "schema": {"id": "string", "at": "timestamp", "amount": "double"}}
STEP = {
    "event_time": {"column": "at"},
    "dedup": {"keys": ["id"], "within": "2 days"},
    "rules": [
        {
            "type": "expect_column_values_to_be_between",
            "kwargs": {"column": "amount", "min_value": 0},
            "on_fail": "quarantine",
            "name": "not_negative",
        }
    ],
}
AT = "2026-01-01T10:00:00Z"
LINES = [
    {"id": "a", "at": AT, "amount": 1.0},
    {"id": None, "at": AT, "amount": 2.0},
    {"id": None, "at": AT, "amount": -3.0},
    {"id": "d", "at": None, "amount": 4.0},
    {"id": "e", "at": "2099-01-01T00:00:00Z", "amount": 5.0},
    {"id": "f", "at": AT, "amount": -6.0},
    {"id": "f", "at": AT, "amount": -6.0},
    "{broken",
    '{"id": "g", "amount": "much"}',
]
TOLD = {
    "malformed": (
        2,
        ['amount is not double: {"id": "g", "amount": "much"}', "not a JSON object: {broken"],
    ),
    "null_key": (2, ["NULL"]),
    "null_time": (1, ["NULL"]),
    "future_time": (1, ["2099-01-01 00:00:00"]),
    "not_negative": (3, ["-3.0", "-6.0"]),
}


def land(project: Project, files: int) -> None:
    lines = [line if isinstance(line, str) else json.dumps(line) for line in LINES]
    for number in range(files):
        project.land(f"{number}.json", "\n".join(lines[number::files]) + "\n")


def told(*reports) -> dict:
    found = [refusal for report in reports for refusal in report.steps[0].refusals]
    assert len({refusal.reason for refusal in found}) == len(found)
    return {refusal.reason: (refusal.rows, refusal.samples) for refusal in found}


@pytest.mark.parametrize("files", [1, 3])
def test_rows_are_counted_by_reason_however_the_backlog_is_cut(spark, tmp_path, files):
    project = Project(spark, tmp_path, {**SOURCE, "max_files_per_batch": 1}, STEP)
    land(project, files)
    report = project.run()
    assert (report.status, len(report.steps[0].batches)) == ("done", files)
    assert told(report) == TOLD
    text, html = render_text(report), render_html(report)
    for reason, (_, samples) in TOLD.items():
        assert reason in text and reason in html
        assert all(sample in text for sample in samples)


def test_values_of_personal_columns_are_in_no_sample(spark, tmp_path):
    project = Project(spark, tmp_path, SOURCE, STEP, {"pii": ["id", "amount"]})
    land(project, 1)
    found = told(project.run())
    assert {reason: rows for reason, (rows, _) in found.items()} == {
        reason: rows for reason, (rows, _) in TOLD.items()
    }
    assert found["malformed"][1] == ["amount is not double", "not a JSON object"]
    assert found["null_key"][1] == found["not_negative"][1] == []
    assert found["future_time"][1] == ["2099-01-01 00:00:00"]


def test_a_batch_that_refuses_nothing_gives_no_reason(spark, tmp_path):
    project = Project(spark, tmp_path, SOURCE, STEP)
    project.land("0.json", json.dumps(LINES[0]) + "\n")
    report = project.run()
    assert report.steps[0].refusals == []
    assert "Refused" not in render_text(report)


@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize(("share", "outcome"), [("22 %", "failed"), ("23 %", "passed")])
def test_a_limit_on_malformed_records_warns_of_the_run_however_it_is_cut(
    spark, tmp_path, files, share, outcome
):
    source = {**SOURCE, "max_files_per_batch": 1, "max_malformed": share}
    project = Project(spark, tmp_path, source, STEP)
    land(project, files)
    report = project.run()
    (limit,) = [rule for rule in report.steps[0].rules if rule.name == "max_malformed"]
    assert (limit.outcome, limit.evaluated, limit.unexpected) == (outcome, 9, 2)
    assert limit.samples == TOLD["malformed"][1]
    assert (report.status, report.blocks) == ("done", False)
    assert ("max_malformed" in render_text(report)) is (outcome == "failed")


def test_more_malformed_records_than_the_limit_stop_the_run_before_the_batch_is_written(
    spark, tmp_path
):
    limit = {"share": "10 %", "on_fail": "stop"}
    project = Project(spark, tmp_path, {**SOURCE, "max_malformed": limit}, STEP)
    good = {"id": "x", "at": AT, "amount": 1.0}
    project.land("good.json", json.dumps(good) + "\n")
    assert project.run().status == "done"
    land(project, 3)
    for _ in range(2):  # it comes again as it is
        stopped = project.run()
        assert (stopped.status, stopped.exit_code) == ("stopped by a rule", 4)
        assert "stopped by max_malformed (failed)" in stopped.error
        (found,) = [rule for rule in stopped.steps[0].rules if rule.name == "max_malformed"]
        assert (found.evaluated, found.unexpected) == (9, 2)
        assert list(project.rows("id").elements()) == [("x",)]
    project = Project(spark, tmp_path, {**SOURCE, "max_malformed": "10 %"}, STEP)
    report = project.run()
    assert (report.status, report.counts.read, report.counts.malformed) == ("done", 9, 2)


def test_a_quoted_line_break_is_met_by_a_hint(spark, tmp_path):
    source = {"format": "csv", "schema": {"id": "string", "note": "string"}}
    project = Project(spark, tmp_path, source)
    project.land("0.csv", 'id,note\n1,"first\nsecond"\n')
    assert "try `multi_line: true`" in render_text(project.run())
