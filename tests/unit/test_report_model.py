"""Law 1, in the report's own type; and the shape of the report, frozen in tests/golden."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.errors import UnbalancedReport
from sluice.report import BatchReport, Counts, Outcome, RuleResult, RunReport, StepReport

GOLDEN = Path(__file__).parents[1] / "golden"
ROWS = st.integers(min_value=0, max_value=10**9)
BALANCED = st.builds(
    lambda malformed, parsed, written, quarantined, duplicate, late: Counts(
        read=malformed + parsed,
        malformed=malformed,
        parsed=parsed,
        entered=written + quarantined + duplicate + late,
        written=written,
        quarantined=quarantined + malformed,
        duplicate=duplicate,
        late=late,
    ),
    ROWS,
    ROWS,
    ROWS,
    ROWS,
    ROWS,
    ROWS,
)


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
        read=1204,
        malformed=4,
        parsed=1200,
        entered=1200,
        written=1180,
        quarantined=9,
        duplicate=13,
        late=2,
    )
    make_report(make_step(counts, (BatchReport(batch_id=0, counts=counts),))).check()
    assert counts.line == "1,204 read = 1,180 written + 9 quarantined + 13 duplicate + 2 late"
    assert counts.read == counts.written + counts.quarantined + counts.duplicate + counts.late


@pytest.mark.parametrize("fate", ["written", "quarantined", "duplicate", "late"])
@pytest.mark.parametrize("drift", [-1, 1])
def test_law_1_a_row_with_no_fate_or_two_fails_the_run(fate, drift):
    fields = {
        "read": 100,
        "parsed": 100,
        "entered": 100,
        "written": 70,
        "quarantined": 10,
        "duplicate": 10,
        "late": 10,
    }
    wrong = Counts(**(fields | {fate: fields[fate] + drift}))
    with pytest.raises(UnbalancedReport, match="orders.orders"):
        make_report(make_step(wrong)).check()
    with pytest.raises(UnbalancedReport, match="batch 7"):
        make_report(make_step(Counts(**fields), (BatchReport(batch_id=7, counts=wrong),))).check()


@given(ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS, ROWS)
def test_balanced_means_exactly_that_both_equations_hold(
    read, malformed, parsed, entered, written, quarantined, duplicate, late
):
    counts = Counts(
        read=read,
        malformed=malformed,
        parsed=parsed,
        entered=entered,
        written=written,
        quarantined=quarantined,
        duplicate=duplicate,
        late=late,
    )
    assert counts.balanced == (
        read == malformed + parsed
        and malformed + entered == written + quarantined + duplicate + late
    )


@given(
    BALANCED,
    st.sampled_from(
        ["read", "malformed", "parsed", "entered", "written", "quarantined", "duplicate", "late"]
    ),
    st.integers(min_value=1, max_value=50),
)
def test_one_changed_number_always_unbalances(counts, name, drift):
    assert counts.balanced
    assert not counts.model_copy(update={name: getattr(counts, name) + drift}).balanced


@given(st.lists(BALANCED, max_size=6))
def test_the_sum_of_balanced_batches_is_balanced(batches):
    total = sum(batches, Counts())
    assert total.balanced
    assert total.read == sum(counts.read for counts in batches)


def test_a_transform_that_changes_the_count_is_shown_on_the_line():
    counts = Counts(
        read=1000,
        malformed=10,
        parsed=990,
        entered=1980,
        written=1900,
        quarantined=30,
        duplicate=60,
    )
    assert counts.balanced
    assert counts.line == (
        "1,000 read (990 parsed -> 1,980 entered); "
        "1,990 = 1,900 written + 30 quarantined + 60 duplicate + 0 late"
    )


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
        "the report's shape changed: if that is meant, run `python tests/golden/regenerate.py` "
        "and commit the diff"
    )


def test_the_golden_example_still_parses_and_balances():
    text = (GOLDEN / "run_report.json").read_text(encoding="utf-8")
    report = RunReport.model_validate_json(text)
    report.check()
    assert report.counts == sum(
        (batch.counts for step in report.steps for batch in step.batches), Counts()
    )
    assert json.loads(report.model_dump_json()) == json.loads(text)
