"""Every record has a fate, and each is counted by what gave it.

`read = malformed + filtered + entered` says what became of the records, and
`malformed + made = written + quarantined + duplicate + late` what became of the rows made of them.
"""

import json
import re

import pytest
from sluice.errors import ExitCode
from sluice.report import Counts, render_text

from .shop import WINDOWS, Shop, order

FATES = ("written", "quarantined", "duplicate", "late")


def assert_balanced(counts: Counts) -> None:
    assert min(counts.model_dump().values()) >= 0
    assert counts.read == counts.malformed + counts.filtered + counts.entered
    assert counts.malformed + counts.made == sum(getattr(counts, fate) for fate in FATES)


def seen(counts: Counts) -> tuple[int, ...]:
    return counts.read, counts.filtered, *(getattr(counts, fate) for fate in FATES)


def test_rows_that_a_where_leaves_out_are_counted_as_filtered(spark, tmp_path):
    shop = Shop(tmp_path, transform="t.sql")
    (tmp_path / "t.sql").write_text("SELECT * FROM source WHERE amount <> 7 AND order_id > 'o1'")
    rows = [order(2), order(2), order(3, amount=-1.0), order(4, amount=7.0), order(1)]
    shop.land(*rows, {**order(5), "order_id": None}, "{broken")
    report = shop.run()
    assert (report.status, report.error) == ("done", None)
    assert_balanced(report.counts)
    assert seen(report.counts) == (7, 3, 1, 2, 1, 0)
    assert (report.counts.entered, report.counts.made) == (3, 3)
    text = render_text(report)
    assert "7 read" in text and "3 filtered" in text
    shop.land(order(4, amount=7.0), order(2))
    report = shop.run()
    assert seen(report.counts) == (2, 1, 0, 0, 1, 0)


def test_a_batch_of_which_a_where_leaves_nothing_is_counted(spark, tmp_path):
    shop = Shop(tmp_path, transform="t.sql", dedup={"late": "keep"})
    (tmp_path / "t.sql").write_text("SELECT * FROM source WHERE amount > 100")
    shop.land(order(1), order(2))
    report = shop.run()
    assert (report.status, report.error) == ("done", None)
    assert_balanced(report.counts)
    assert seen(report.counts) == (2, 2, 0, 0, 0, 0)
    assert "2 filtered" in render_text(report)


def test_a_range_counts_the_records_outside_of_it_as_filtered(spark, tmp_path):
    shop = Shop(tmp_path)
    shop.land(order(1, day=1), order(2, day=2), order(3, day=2), order(4, day=3))
    (shop.landing / "0002.json").write_text("{broken\n")
    report = shop.run(window={"start": "2026-01-02", "end": "2026-01-03"})
    assert (report.status, report.error) == ("done", None)
    assert_balanced(report.counts)
    assert seen(report.counts) == (5, 2, 2, 1, 0, 0)


EXPLODE = {
    "order_id": "string",
    "amount": "double",
    "at": "timestamp",
    "items": "array<string>",
}
ITEMS = """
SELECT concat(order_id, item) AS order_id, amount, at, _row
FROM source LATERAL VIEW explode(items) AS item
"""


@pytest.mark.parametrize("memory", ["table", "state"])
def test_rows_that_a_transform_makes_are_counted_apart_from_the_records_it_read(
    spark, tmp_path, memory
):
    shop = Shop(tmp_path, transform="t.sql", source={"schema": EXPLODE}, dedup={"memory": memory})
    (tmp_path / "t.sql").write_text(ITEMS)
    shop.land(
        order(1, items=["a", "b", "b"]), order(2, items=["a"]), order(2, items=["a"]), "{broken"
    )
    report = shop.run()
    assert (report.status, report.error) == ("done", None)
    assert_balanced(report.counts)
    counts = report.counts
    assert (counts.read, counts.made) == (4, 5)
    assert (counts.written, counts.quarantined, counts.duplicate) == (3, 1, 2)
    assert shop.ids(spark) == ["o1a", "o1b", "o2a"]
    shop.land(order(1, items=["a", "c"]), order(3, items=["a"]))
    report = shop.run()
    assert_balanced(report.counts)
    counts = report.counts
    assert (counts.read, counts.made, counts.written, counts.duplicate) == (2, 3, 2, 1)


def test_no_row_without_a_copy_is_called_a_duplicate_where_a_transform_answers_differently(
    spark, tmp_path
):
    """A transform that depends on chance must not turn the rows that it drops into duplicates."""
    shop = Shop(tmp_path, transform="t.sql", dedup={"keys": "*"}, rules=[])
    (tmp_path / "t.sql").write_text("SELECT * FROM source WHERE rand() < 0.5")
    shop.land(*(order(number, amount=float(number)) for number in range(300)))
    report = shop.run()
    held = len(shop.ids(spark))
    if report.exit_code is ExitCode.DONE:
        assert (report.counts.duplicate, report.counts.written) == (0, held)
        assert_balanced(report.counts)
    else:
        assert report.error


FIELDS = {"kind": "files", "format": "json", "max_files_per_batch": 1}


def hourly(tmp_path, **step: object) -> Shop:
    """Sums of an hour, written when the watermark has passed."""
    shop = Shop(tmp_path, source=FIELDS, transform="t.py:sums", **step)
    shop.step |= {"dedup": None, "sink": {"mode": "append"}, "rules": []}
    (tmp_path / "t.py").write_text(WINDOWS)
    shop.write()
    return shop


def at(hour: int, number: int = 1) -> dict:
    return {"order_id": f"o{number}", "amount": 1.0, "at": f"2026-01-01T{hour:02d}:30:00Z"}


def test_late_records_that_an_aggregate_drops_are_counted_as_late(spark, tmp_path):
    shop = hourly(tmp_path)
    for hour in (0, 3, 6):
        shop.land(at(hour))
    assert shop.run().error is None
    written = shop.rows(spark, columns=("amount",))
    assert written.total() >= 1
    shop.land(*(at(0, number) for number in range(20)))
    shop.land(at(9))
    report = shop.run()
    assert report.error is None
    assert report.counts.late >= 1
    assert not re.search(r"\b0 late", render_text(report))
    assert not any(amount > 1 for (amount,) in shop.rows(spark, columns=("amount",)))


def test_late_records_of_several_groups_are_all_told_and_those_in_time_are_not(spark, tmp_path):
    shop = hourly(tmp_path)
    for hour in (0, 1, 2, 9, 12):
        shop.land(at(hour))
    first = shop.run()
    assert (first.error, first.counts.late) == (None, 0)
    shop.land(at(0), at(1), at(2), at(20))
    shop.land(at(23))
    report = shop.run()
    assert report.error is None
    assert report.counts.late == 3


def test_the_balance_of_a_run_is_that_of_its_batches(spark, tmp_path):
    shop = Shop(tmp_path, transform="t.sql", source={"max_files_per_batch": 1})
    (tmp_path / "t.sql").write_text("SELECT * FROM source WHERE amount <> 7")
    shop.land(order(1), order(2, amount=7.0))
    shop.land(order(1), order(3, amount=-1.0), "{broken")
    report = shop.run()
    assert [batch.counts.filtered for batch in report.steps[0].batches] == [1, 0]
    assert sum((batch.counts for batch in report.steps[0].batches), Counts()) == report.counts
    assert_balanced(report.counts)
    stored = next((shop.root / "reports" / "orders").glob("*.json"))
    assert json.loads(stored.read_text())["steps"][0]["counts"]["filtered"] == 1
