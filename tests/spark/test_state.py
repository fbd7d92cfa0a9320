"""What a step keeps in Spark's state: how much, how large, since when, and how it has grown."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pandas as pd
import pytest
from pyspark.sql.streaming import StatefulProcessor
from sluice.errors import SpecError
from sluice.report.step_notes import step_notes
from sluice.spark import state as state_module
from sluice.spec import Step
from sluice.streaming.state_store import check_store

from tests.spark.several import Ads, clicked, shown
from tests.spark.shop import Shop, order


def held(report):
    (step,) = report.steps
    assert report.error is None
    return step.held


def on(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 1, day, hour, tzinfo=UTC)


@pytest.mark.parametrize("store", ["rocksdb", "hdfs"])
def test_the_report_tells_what_a_deduplication_keeps_since_when_and_how_it_grew(
    spark, tmp_path, store
):
    shop = Shop(tmp_path, dedup={"memory": "state"}, rules=[], state_store=store)
    shop.land(*(order(n, day=3) for n in range(30)))
    (first,) = held(shop.run("r1"))
    assert (first.amount, first.unit, first.grown) == (30, "key", None)
    assert first.oldest == on(3) and first.closes_first == on(5)
    shop.land(order(1, day=3), *(order(n, day=4) for n in range(100, 110)))
    report = shop.run("r2")
    (second,) = held(report)
    assert (second.amount, second.grown, second.since) == (40, 10, "r1")
    assert 0 < first.bytes < second.bytes
    (told,) = [note for note in step_notes(report.steps[0]) if "held in state" in note]
    assert told.startswith("40 keys are held in state (")
    assert "10 more than after run r1), the oldest of 2026-01-03 00:00:00 UTC: each" in told
    shop.land(order(999, day=20))
    assert held(shop.run("r3"))[0].grown == 1  # its time lets go of keys in the batch after it
    shop.land(order(998, day=20))
    last = held(shop.run("r4"))[0]
    assert (last.amount, last.grown) == (2, -39)


def test_the_oldest_row_that_waits_in_a_join_is_told_and_a_large_state_is_counted_unread(
    spark, tmp_path, monkeypatch
):
    ads = Ads(tmp_path)
    ads.land("impressions", shown(1, 30), shown(2, 31), shown(3, 32))
    ads.land("clicks", clicked(9, 35))
    (join,) = held(ads.run())
    assert (join.operator, join.amount, join.unit) == ("symmetricHashJoin", 4, "row")
    assert join.oldest == datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
    monkeypatch.setattr(state_module, "READ_UP_TO", 3)
    ads.land("clicks", clicked(8, 36))
    (join,) = held(ads.run())
    assert (join.amount, join.grown, join.oldest) == (5, 1, None)


def test_a_store_that_does_not_count_is_read(spark, tmp_path, monkeypatch):
    shop = Shop(tmp_path, dedup={"memory": "state"}, rules=[])
    monkeypatch.setattr("sluice.streaming.step.count_state", lambda _: None)
    shop.land(*(order(n, day=3) for n in range(7)))
    (kept,) = held(shop.run())
    assert (kept.amount, kept.unit, kept.closes_first) == (7, "key", on(5))


class Counting(StatefulProcessor):
    """Keeps nothing; it is planned and never run."""

    def init(self, handle: object) -> None: ...

    def handleInputRows(self, key: object, rows: object, timers: object) -> object:  # noqa: N802
        yield pd.DataFrame({"n": [1]})

    def close(self) -> None: ...


def test_a_state_of_several_variables_is_refused_in_the_hdfs_backed_store(spark):
    rows = spark.readStream.format("rate").load().groupBy("value")
    frame = rows.transformWithStateInPandas(Counting(), "n int", "append", "none")
    source = {"kind": "files", "path": "x", "format": "json", "schema": {"id": "string"}}
    step = Step.model_validate({"name": "s", "source": source, "state_store": "hdfs"})
    run = SimpleNamespace(pipeline=SimpleNamespace(spark={}), where=lambda step: step.name)
    with pytest.raises(SpecError, match="transformWithState keeps several variables"):
        check_store(run, step, frame)
    check_store(run, step.model_copy(update={"state_store": None}), frame)
