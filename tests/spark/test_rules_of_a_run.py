"""Table-level rules: what they judge, when, and what a run says that one of them ended.

`warn` and `stop` mean the same rows: those that are written. `stop` judges them before the write.
"""

import pytest
from sluice.errors import ExitCode
from sluice.report import RunReport, render_html, render_text

from .shop import Shop, order

UNIQUE = {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "order_id"}}
FEW = {"type": "expect_table_row_count_to_be_between", "kwargs": {"max_value": 2}}
CHEAP = {
    "type": "expect_column_max_to_be_between",
    "kwargs": {"column": "amount", "max_value": 100},
}


def outcomes(report: RunReport) -> list[str]:
    return [rule.outcome.value for rule in report.steps[0].rules]


@pytest.mark.parametrize("on_fail", ["warn", "stop"])
def test_a_rule_on_the_table_judges_the_rows_that_are_written_whatever_its_failure_does(
    spark, tmp_path, on_fail
):
    rules = [{**rule, "on_fail": on_fail} for rule in (UNIQUE, FEW, CHEAP)]
    shop = Shop(tmp_path, rules=rules)
    shop.land(order(1), order(1), order(2))
    report = shop.run()
    assert (report.exit_code, report.error) == (ExitCode.DONE, None)
    assert outcomes(report) == ["passed"] * 3
    shop.land(order(1, amount=1000.0), order(2), order(3))  # of these one row is new
    report = shop.run()
    assert (report.exit_code, report.error) == (ExitCode.DONE, None)
    assert outcomes(report) == ["passed"] * 3
    assert report.counts.written == 1
    shop.land(order(1), order(4, amount=1000.0))
    report = shop.run()
    assert sorted(outcomes(report))[0] == "failed"
    assert report.exit_code is (ExitCode.DONE if on_fail == "warn" else ExitCode.STOPPED_BY_RULE)
    assert ("o4" in shop.ids(spark)) == (on_fail == "warn")


def test_a_rule_on_the_table_judges_a_row_that_replaces_its_copy(spark, tmp_path):
    for on_fail in ("warn", "stop"):
        rules = [{**CHEAP, "on_fail": on_fail}]
        shop = Shop(tmp_path / on_fail, rules=rules, dedup={"order_by": ["amount desc"]})
        shop.land(order(1))
        shop.run()
        shop.land(order(1, amount=1000.0))
        report = shop.run()
        assert outcomes(report) == ["failed"]
        held = {amount for _, amount, _ in shop.rows(spark)}
        assert held == ({1000.0} if on_fail == "warn" else {1.0})


@pytest.mark.parametrize("on_fail", ["warn", "stop"])
def test_a_run_of_copies_alone_fails_no_rule_and_one_whose_rows_are_all_refused_lacks_rows(
    spark, tmp_path, on_fail
):
    some = {"type": FEW["type"], "kwargs": {"min_value": 1}, "name": "some"}
    cheap = {**CHEAP, "name": "cheap"}
    good = {"type": "expect_column_values_to_be_between", "on_fail": "quarantine"}
    good |= {"kwargs": {"column": "amount", "min_value": 0}}
    shop = Shop(tmp_path, rules=[{**rule, "on_fail": on_fail} for rule in (some, cheap)] + [good])
    shop.land(order(1))
    assert shop.run().exit_code is ExitCode.DONE
    shop.land(order(1))
    report = shop.run()
    assert (report.exit_code, report.counts.duplicate) == (ExitCode.DONE, 1)
    assert [rule.name for rule in report.steps[0].rules if rule.unmet] == ["some", "cheap"]
    assert "2 not evaluated" in render_text(report)
    shop.land(order(1), order(2, amount=-1.0))
    report = shop.run()
    assert [rule.name for rule in report.failed_rules if rule.level == "table"] == ["some"]
    assert report.blocks == (on_fail == "stop") and report.counts.quarantined == 1
    shop.land(order(3))
    assert shop.run().exit_code is ExitCode.DONE
    assert shop.ids(spark) == ["o1", "o3"]


@pytest.mark.parametrize("rules", [[CHEAP], [CHEAP, FEW]], ids=["one rule", "two rules"])
def test_a_run_that_its_budget_ends_tells_what_became_of_every_rule(spark, tmp_path, rules):
    rules = [{**rule, "on_fail": "warn"} for rule in rules]
    shop = Shop(tmp_path, rules=rules, source={"max_files_per_batch": 1})
    for number in range(3):
        shop.land(order(number, amount=1000.0 if number == 0 else 1.0))
    shop.write(budget="0 seconds")
    reports = [shop.run()]
    assert reports[0].status == "out of time" and len(outcomes(reports[0])) == len(rules)
    written = reports[0].counts.written
    said = outcomes(reports[0])[0]
    assert said == "could not evaluate" or said == ("failed" if written else "passed")
    assert said != "could not evaluate" or reports[0].blocks
    shop.write()
    reports.append(shop.run())
    assert shop.ids(spark) == ["o0", "o1", "o2"]
    judged = [
        outcome for report in reports for outcome in (outcomes(report) if report.steps else [])
    ]
    assert "failed" in judged or "could not evaluate" in judged


def test_a_stop_rule_of_the_table_that_the_budget_leaves_open_holds_back_what_follows(
    spark, tmp_path
):
    rules = [{**CHEAP, "on_fail": "stop"}]
    shop = Shop(tmp_path, rules=rules, source={"max_files_per_batch": 1})
    for number in range(2):
        shop.land(order(number))
    shop.write(budget="0 seconds")
    report = shop.run()
    assert report.status == "out of time"
    assert outcomes(report) == ["passed"] or report.blocks
    assert len(outcomes(report)) == 1


def test_a_stop_rule_that_fails_over_a_whole_run_does_not_say_that_nothing_was_written(
    spark, tmp_path
):
    shop = Shop(tmp_path, rules=[{**FEW, "on_fail": "stop"}], source={"max_files_per_batch": 1})
    shop.land(order(1), order(2))
    shop.land(order(3), order(4))
    report = shop.run()
    assert len(shop.ids(spark)) == report.counts.written
    assert report.exit_code in (ExitCode.DONE, ExitCode.STOPPED_BY_RULE)
    for page in (render_text(report), render_html(report)):
        said = " ".join(page.split())
        assert "nothing of it was written" not in said
        assert "the checkpoint stayed where it was" not in said


def test_a_stop_rule_that_refuses_a_later_batch_tells_of_the_rows_of_earlier_ones(spark, tmp_path):
    stop = {**CHEAP, "on_fail": "stop"}
    shop = Shop(tmp_path, rules=[stop], source={"max_files_per_batch": 1})
    shop.land(order(1), order(2), order(2))
    shop.land(order(3), order(4, amount=1000.0))
    report = shop.run()
    assert report.exit_code is ExitCode.STOPPED_BY_RULE
    assert shop.ids(spark) == ["o1", "o2"] and report.counts.written == 2
    assert "2 rows of earlier batches are written" in " ".join(render_text(report).split())
    only = Shop(tmp_path / "only", rules=[stop])
    only.land(order(4, amount=1000.0))
    report = only.run()
    assert "earlier batches" not in render_text(report)
    assert only.ids(spark) == []
