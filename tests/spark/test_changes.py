"""What may change between runs of a step that keeps its keys in state: each change is refused with
what was and what is, or told; and the step as it was goes on."""

import pytest
from sluice.spark.fingerprint import compare_states, describe_state

from tests.spark.several import Ads, clicked, shown
from tests.spark.shop import Shop, order

STATE = {"memory": "state"}
PINNED = "spark.sql.streaming.aggregation.stateFormatVersion"
TIMES = "spark.sql.session.timeZone"
CHANGED = {
    "dedup_keys": ({"dedup": {"keys": ["order_id", "amount"]}}, {}, "amount"),
    "watermark_delay": ({"dedup": {"within": "3 days"}}, {}, "72 hours"),
    "within_forever": ({"dedup": {"within": "forever"}}, {}, "Now: Deduplicate by"),
    "memory_state_to_table": ({"dedup": {"memory": "table"}}, {}, "the keys in the table keep"),
    "state_store": ({"state_store": "hdfs"}, {}, "before: rocksdb; now: hdfs"),
    "time_zone": ({}, {TIMES: "Europe/Berlin"}, "before: spark.sql.session.timezone utc"),
    "ansi": ({}, {"spark.sql.ansi.enabled": "false"}, "spark.sql.ansi.enabled false"),
    "case": ({}, {"spark.sql.caseSensitive": "true"}, "spark.sql.casesensitive true"),
    "several_operators": (
        {},
        {"spark.sql.streaming.statefulOperator.allowMultiple": "false"},
        "allowmultiple false",
    ),
}


@pytest.fixture(scope="module")
def begun(spark, tmp_path_factory):
    """A step that has run once, and has something to read again."""
    shop = Shop(tmp_path_factory.mktemp("changes") / "shop", dedup=STATE, rules=[])
    shop.land(*(order(n) for n in range(3)))
    assert shop.run().error is None
    shop.land(order(1), order(50), order(51, amount=9.0))
    return shop


@pytest.fixture
def shop(spark, begun):
    """The same, put back as it was, and the session with it."""
    step, names = dict(begun.step), {PINNED}.union(*(more for _, more, _ in CHANGED.values()))
    before = {name: spark.conf.get(name) for name in names}
    yield begun
    begun.step = step
    begun.write()
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.parametrize("case", CHANGED)
def test_a_state_of_keys_that_would_mean_something_else_is_refused_with_the_way_out(shop, case):
    changes, settings, told = CHANGED[case]
    dedup = {**shop.step["dedup"], **changes.get("dedup", {})}
    shop.step = {**shop.step, **changes, "dedup": dedup}
    shop.write(spark=settings)
    report = shop.run()
    assert told in (report.error or "") and "sluice reset orders --step paid" in report.error
    assert report.counts.read == 0


def test_what_may_change_beside_a_state_does_and_a_setting_without_effect_is_told(shop):
    shop.step["rules"] = [
        {
            "type": "expect_column_values_to_be_between",
            "kwargs": {"column": "amount", "max_value": 5},
            "on_fail": "quarantine",
        }
    ]
    shop.step["source"] = {**shop.step["source"], "max_files_per_batch": 1}
    shop.write(spark={PINNED: "1"})
    report = shop.run()
    assert report.error is None
    assert (report.counts.quarantined, report.counts.duplicate) == (1, 1)
    assert (
        f"{PINNED} 1 has no effect: the checkpoint was begun with 2, which Spark goes on with"
        in (report.steps[0].warnings)
    )


def test_keys_that_the_table_remembers_are_not_moved_into_a_state(spark, tmp_path):
    shop = Shop(tmp_path, rules=[])
    shop.land(order(1))
    assert shop.run().error is None
    shop.step["dedup"] |= STATE
    shop.write()
    shop.land(order(1), order(2))
    report = shop.run()
    assert "before: less. Now: DeduplicateWithinWatermark by" in (report.error or "")
    assert "sluice reset orders --step paid --tables" in report.error


SUMS = "SELECT window.start AS h, k, sum(a) AS s FROM {0} GROUP BY window(at, '10 minutes'), k"
JOIN = """SELECT x.k, x.a, y.b FROM {0} x JOIN {1} y
  ON x.k = y.k AND y.at BETWEEN x.at AND x.at + INTERVAL 1 HOUR"""
SILENT = {
    "another_column": (SUMS, SUMS.replace("sum(a)", "sum(b)")),
    "another_aggregate": (SUMS.replace("sum(", "min("), SUMS.replace("sum(", "max(")),
    "swapped_columns": (
        SUMS.replace("sum(a) AS s", "sum(a) AS s, sum(b) AS t"),
        SUMS.replace("sum(a) AS s", "sum(a) AS s, max(b) AS t"),
    ),
    "an_aggregate_more": (SUMS, SUMS.replace("sum(a) AS s", "sum(a) AS s, sum(b) AS t")),
    "a_group_key": (SUMS, SUMS.replace(", k, sum", ", b, sum").replace("'), k", "'), b")),
    "the_window": (SUMS, SUMS.replace("10 minutes", "5 minutes")),
    "the_join_key": (JOIN, JOIN.replace("x.k = y.k", "x.k = y.b")),
    "the_kind_of_join": (JOIN, JOIN.replace("JOIN", "LEFT JOIN")),
    "the_range": (JOIN, JOIN.replace("1 HOUR", "2 HOURS")),
    "an_operator_more": (SUMS, SUMS.replace("FROM {0}", "FROM (SELECT DISTINCT * FROM {0})")),
    "no_operator": (SUMS, "SELECT k, a FROM {0}"),
}
"""Pairs of queries whose states have the same types, or which Spark alone would tell in its own
words."""
FREE = {
    "what_is_selected": (SUMS, SUMS.replace("sum(a) AS s", "sum(a) * 2 AS twice")),
    "a_filter": (SUMS, SUMS.replace("GROUP BY", "WHERE a > 3 GROUP BY")),
    "what_is_selected_of_a_join": (JOIN, JOIN.replace("x.a, y.b", "x.a + y.b AS c")),
}


@pytest.fixture(scope="module")
def told(spark):
    """What the state of a query over two streams is called. Args: mode, delay."""

    def tell(query: str, mode: str = "append", delay: str = "1 hour") -> list[str]:
        rate = spark.readStream.format("rate").load()
        for name in ("left_rows", "right_rows"):
            rows = rate.selectExpr("value % 5 AS k", "value AS a", "-value AS b", "timestamp AS at")
            rows.withWatermark("at", delay).createOrReplaceTempView(name)
        return describe_state(spark.sql(query.format("left_rows", "right_rows")), mode)

    return tell


@pytest.mark.parametrize("case", SILENT)
def test_states_that_must_not_be_mixed_are_called_by_different_names(told, case):
    before, now = (told(query) for query in SILENT[case])
    new, gone = compare_states(before, now)
    assert new or gone


@pytest.mark.parametrize("case", FREE)
def test_what_does_not_touch_the_state_leaves_its_name(told, case):
    before, now = (told(query) for query in FREE[case])
    assert compare_states(before, now) == ([], [])


def test_the_output_mode_and_the_delay_of_a_watermark_belong_to_a_state(told):
    assert compare_states(told(SUMS), told(SUMS, mode="update"))[0] == ["output mode update"]
    (delay,) = compare_states(told(SUMS), told(SUMS, delay="2 hours"))[0]
    assert delay.startswith("watermark of") and "2 hours" in delay


def test_a_setting_that_an_earlier_version_did_not_note_is_no_news(told):
    now = told(SUMS)
    before = [said for said in now if "allowmultiple" not in said]
    assert len(before) < len(now) and compare_states(before, now) == ([], [])
    assert compare_states([], now)[0] == now


def test_an_input_of_another_kind_is_refused_before_its_offset_is_misread(spark, tmp_path):
    shop = Shop(tmp_path, rules=[])
    shop.land(order(1))
    assert shop.run().error is None
    files = shop.step["source"]
    spark.range(3).write.format("delta").save(str(tmp_path / "table"))
    shop.step = {**shop.step, "source": {"kind": "table", "path": str(tmp_path / "table")}}
    shop.write()
    report = shop.run()
    assert "another kind of input" in (report.error or "")
    shop.step = {**shop.step, "source": files}
    shop.write()
    shop.land(order(2))
    assert shop.run().counts.written == 1


def test_another_policy_of_watermarks_is_refused_because_spark_would_keep_the_first(
    spark, tmp_path
):
    ads = Ads(tmp_path)
    ads.land("impressions", shown(1, 0))
    ads.land("clicks", clicked(1, 0))
    assert ads.run().error is None
    ads.changes = {"watermark_policy": "max"}
    ads.write()
    ads.land("clicks", clicked(2, 1))
    assert "before: min; now: max" in (ads.run().error or "")
