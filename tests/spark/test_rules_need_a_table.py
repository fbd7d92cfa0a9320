"""A rule that only the whole table can answer is refused where a step has no table."""

from sluice.errors import ExitCode

from tests.spark.shop import Shop, order


def test_a_rule_that_turns_out_to_need_a_table_is_refused_before_a_row_is_read(spark, tmp_path):
    columns = {"order_id": "string", "at": "timestamp", "tags": "array<string>"}
    rule = {
        "type": "expect_column_values_to_be_in_set",
        "kwargs": {"column": "tags", "value_set": ["a"]},
    }
    shop = Shop(tmp_path, rules=[rule], source={"schema": columns}, sink={"kind": "console"})
    shop.step["dedup"] = None
    shop.write()
    shop.land(order(1, tags=["a"]))
    report = shop.run()
    assert report.exit_code is ExitCode.TERMINAL
    assert "looks at the whole table, and the step writes none" in report.error
    assert "Add `{kind: delta}` to the step's sinks" in report.error
    assert report.counts.read == 0
    shop.step |= {"sink": {"kind": "delta"}}
    shop.write()
    assert shop.run().counts.written == 1
