"""Law 1, in the report's own type; and the shape of the report, frozen in tests/golden."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.errors import UnbalancedReport
from sluice.report import BatchReport, Counts, Outcome, RuleResult, RunReport, StepReport
from sluice.report.counts import FATES

GOLDEN = Path(__file__).parents[1] / "golden"
ROWS = st.integers(min_value=0, max_value=10**9)
BALANCED = st.builds(
    lambda malformed, filtered, entered, written, quarantined, duplicate, late: Counts(
        read=malformed + filtered + entered,
        malformed=malformed,
        filtered=filtered,
        entered=entered,
        made=written + quarantined + duplicate + late,
        written=written,
        quarantined=quarantined + malformed,
        duplicate=duplicate,
        late=late,
    ),
    *[ROWS] * 7,
)
TERMS = ("read", "malformed", "filtered", "entered", "made", *FATES[:-1])


def make_report(*steps: StepReport, **fields) -> RunReport:
    moment = datetime(2026, 1, 4, tzinfo=UTC)
    return RunReport(
        **(
            {
                "pipeline": "orders",
                "run_id": "r1",
                "started": moment,
                "ended": moment,
                "status": "done",
                "steps": list(steps),
            }
            | fields
        )
    )


def make_step(
    counts: Counts = Counts(),
    batches: tuple[BatchReport, ...] = (),
    rules: tuple[RuleResult, ...] = (),
) -> StepReport:
    return StepReport(
        name="orders",
        target="t",
        quarantine="q",
        counts=counts,
        batches=list(batches),
        rules=list(rules),
    )


def make_rule(outcome: Outcome, on_fail: str = "warn") -> RuleResult:
    return RuleResult(name="r", type="expect_x", level="row", on_fail=on_fail, outcome=outcome)


def test_law_1_every_row_has_exactly_one_fate_and_the_report_adds_up():
    counts = Counts(
        read=1210,
        malformed=4,
        filtered=6,
        entered=1200,
        made=1200,
        written=1180,
        quarantined=9,
        duplicate=13,
        late=2,
    )
    make_report(make_step(counts, (BatchReport(batch_id=0, counts=counts),))).check()
    assert (
        counts.line
        == "1,210 read = 1,180 written + 9 quarantined + 13 duplicate + 2 late + 6 filtered"
    )
    assert counts.read == sum(getattr(counts, fate) for fate in FATES)


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("drift", [-1, 1])
def test_law_1_a_row_with_no_fate_or_two_fails_the_run(fate, drift):
    fields = {
        "read": 100,
        "filtered": 10,
        "entered": 90,
        "made": 90,
        "written": 60,
        "quarantined": 10,
        "duplicate": 10,
        "late": 10,
    }
    wrong = Counts(**(fields | {fate: fields[fate] + drift}))
    with pytest.raises(UnbalancedReport, match="orders.orders"):
        make_report(make_step(wrong)).check()
    with pytest.raises(UnbalancedReport, match="batch 7"):
        make_report(make_step(Counts(**fields), (BatchReport(batch_id=7, counts=wrong),))).check()


@pytest.mark.parametrize(
    "wrong",
    [
        {"written": 4, "duplicate": -1},
        {"written": -1, "late": 4},
        {"read": 2, "filtered": -1, "written": 3},
        {"written": 3, "removed": -2},
    ],
    ids=lambda wrong: min(wrong, key=wrong.get),
)
def test_law_1_a_number_below_zero_fails_the_run_though_the_sums_are_right(wrong):
    counts = Counts(**({"read": 3, "entered": 3, "made": 3} | wrong))
    assert (counts.records.gap, counts.rows.gap) == (0, 0)
    with pytest.raises(UnbalancedReport):
        counts.check("orders.orders")


@given(st.fixed_dictionaries(dict.fromkeys(TERMS, ROWS)))
def test_balanced_means_exactly_that_both_equations_hold(numbers):
    counts = Counts(**numbers)
    assert counts.balanced == (
        counts.read == counts.malformed + counts.filtered + counts.entered
        and counts.malformed + counts.made
        == counts.written + counts.quarantined + counts.duplicate + counts.late
    )


@given(BALANCED, st.sampled_from(TERMS), st.integers(min_value=1, max_value=50))
def test_one_changed_number_always_unbalances(counts, name, drift):
    assert counts.balanced
    wrong = counts.model_copy(update={name: getattr(counts, name) + drift})
    assert not wrong.balanced
    assert any(line.gap for line in wrong.lines) and " != " in wrong.line


@given(st.lists(BALANCED, max_size=6))
def test_the_sum_of_balanced_batches_is_balanced(batches):
    total = sum(batches, Counts())
    assert total.balanced
    assert total.read == sum(counts.read for counts in batches)


def test_a_transform_that_makes_rows_is_told_in_a_line_of_records_and_one_of_rows():
    counts = Counts(
        read=1000,
        malformed=10,
        filtered=20,
        entered=970,
        made=1980,
        written=1900,
        quarantined=30,
        duplicate=60,
    )
    assert counts.balanced
    assert counts.line.split("; ") == [
        "1,000 read = 10 malformed + 20 filtered + 970 entered",
        "1,980 made + 10 malformed = 1,900 written + 30 quarantined + 60 duplicate + 0 late",
    ]


@pytest.mark.parametrize(
    ("old", "line"),
    [
        (
            {"entered": 28, "written": 20, "quarantined": 4, "duplicate": 5, "late": 1},
            "30 read = 20 written + 4 quarantined + 5 duplicate + 1 late + 0 filtered",
        ),
        (
            {"entered": 18, "written": 15, "quarantined": 2, "duplicate": 3},
            "30 read = 2 malformed + 0 filtered + 28 entered; "
            "18 made + 2 malformed = 15 written + 2 quarantined + 3 duplicate + 0 late",
        ),
    ],
    ids=["as many rows as records", "a WHERE left ten out"],
)
def test_a_report_of_before_filtered_was_counted_is_still_read_and_balances(old, line):
    counts = {"read": 30, "malformed": 2, "parsed": 28, "late_merged": 3} | old
    step = {"name": "s", "target": "t", "quarantine": "q", "counts": counts}
    step |= {"batches": [{"batch_id": 0, "counts": counts}]}
    times = {"started": "2026-01-04T00:00:00Z", "ended": "2026-01-04T00:00:00Z"}
    told = {"schema_version": 1, "pipeline": "p", "run_id": "r", "status": "done", **times}
    report = RunReport.model_validate_json(json.dumps(told | {"steps": [step]}))
    report.check()
    assert report.counts.line == line and report.counts.late_merged == 3
    again = RunReport.model_validate_json(report.model_dump_json())
    assert again == report


def test_law_5_a_rule_that_could_not_be_evaluated_blocks_what_is_downstream():
    report = make_report(make_step(rules=(make_rule(Outcome.ERROR),)))
    assert report.failed_rules and report.blocks


def test_only_stop_rules_failures_and_imbalance_block_what_is_downstream():
    assert not make_report(
        make_step(rules=(make_rule(Outcome.FAILED), make_rule(Outcome.FAILED, "quarantine")))
    ).blocks
    assert make_report(make_step(rules=(make_rule(Outcome.FAILED, "stop"),))).blocks
    assert not make_report(make_step(rules=(make_rule(Outcome.PASSED, "stop"),))).blocks
    assert make_report(make_step(Counts(read=1))).blocks
    assert make_report(status="failed").blocks
    assert not make_report(status="nothing new").blocks


def test_the_report_has_the_shape_of_the_golden_schema():
    golden = json.loads((GOLDEN / "run_report.schema.json").read_text(encoding="utf-8"))
    assert RunReport.model_json_schema() == golden, (
        "the report's shape changed: if that is meant, "
        "run `python tests/golden/regenerate.py` and commit the diff"
    )


def test_the_golden_example_still_parses_and_balances():
    text = (GOLDEN / "run_report.json").read_text(encoding="utf-8")
    report = RunReport.model_validate_json(text)
    report.check()
    assert report.counts == sum(
        (batch.counts for step in report.steps for batch in step.batches), Counts()
    )
    assert json.loads(report.model_dump_json()) == json.loads(text)
