"""The rows of a batch are found by a key that no other batch has.

Sinks and table-level rules see a batch's own rows, whoever else writes the same table in a run of
the same name; counts that were reported once stay reported.
"""

import shutil
from collections import Counter

import pytest
from sluice.errors import ExitCode
from sluice.report import RunReport, list_reports

from .shop import Shop, order


def at_least(amount: float, on_fail: str = "warn") -> dict:
    """A rule about all the rows that a run writes."""
    return {
        "type": "expect_column_min_to_be_between",
        "kwargs": {"column": "amount", "min_value": amount},
        "on_fail": on_fail,
        "name": f"at_least_{amount:g}",
    }


def shared(table: str, out: str) -> list[dict]:
    return [
        {"kind": "delta", "table": table},
        {"kind": "files", "path": out, "format": "json"},
    ]


def sent(spark, folder) -> Counter:
    """Order ids that a files sink holds."""
    return Counter(row.order_id for row in spark.read.json(str(folder)).collect())


def verdicts(report: RunReport) -> list[list[str]]:
    return [[rule.outcome.value for rule in step.rules] for step in report.steps]


def test_two_steps_that_write_one_table_deliver_and_judge_their_own_rows(spark, tmp_path):
    table = str(tmp_path / "shared")
    shop = Shop(tmp_path / "s", rules=[at_least(1)], sink=shared(table, "out_paid"))
    other = tmp_path / "others"
    other.mkdir()
    source = {**shop.step["source"], "path": str(other)}
    second = {"name": "other", "source": source, "rules": [at_least(50)]}
    shop.behind = [{**shop.step, **second, "sink": shared(table, "out_other")}]
    shop.write()
    for number in (1, 2):
        shop.land(order(number), order(number + 10))
        line = f'{{"order_id": "o10{number}", "amount": 100, "at": "2026-01-01T00:00:00Z"}}\n'
        (other / f"{number}.json").write_text(line)
        report = shop.run(f"run {number}")
        assert (report.status, report.error) == ("done", None)
        assert [step.counts.written for step in report.steps] == [2, 1]
        assert [sum(step.delivered.values()) for step in report.steps] == [2, 1]
        assert verdicts(report) == [["passed"], ["passed"]]
    assert sent(spark, shop.root / "out_paid") == Counter(["o1", "o2", "o11", "o12"])
    assert sent(spark, shop.root / "out_other") == Counter(["o101", "o102"])


def test_two_pipelines_that_write_one_table_in_runs_of_one_name_keep_their_rows_apart(
    spark, tmp_path
):
    table = str(tmp_path / "shared")
    shops = {}
    for name, amount in (("orders", 1.0), ("refunds", 100.0)):
        shop = Shop(tmp_path / name, rules=[at_least(amount)], sink=shared(table, f"out_{name}"))
        shop.root = tmp_path / "root"
        shop.write(name=name)
        shop.land(order(int(amount), amount=amount), order(int(amount) + 1, amount=amount))
        report = shop.run("scheduled__2026-01-01T00:00:00+00:00")
        assert (report.status, report.error) == ("done", None)
        assert verdicts(report) == [["passed"]]
        shops[name] = sent(spark, tmp_path / "root" / f"out_{name}")
    assert shops == {"orders": Counter(["o1", "o2"]), "refunds": Counter(["o100", "o101"])}


def stored(shop: Shop) -> Counter:
    """What all stored reports say, fate by fate."""
    found: Counter = Counter()
    for report in list_reports(shop.root / "reports" / "orders"):
        found.update(report.counts.model_dump())
    return +found


def test_an_old_run_that_is_cleared_while_newer_ones_ran_leaves_its_counts_in_a_report(
    spark, tmp_path
):
    shop = Shop(tmp_path)
    shop.land(order(1), order(2), order(2))
    shop.run("old")
    shop.land(order(3), order(4, amount=-1.0))
    shop.run("new")
    shop.land(order(5), order(1), "{broken")
    report = shop.run("old")
    assert (report.status, report.error) == ("done", None)
    said = stored(shop)
    fates = said["read"], said["written"], said["quarantined"], said["duplicate"]
    assert fates == (8, 4, 2, 2)
    shop.run("new")  # nothing new: it stores no report
    shop.land(order(6))
    shop.run("new")
    shop.land(order(7))
    shop.run("old")
    assert (stored(shop)["read"], stored(shop)["written"]) == (10, 6)
    assert len(shop.ids(spark)) == 6


@pytest.mark.parametrize("gone", ["table", "log"])
def test_a_target_that_is_gone_is_not_made_anew_while_its_checkpoint_stands(spark, tmp_path, gone):
    shop = Shop(tmp_path)
    shop.land(order(1), order(2))
    shop.run()
    table = shop.root / "tables" / "orders" / "paid"
    shutil.rmtree(table if gone == "table" else table / "_delta_log")
    idle = shop.run()
    assert idle.exit_code in (ExitCode.TERMINAL, ExitCode.NOTHING_NEW)
    shop.land(order(1), order(3))
    report = shop.run()
    assert report.exit_code is ExitCode.TERMINAL
    assert "paid" in report.error and "checkpoint" in report.error
    assert report.counts.read == 0 and not (table / "_delta_log").exists()


def test_the_advice_for_a_checkpoint_without_manifest_fits_a_step_that_appends(spark, tmp_path):
    shop = Shop(tmp_path / "append")
    shop.step |= {"dedup": None, "sink": {"mode": "append"}}
    shop.write()
    keyed = Shop(tmp_path / "keyed")
    said = {}
    for name, one in (("append", shop), ("keyed", keyed)):
        one.land(order(1), order(2))
        one.run()
        (one.root / "checkpoints" / "orders" / "paid" / "manifest.json").unlink()
        one.land(order(3))
        report = one.run()
        assert report.exit_code is ExitCode.TERMINAL
        said[name] = report.error
        assert one.ids(spark) == ["o1", "o2"]
    assert "doubled" in said["keyed"] and said["append"] != said["keyed"]
    assert "keep re-read rows from being doubled" not in said["append"]
