"""A fault in the engine itself must show: whatever loses or doubles a row on its way fails the run,
because each part counts what came to it."""

import pytest
from pyspark.sql import DataFrame
from sluice.errors import ExitCode
from sluice.streaming import reduction
from sluice.streaming.outlet import Outlet
from sluice.streaming.plan import Plan

from tests.spark.shop import Shop, order


def assert_unbalanced(report, *words: str) -> None:
    """The run failed for good, and says which numbers contradict each other."""
    assert (report.status, report.exit_code) == ("failed", ExitCode.TERMINAL), report.error
    assert "rows were lost or doubled on the way" in report.error
    for word in words:
        assert word in report.error


def test_a_row_that_is_lost_between_survey_and_write_fails_the_run(spark, tmp_path, monkeypatch):
    shop = Shop(tmp_path)
    shop.land(order(1), order(1), order(2), order(3))
    select = reduction.select_good
    monkeypatch.setattr(
        reduction, "select_good", lambda plan, frame: select(plan, frame).where("order_id <> 'o2'")
    )
    assert_unbalanced(shop.run(), "4 rows were found good", "3 went into the reduction")
    assert shop.ids(spark) == []


@pytest.mark.parametrize("sink", [{"mode": "append"}, {}], ids=["append", "insert_new"])
def test_a_row_that_comes_twice_to_the_write_fails_the_run(spark, tmp_path, monkeypatch, sink):
    shop = Shop(tmp_path)
    shop.step |= {"sink": sink, **({"dedup": None} if sink else {})}
    shop.write()
    shop.land(order(1), order(2))
    stamp = Plan.stamp

    def stamp_twice(plan: Plan, rows: DataFrame, *more: object) -> DataFrame:
        return stamp(plan, rows, *more).unionByName(stamp(plan, rows, *more))

    monkeypatch.setattr(Plan, "stamp", stamp_twice)
    assert_unbalanced(shop.run(), "2 rows were to be written", "4 came to the write")


def test_a_refused_row_that_is_lost_on_its_way_to_quarantine_fails_the_run(
    spark, tmp_path, monkeypatch
):
    from sluice.streaming import quarantine

    shop = Shop(tmp_path)
    shop.land(order(1), order(2, amount=-1.0), "{broken")
    refused = quarantine._refused_rows
    monkeypatch.setattr(
        quarantine, "_refused_rows", lambda frame, columns: refused(frame, columns).limit(1)
    )
    assert_unbalanced(shop.run(), "2 rows were refused", "1 came to quarantine")
    assert shop.ids(spark) == []


def test_a_sink_that_is_given_another_batchs_rows_fails_the_run(spark, tmp_path, monkeypatch):
    shop = Shop(tmp_path)
    shop.step["sink"] = [{"kind": "delta"}, {"kind": "files", "path": str(tmp_path / "out")}]
    shop.write()
    shop.land(order(1), order(2))
    assert shop.run().status == "done"
    shop.land(order(3), order(4))
    rows_of = Outlet.rows_of
    monkeypatch.setattr(
        Outlet,
        "rows_of",
        lambda outlet, session, key: rows_of(outlet, session, key.rpartition("/")[0] + "/0"),
    )
    assert_unbalanced(shop.run(), "2 rows are to be delivered", "0 are of this batch")
    out = spark.read.parquet(str(tmp_path / "out")).select("order_id").collect()
    assert sorted(row[0] for row in out) == ["o1", "o2"]


def test_a_record_that_the_survey_does_not_count_fails_the_run(spark, tmp_path, monkeypatch):
    from sluice.streaming import batch

    shop = Shop(tmp_path, source={"format": "parquet"})
    rows = spark.createDataFrame(
        [("o1", 1.0, "2026-01-01"), ("o2", 2.0, "2026-01-02")],
        "order_id string, amount double, at string",
    )
    rows.selectExpr("order_id", "amount", "CAST(at AS timestamp) AS at").coalesce(1).write.parquet(
        str(shop.landing), mode="append"
    )
    take = batch.take_survey
    monkeypatch.setattr(
        batch,
        "take_survey",
        lambda frame, *others: take(frame.limit(1), *others),
    )
    assert_unbalanced(shop.run(), "2 records were read by Spark", "1 were counted")
