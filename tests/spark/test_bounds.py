"""A backlog that is larger than the memory is cut into batches by itself, where that decides
nothing."""

import gzip
import shutil

import pytest
from sluice.spark import scratch
from sluice.streaming import bounds, step

from .shop import WINDOWS, Shop, order

WHOLE = {"start": "2026-01-01", "end": "2026-02-01"}
STOP = {
    "type": "expect_column_values_to_not_be_null",
    "kwargs": {"column": "order_id"},
    "on_fail": "stop",
}


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Shop:
    """Six files of an order each, and a memory that takes about two of them."""
    monkeypatch.setattr(bounds, "storage_memory", lambda spark: 150 / bounds.SHARE)
    shop = Shop(tmp_path)
    for number in range(6):
        shop.land(order(number))
    return shop


def count_batches(shop: Shop, **request: object) -> int:
    report = shop.run(**request)
    assert (report.error, report.counts.read) == (None, 6)
    return len(report.steps[0].batches)


def test_a_backlog_larger_than_the_memory_comes_in_batches_and_the_table_is_the_same(spark, shop):
    assert 2 < count_batches(shop) <= 6
    assert shop.ids(spark) == [f"o{number}" for number in range(6)]


def test_a_backlog_that_fits_comes_in_one_batch(shop, monkeypatch):
    monkeypatch.setattr(bounds, "storage_memory", lambda spark: 10**9)
    assert count_batches(shop) == 1


def test_where_the_disks_hold_less_than_the_memory_batches_are_as_small_as_they_need_to_be(
    spark, shop, monkeypatch
):
    monkeypatch.setattr(bounds, "storage_memory", lambda spark: 10**9)
    monkeypatch.setattr(bounds, "CROWDING_BYTES", 0)
    monkeypatch.setattr(bounds, "free_bytes", lambda spark: 300)
    assert 2 < count_batches(shop) <= 6
    assert shop.ids(spark) == [f"o{number}" for number in range(6)]


def test_of_many_files_no_more_go_into_a_batch_than_the_driver_holds(spark, shop, monkeypatch):
    monkeypatch.setattr(bounds, "storage_memory", lambda spark: 10**9)
    monkeypatch.setattr(bounds, "driver_memory", lambda spark: 2 * bounds._A_FILE)
    assert count_batches(shop) == 3
    assert shop.ids(spark) == [f"o{number}" for number in range(6)]


def test_many_small_files_are_read_by_as_few_tasks_as_there_are_cores(spark, tmp_path):
    for number in range(200):
        (tmp_path / f"{number}.txt").write_text("a line\n")
    parts = spark.read.text(str(tmp_path)).rdd.getNumPartitions()
    assert parts <= spark.sparkContext.defaultParallelism


def test_the_room_on_a_disk_is_counted_once_for_all_folders_on_it(spark, tmp_path, monkeypatch):
    folders = [str(tmp_path), str(tmp_path.parent)]
    room = shutil.disk_usage(tmp_path).free
    assert bounds.free_bytes(spark) > 0
    monkeypatch.setattr(scratch, "_block_folders", lambda spark: folders)
    assert bounds.free_bytes(spark) == pytest.approx(room, rel=0.1)


def test_what_the_pipeline_says_is_what_counts(shop):
    shop.step["source"]["max_files_per_batch"] = 4
    shop.write()
    assert count_batches(shop) == 2


@pytest.mark.parametrize("late", ["keep", "drop"])
def test_where_the_cut_decides_what_is_late_all_comes_in_one_batch(shop, late):
    shop.step["dedup"]["late"] = late
    shop.write()
    assert count_batches(shop) == 1


def test_where_a_rule_stops_a_batch_all_is_judged_in_one(shop):
    shop.step["rules"] = [STOP]
    shop.write()
    assert count_batches(shop) == 1


def test_where_an_unknown_field_refuses_a_batch_all_comes_in_one(shop):
    shop.step["source"]["unknown_fields"] = "fail"
    shop.write()
    assert count_batches(shop) == 1


def test_a_range_is_replaced_in_one_batch(shop):
    assert count_batches(shop, window=WHOLE, write="replace") == 1


def test_a_transform_that_keeps_state_gets_all_in_one_batch(shop):
    (shop.folder / "t.py").write_text(WINDOWS)
    shop.step |= {"dedup": None, "sink": {"mode": "append"}, "rules": []}
    shop.step["transform"] = "t.py:sums"
    shop.write()
    (step_report,) = shop.run().steps
    # The one without records moves the watermark, and closes what it can.
    assert [batch.counts.read for batch in step_report.batches] == [6, 0]


def test_packed_files_are_taken_for_more_than_their_size(shop, spark):
    for path in shop.landing.glob("*.json"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    shop.step["source"]["pattern"] = "*.gz"
    shop.write()
    assert count_batches(shop) == 6
    assert shop.ids(spark) == [f"o{number}" for number in range(6)]


def test_a_checkpoint_that_began_on_a_laptop_is_no_bound_to_how_a_larger_machine_cuts_its_work(
    spark, shop, monkeypatch
):
    parts, process = "spark.sql.shuffle.partitions", step.process
    seen = []

    def look(plan, rights, batch, laps):
        seen.append(batch.frame.sparkSession.conf.get(parts))
        return process(plan, rights, batch, laps)

    monkeypatch.setattr(bounds, "storage_memory", lambda spark: 10**9)
    monkeypatch.setattr(step, "process", look)
    for cores in ("2", "5"):
        shop.write(spark={parts: cores})
        shop.land(order(10 + int(cores)))
        assert shop.run().error is None
    assert seen == ["2", "5"]
    spark.conf.set(parts, "2")
