"""The demo's reports say what a few lines of plain Python count in the same files."""

import json
from collections import Counter

import pytest
from sluice.demo.orders import generate_days, land_day
from sluice.report import Counts, Outcome
from sluice.runner import run_pipeline
from sluice.spec import RunRequest
from sluice.storage import PIPELINES, Paths


def judge(line: str) -> str:
    """What becomes of the first copy of a line: `written`, or the reason it goes to quarantine."""
    try:
        order = json.loads(line)
    except ValueError:
        return "malformed"
    if isinstance(order["amount"], str):
        return "malformed"
    if order["order_id"] is None:
        return "null_key"
    if order["ordered_at"] is None:
        return "null_time"
    if order["ordered_at"] > "2090":
        return "future_time"
    if order["amount"] < 0:
        return "amount_not_negative"
    if not order["items"]:
        return "has_items"
    return "status_known" if order["status"] == "lost" else "written"


@pytest.fixture(scope="module")
def demo(spark, tmp_path_factory):
    """Three days landed and run one by one, then a run with nothing new.

    Returns (reports, the truth of each day, paths).
    """
    folder = tmp_path_factory.mktemp("demo")
    reports, truths, seen = [], [], set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANDING", str(folder / "landing"))
        for day, files in [*generate_days(seed=11, rows=6_000), (None, [])]:
            if day:
                land_day(folder / "landing" / "orders", day, files)
            truth = Counter()
            for line in (line for file in files for line in file.lines):
                truth["duplicate" if line in seen else judge(line)] += 1
                seen.add(line)
            truths.append(truth)
            reports.append(
                run_pipeline(
                    RunRequest(pipeline=str(PIPELINES / "orders.yaml"), root=str(folder / "root"))
                )
            )
    return reports, truths, Paths.under(folder / "root", "orders")


@pytest.mark.parametrize("day", [0, 1, 2])
def test_a_days_report_has_the_counts_of_plain_python(demo, day):
    report, truth = demo[0][day], demo[1][day]
    assert report.error is None
    counts = report.counts
    assert counts.balanced
    assert (counts.read, counts.written, counts.duplicate, counts.late) == (
        truth.total(),
        truth["written"],
        truth["duplicate"],
        0,
    )
    assert counts.quarantined == truth.total() - truth["written"] - truth["duplicate"]
    assert counts.malformed >= truth["malformed"]


def test_orders_that_come_late_are_written_as_well(demo):
    assert [report.counts.late_merged > 0 for report in demo[0][:3]] == [False, True, True]


def test_the_quarantine_holds_every_refused_row_with_its_reason(demo, spark):
    reasons = (
        spark.read.format("delta")
        .load(demo[2].quarantine("orders"))
        .selectExpr("explode(reasons) AS reason")
        .collect()
    )
    expected = sum(demo[1], Counter())
    assert Counter(row.reason for row in reasons) == {
        reason: n for reason, n in expected.items() if reason not in ("written", "duplicate")
    }


def test_the_table_holds_each_order_once_with_the_field_nobody_declared(demo, spark):
    table = spark.read.format("delta").load(demo[2].table("orders"))
    assert (
        table.count()
        == table.select("order_id").distinct().count()
        == sum(demo[1], Counter())["written"]
    )
    assert table.where("_rescued LIKE '%SPRING-%'").count() > 0


def test_a_run_with_nothing_new_says_so(demo):
    report = demo[0][3]
    assert (report.status, report.exit_code, report.counts) == ("nothing new", 3, Counts())


def test_rules_of_every_kind_were_judged_and_no_address_is_shown(demo):
    rules = {rule.name: rule for rule in demo[0][0].steps[0].rules}
    assert rules["currency_present"].outcome is Outcome.PASSED
    assert rules["mean_amount_usual"].outcome is Outcome.PASSED
    assert rules["amount_not_negative"].outcome is Outcome.FAILED
    assert {rule.name: rule for rule in demo[0][2].steps[0].rules}[
        "currency_known"
    ].samples  # the first days hold none
    assert rules["email_form"].outcome is Outcome.FAILED
    assert rules["email_form"].samples == []
