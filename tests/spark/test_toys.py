"""A kind of source and a kind of sink that the engine does not know: registered, and nothing else
is edited."""

from collections import Counter
from typing import Literal

import pytest
from pyspark.sql import functions as F
from sluice.sinks import WRITERS, Writer
from sluice.sources import INTAKES, BatchInput, Intake
from sluice.spark.columns import DEFECT, RAW, RESCUED, SOURCE
from sluice.spec import SINKS, SOURCES, SinkKind, SourceKind

from tests.spark.shop import Shop


class PebbleSource(SourceKind):
    """Lines `name day` of text files."""

    kind: Literal["pebbles"]
    beach: str

    @property
    def declared(self) -> dict[str, str]:
        return {"stone": "string", "at": "timestamp"}


class PebbleIntake(Intake):
    total = 0

    def open(self, spark):
        lines, nothing = spark.readStream.text(self.source.beach), F.lit(None).cast("string")
        parts = F.split("value", " ")
        return lines.select(
            F.get(parts, F.lit(0)).alias("stone"),
            F.try_to_timestamp(F.concat(F.lit("2026-01-"), F.get(parts, F.lit(1)))).alias("at"),
            F.col("value").alias(RAW),
            F.when(F.size(parts) != 2, "not a stone and a day").alias(DEFECT),
            nothing.alias(RESCUED),
            F.lit("beach").alias(SOURCE),
        )

    def inspect(self, checkpoint, batch):
        return BatchInput(costly=True)


class BucketSink(SinkKind):
    """A folder of JSON a batch."""

    kind: Literal["bucket"]
    handle: str

    @property
    def place(self) -> str:
        return self.handle


class BucketWriter(Writer):
    def deliver(self, rows, delivery):
        held = rows.select(*delivery.columns)
        folder = f"{self.sink.handle}/{delivery.token.replace('/', '-')}"
        held.write.mode("overwrite").json(folder)
        return held.count()


@pytest.fixture
def toys(monkeypatch):
    """The two kinds, registered for one test."""
    for kinds in (SOURCES, SINKS):
        monkeypatch.setattr(kinds, "_models", dict(kinds._models))
    SOURCES.add(PebbleSource)
    SINKS.add(BucketSink)
    monkeypatch.setitem(INTAKES, PebbleSource, PebbleIntake)
    monkeypatch.setitem(WRITERS, BucketSink, BucketWriter)


def in_bucket(spark, handle) -> Counter:
    """Every stone that was delivered."""
    found = (
        spark.read.schema("stone string").option("recursiveFileLookup", "true").json(str(handle))
    )
    return Counter(row.stone for row in found.collect())


def make_shop(folder, **step) -> Shop:
    """A step from the beach to its own table and to a bucket."""
    shop = Shop(
        folder,
        rules=[],
        sink=[{"kind": "delta"}, {"kind": "bucket", "handle": str(folder / "bucket")}],
        **step,
    )
    shop.step["source"] = {"kind": "pebbles", "beach": str(shop.landing)}
    shop.write()
    return shop


def test_a_toy_source_is_drained_into_a_toy_sink_each_row_once(spark, tmp_path, toys):
    shop = make_shop(tmp_path)
    shop.step["dedup"]["keys"] = ["stone"]
    shop.write()
    shop.land("agate 01", "flint 01", "agate 01", "no day at all")
    first = shop.run()
    assert (first.status, first.error) == ("done", None)
    counts = first.counts
    assert (counts.read, counts.written, counts.quarantined, counts.duplicate) == (4, 2, 1, 1)
    assert first.steps[0].delivered == {f"bucket {tmp_path / 'bucket'}": 2}
    shop.land("flint 01", "slate 02")
    second = shop.run()
    assert (second.counts.read, second.counts.written, second.counts.duplicate) == (2, 1, 1)
    stones = Counter(row[0] for row in shop.rows(spark, columns=("stone",)).elements())
    assert stones == in_bucket(spark, tmp_path / "bucket") == Counter(["agate", "flint", "slate"])


def test_a_step_without_dedup_appends_to_its_delta_table(spark, tmp_path, toys):
    shop = make_shop(tmp_path)
    shop.step |= {"dedup": None, "event_time": None}
    shop.write()
    shop.land("agate 01", "agate 01")
    assert shop.run().counts.written == 2
    assert in_bucket(spark, tmp_path / "bucket") == Counter({"agate": 2})
