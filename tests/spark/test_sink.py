"""The target: its layout, its properties, columns that come later, and what no report shows."""

import yaml
from sluice.errors import ExitCode
from sluice.report import report_path

from tests.spark.shop import Shop, order


def describe(spark, path) -> dict:
    """Delta's own description of a table."""
    return spark.sql(f"DESCRIBE DETAIL delta.`{path}`").first().asDict()


def test_partitions_and_properties_are_those_of_the_yaml(spark, tmp_path):
    shop = Shop(
        tmp_path, sink={"partition_by": ["amount"], "properties": {"delta.appendOnly": "true"}}
    )
    shop.land(order(1, amount=1.0), order(2, amount=2.0))
    shop.run()
    detail = describe(spark, shop.root / "tables/orders/paid")
    assert (
        detail["partitionColumns"] == ["amount"]
        and detail["properties"]["delta.appendOnly"] == "true"
    )
    assert shop.ids(spark) == ["o1", "o2"]


def test_clustering_columns_are_those_of_the_yaml_and_the_table_may_lie_elsewhere(spark, tmp_path):
    elsewhere = tmp_path / "lake" / "orders"
    shop = Shop(tmp_path / "shop", sink={"cluster_by": ["at"], "table": str(elsewhere)})
    shop.land(order(1))
    report = shop.run()
    assert report.steps[0].target == str(elsewhere)
    assert describe(spark, elsewhere)["clusteringColumns"] == ["at"]
    assert spark.read.format("delta").load(str(elsewhere)).count() == 1


def test_a_column_added_to_the_schema_is_added_to_the_table(spark, tmp_path):
    shop = Shop(tmp_path)
    shop.land(order(1))
    shop.run()
    shop.step["source"]["schema"]["channel"] = "string"
    shop.write()
    shop.land(order(2, channel="web"))
    assert shop.run().status == "done"
    assert shop.rows(spark, "paid", ("order_id", "channel")) == {("o1", None): 1, ("o2", "web"): 1}


def test_a_run_killed_while_it_created_its_tables_is_followed_by_one_that_creates_them(
    spark, tmp_path
):
    shop = Shop(tmp_path)
    for table in ("paid", "paid__quarantine"):
        (shop.root / "tables" / "orders" / table / "_delta_log" / "_staged_commits").mkdir(
            parents=True
        )
    shop.land(order(1))
    assert shop.run().counts.written == 1
    assert shop.ids(spark) == ["o1"]


def test_a_column_that_changes_its_type_is_refused_before_anything_is_read(spark, tmp_path):
    shop = Shop(tmp_path)
    shop.land(order(1))
    shop.run()
    shop.step["source"]["schema"]["amount"] = "string"
    shop.step["rules"] = []
    shop.write()
    shop.land(order(2))
    report = shop.run()
    assert (
        report.exit_code is ExitCode.TERMINAL
        and "'amount' is double in the table and string in the step" in report.error
    )
    shop.step["source"]["schema"]["amount"] = "double"
    shop.write()
    assert shop.run().status == "done" and shop.ids(spark) == ["o1", "o2"]


def test_values_of_pii_columns_are_in_no_report(spark, tmp_path):
    rule = {
        "type": "expect_column_values_to_be_between",
        "kwargs": {"column": "amount", "max_value": 10},
        "on_fail": "stop",
        "name": "small",
    }
    table_rule = {
        "type": "expect_column_max_to_be_between",
        "kwargs": {"column": "amount", "max_value": 10},
        "on_fail": "warn",
    }
    shop = Shop(
        tmp_path,
        rules=[
            {**rule, "on_fail": "quarantine"},
            {**rule, "on_fail": "warn", "name": "warned"},
            table_rule,
        ],
    )
    shop.write(pii=["amount"])
    shop.land(order(1, amount=4242.5), order(2))
    shop.run("told")
    shop.step["rules"] = [rule]
    shop.write(pii=["amount"])
    shop.land(order(3, amount=4242.5))
    assert shop.run("stopped").exit_code is ExitCode.STOPPED_BY_RULE
    for run_id in ("told", "stopped"):
        for suffix in ("json", "html"):
            assert (
                "4242" not in report_path(shop.root / "reports/orders", run_id, suffix).read_text()
            )


def test_several_steps_run_in_order_and_each_has_its_own_balance(spark, tmp_path):
    shop = Shop(tmp_path)
    second = {**shop.step, "name": "all_of_them", "rules": []}
    shop.land(order(1), order(1), order(2, amount=-1.0))
    shop.yaml.write_text(yaml.safe_dump({"name": "orders", "steps": [shop.step, second]}))
    report = shop.run()
    assert [
        (s.name, s.counts.written, s.counts.quarantined, s.counts.duplicate) for s in report.steps
    ] == [("paid", 1, 1, 1), ("all_of_them", 2, 0, 1)]
