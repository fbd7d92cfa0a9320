"""`memory: state`: copies fall to Spark's own operators, and what they drop is what a plain
deduplication drops, whatever dies on the way."""

import json
import math
import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from sluice.report.step_notes import step_notes
from sluice.streaming import copies_in_state
from sluice.streaming import tally as tally_module

from tests.spark.shop import Shop, order

pytestmark = pytest.mark.usefixtures("two_partitions")

WITHIN_HOURS = 24
NAN = float("nan")


@dataclass
class Oracle:
    """Deduplicates batch by batch, in hours since the first day. `timed`: the time is part of the
    key. `within`: hours, None for ever."""

    timed: bool
    within: int | None
    kept: dict[tuple, float] = field(default_factory=dict)
    marks: list[float] = field(default_factory=lambda: [-math.inf])
    refused: set[tuple] = field(default_factory=set)
    counts: Counter = field(default_factory=Counter)
    written: Counter = field(default_factory=Counter)

    def take(self, rows: list[tuple]) -> None:
        """One batch: what is late lies behind the watermark of the batch before."""
        late, now = (self.marks * 2)[-2:] if len(self.marks) == 1 else self.marks[-2:]
        for id_, amount, hour in rows:
            if id_ is None:  # a copy of a refused row is a duplicate, whatever its key
                fate = "duplicate" if (amount, hour) in self.refused else "quarantined"
                self.refused.add((amount, hour))
                self.counts[fate] += 1
                continue
            if self.within is not None and hour <= late:
                self.counts["late"] += 1
                continue
            key = (id_, str(amount), hour if self.timed else None)
            if key in self.kept:
                self.counts["duplicate"] += 1
                continue
            self.kept[key] = hour if self.timed else hour + (self.within or 0)
            self.counts["written"] += 1
            self.written[id_, str(amount), hour] += 1
        if self.within is not None:
            self.kept = {key: until for key, until in self.kept.items() if until > now}
            times = [hour for id_, _, hour in rows if id_ is not None]
            self.marks.append(max([now, *(hour - self.within for hour in times)]))


def to_line(row: tuple) -> dict:
    id_, amount, hour = row
    at = f"2026-01-{2 + hour // 24:02d}T{hour % 24:02d}:00:00Z"
    return {**order(0), "order_id": id_, "amount": amount, "at": at}


KEYS = {
    "within": (["order_id", "amount"], "1 day"),
    "with_the_time": (["order_id", "amount", "at"], "1 day"),
    "forever": (["order_id", "amount"], "forever"),
}


@pytest.mark.parametrize("case", KEYS)
def test_copies_that_spark_drops_are_those_of_a_plain_deduplication_whatever_dies(
    spark, tmp_path, monkeypatch, case
):
    keys, within = KEYS[case]
    chance, note = random.Random(f"copies {case}"), tally_module.note_batch
    dedup = {"memory": "state", "keys": keys, "within": within}
    shop = Shop(tmp_path, dedup=dedup, rules=[], state_store="rocksdb")
    oracle = Oracle("at" in keys, None if within == "forever" else WITHIN_HOURS)
    deaths = iter([False, True, False, False, True, False, False, False, False, False])

    def die_now_and_then(*args):
        note(*args)
        if next(deaths):
            raise OSError("the machine is gone")

    monkeypatch.setattr(tally_module, "note_batch", die_now_and_then)
    told, clock = Counter(), 0
    for _ in range(5):
        clock += chance.choice([6, 20, 40])
        rows = []
        for _ in range(12):
            number = chance.randint(0, 5) + clock // 12
            hour = max(0, clock - chance.choice([0, 3, 50]) if "at" in keys else 7 * number)
            id_ = None if chance.random() < 0.1 else f"o{number}"
            rows.append((id_, NAN if number % 3 == 0 else float(number), hour))
        rows += rows[:4]
        shop.land(*map(to_line, rows))
        oracle.take(rows)
        report = shop.run()
        told += _counts(report)
    report = shop.run()
    told += _counts(report)
    assert told == oracle.counts + Counter(read=5 * 16)
    columns = ("order_id", "amount", "unix_timestamp(at) / 3600 - 490920 AS hour")
    rows = spark.read.format("delta").load(str(tmp_path / "root/tables/orders/paid"))
    found = Counter((id_, str(a), int(h)) for id_, a, h in rows.selectExpr(*columns).collect())
    assert found == oracle.written
    if within == "forever":
        assert report.status == "nothing new" or report.steps[0].held[0].forever


def _counts(report) -> Counter:
    counts = report.counts
    fates = ("read", "written", "quarantined", "duplicate", "late")
    return Counter({name: n for name in fates if (n := getattr(counts, name))})


def test_keys_that_are_never_let_go_are_told_with_their_size(spark, tmp_path):
    shop = Shop(tmp_path, dedup={"memory": "state", "within": "forever"}, rules=[])
    shop.land(*(order(n) for n in range(30)))
    report = shop.run("r1")
    (step,) = report.steps
    (warning,) = [told for told in step.warnings if "forever" in told]
    assert "30 keys (" in warning and "memory: table" in warning
    assert any("none of it is ever let go" in note for note in step_notes(step))
    shop.land(order(3), order(77))
    report = shop.run("r2")
    assert (report.counts.written, report.counts.duplicate) == (1, 1)
    assert report.steps[0].held[0].grown == 1


def test_a_checkpoint_of_an_earlier_version_goes_on_with_the_operator_it_began_with(
    spark, tmp_path, monkeypatch
):
    keys = ["order_id", "at"]
    shop = Shop(tmp_path, dedup={"memory": "state", "keys": keys}, rules=[])
    with monkeypatch.context() as earlier:
        earlier.setattr(copies_in_state, "_operators", lambda _: {"dedupeWithinWatermark"})
        shop.land(order(1), order(2))
        assert shop.run().error is None
    manifest = shop.root / "checkpoints" / "orders" / "paid" / "manifest.json"
    told = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**told, "state": None, "held": None}))
    shop.land(order(1), order(1, day=2))
    report = shop.run()
    assert (report.error, report.counts.written, report.counts.duplicate) == (None, 1, 1)
    (kept,) = report.steps[0].held
    assert (kept.operator, kept.amount, kept.grown) == ("dedupeWithinWatermark", 3, None)
    assert json.loads(manifest.read_text())["state"]
