"""`backfill --write replace`: no row goes that is not read again, and the counts are of rows.

Where a range cannot be replaced without losing a row, it is refused and nothing has changed; the
tests take either, because what matters is the table.
"""

import json
from collections import Counter
from collections.abc import Callable

import pytest
import yaml
from sluice.errors import ExitCode, SluiceError
from sluice.report import RunReport, render_text
from sluice.runner import run_pipeline
from sluice.spec import RunRequest

from tests.long_runs import leave

from .shop import WINDOWS, Shop

DATED = {"file_date": "%Y-%m-%d"}
FIRST_DAY = {"start": "2026-01-01", "end": "2026-01-02"}
SECOND_DAY = {"start": "2026-01-02", "end": "2026-01-03"}


def at(number: int, moment: str, amount: float = 1.0) -> dict:
    """An order at a moment of January 2026: `01T12:00`."""
    return {"order_id": f"o{number}", "amount": amount, "at": f"2026-01-{moment}:00Z"}


def land_day(shop: Shop, day: int, *rows: dict | str, name: str = "") -> None:
    """The file of a day, over an earlier one."""
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path = shop.landing / f"2026-01-{day:02d}{name}.json"
    path.write_text("".join(f"{line}\n" for line in lines))


def replace(shop: Shop, window: dict) -> RunReport:
    return shop.run(window=window, write="replace")


def fates(report: RunReport) -> tuple[int, ...]:
    counts = report.counts
    return counts.read, counts.written, counts.quarantined, counts.duplicate, counts.late


def replace_or_refuse(shop: Shop, spark, window: dict, wanted: Counter) -> RunReport:
    """Replace a range, twice: the table is what it should be, or the run says that it did nothing.

    Shows as well that the scheduled run finds nothing new afterwards, as before.
    """
    before = shop.rows(spark)
    for _ in range(2):
        report = replace(shop, window)
        if report.exit_code is ExitCode.TERMINAL:
            assert shop.rows(spark) == before
            assert report.error and "replac" in report.error
        else:
            assert (report.status, report.error) == ("done", None)
            assert shop.rows(spark) == wanted
    assert shop.run().exit_code is ExitCode.NOTHING_NEW
    return report


def test_a_late_row_that_a_file_outside_the_range_gave_stays(spark, tmp_path):
    shop = Shop(tmp_path, source=DATED)
    land_day(shop, 1, at(1, "01T12:00"))
    land_day(shop, 2, at(2, "02T12:00"), at(9, "01T23:30"))
    shop.run()
    replace_or_refuse(shop, spark, FIRST_DAY, shop.rows(spark))


def test_a_row_whose_file_is_gone_stays(spark, tmp_path):
    shop = Shop(tmp_path, source=DATED)
    land_day(shop, 1, at(1, "01T12:00"))
    land_day(shop, 1, at(2, "01T13:00"), name="-evening")
    shop.run()
    (shop.landing / "2026-01-01-evening.json").unlink()
    replace_or_refuse(shop, spark, FIRST_DAY, shop.rows(spark))


def test_a_row_that_another_pipeline_wrote_into_the_same_table_stays(spark, tmp_path):
    table = str(tmp_path / "shared")
    shop, other = (
        Shop(tmp_path / name, source=DATED, sink={"kind": "delta", "table": table})
        for name in ("orders", "refunds")
    )
    other.write(name="refunds")
    land_day(shop, 1, at(1, "01T12:00"))
    land_day(other, 1, at(2, "01T13:00"))
    assert (shop.run().status, other.run().status) == ("done", "done")
    report = replace(shop, FIRST_DAY)
    assert report.exit_code in (ExitCode.DONE, ExitCode.TERMINAL)
    kept = spark.read.format("delta").load(table).select("order_id").collect()
    assert sorted(row.order_id for row in kept) == ["o1", "o2"]


def test_a_row_of_the_file_that_lies_outside_the_range_is_neither_lost_nor_doubled(spark, tmp_path):
    shop = Shop(tmp_path, source=DATED)
    land_day(shop, 1, at(1, "01T12:00"), at(3, "02T00:30"))
    land_day(shop, 2, at(2, "02T12:00"), at(9, "01T23:30"))
    shop.run()
    replace_or_refuse(shop, spark, SECOND_DAY, shop.rows(spark))


def test_a_replaced_range_counts_its_rows_and_not_those_of_rewritten_files(spark, tmp_path):
    shop = Shop(tmp_path, source=DATED)
    land_day(shop, 1, at(1, "01T12:00"), at(2, "01T13:00"))
    land_day(shop, 2, at(3, "02T12:00"), at(4, "02T13:00"), at(5, "02T14:00"))
    shop.run()
    before = shop.rows(spark)
    spark.sql(f"OPTIMIZE delta.`{shop.root}/tables/orders/paid`")  # one file over both days
    for _ in range(2):
        report = replace(shop, FIRST_DAY)
        assert (report.status, report.error) == ("done", None)
        assert fates(report) == (2, 2, 0, 0, 0)
        assert shop.rows(spark) == before


def test_every_fate_in_a_replaced_range_is_counted(spark, tmp_path):
    shop = Shop(tmp_path, source=DATED)
    copies = [at(1, "01T12:00"), at(1, "01T12:00"), at(2, "01T13:00")]
    land_day(shop, 1, *copies, at(3, "01T14:00", -1.0), "{broken")
    land_day(shop, 2, at(4, "02T12:00"))
    shop.run()
    before = shop.rows(spark), shop.reasons(spark)
    spark.sql(f"OPTIMIZE delta.`{shop.root}/tables/orders/paid`")
    for _ in range(2):
        report = replace(shop, FIRST_DAY)
        assert (report.status, report.error) == ("done", None)
        counts = report.counts
        assert (counts.read, counts.written, counts.late) == (5, 2, 0)
        assert counts.quarantined + counts.duplicate == 3
        assert min(fates(report)) >= 0
        assert (shop.rows(spark), shop.reasons(spark)) == before


def test_rows_that_a_mended_file_no_longer_has_go_and_the_report_says_how_many(spark, tmp_path):
    shop = Shop(tmp_path, source=DATED)
    land_day(shop, 1, at(1, "01T12:00"), at(2, "01T13:00"), at(3, "01T14:00"))
    land_day(shop, 2, at(4, "02T12:00"))
    shop.run()
    land_day(shop, 1, at(1, "01T12:00"), at(5, "01T15:00"))
    report = replace(shop, FIRST_DAY)
    assert (report.status, report.error) == ("done", None)
    assert shop.ids(spark) == ["o1", "o4", "o5"]
    assert fates(report) == (2, 2, 0, 0, 0)
    assert report.counts.removed == 3
    assert "removed" in render_text(report)


@pytest.mark.parametrize(
    ("order_by", "first", "second"),
    [([], 1.0, 1.0), (["amount desc"], 9.0, 1.0), (["amount desc"], 1.0, 9.0)],
    ids=["equal", "the winner lies outside", "the winner lies inside"],
)
@pytest.mark.parametrize(
    "window", leave([FIRST_DAY, SECOND_DAY], SECOND_DAY), ids=["first day", "second day"]
)
def test_a_key_with_rows_inside_and_outside_the_range_stays_one_row(
    spark, tmp_path, order_by, first, second, window
):
    shop = Shop(tmp_path, source=DATED, dedup={"order_by": order_by})
    land_day(shop, 1, at(1, "01T23:00", first), at(2, "01T12:00"))
    land_day(shop, 2, at(1, "02T01:00", second), at(3, "02T12:00"))
    shop.run()
    replace_or_refuse(shop, spark, window, shop.rows(spark))
    assert shop.ids(spark) == ["o1", "o2", "o3"]


BEHIND = {
    "an aggregate": {"transform": "t.py:sums", "event_time": {"column": "at"}},
    "plain rows": {"event_time": {"column": "at"}},
    "rows without copies": {
        "event_time": {"column": "at"},
        "dedup": {"keys": ["order_id"], "within": "2 days"},
    },
}


@pytest.mark.parametrize("kind", BEHIND)
def test_a_range_of_a_step_that_another_one_reads_is_refused_before_anything_is_written(
    spark, tmp_path, kind
):
    shop = Shop(tmp_path, source=DATED)
    (tmp_path / "t.py").write_text(WINDOWS)
    sink = {} if "dedup" in BEHIND[kind] else {"sink": {"mode": "append"}}
    source = {"kind": "table", "step": "paid"}
    shop.behind = [{"name": "behind", "source": source, **BEHIND[kind], **sink}]
    shop.write()
    land_day(shop, 1, *(at(hour, f"01T{hour:02d}:00") for hour in (1, 5, 9)))
    land_day(shop, 2, at(30, "02T12:00"))
    assert (first := shop.run()).status == "done", first.error
    columns = ("at", "amount")
    before = shop.rows(spark), shop.rows(spark, "behind", columns)
    try:
        report = replace(shop, FIRST_DAY)
    except SluiceError as error:
        raise AssertionError("a refusal is a report") from error
    assert report.exit_code is ExitCode.TERMINAL
    assert "behind" in report.error and "--write merge" in report.error
    assert (shop.rows(spark), shop.rows(spark, "behind", columns)) == before
    land_day(shop, 3, at(31, "03T12:00"))
    after = shop.run()
    assert (after.status, after.error) == ("done", None)
    assert shop.ids(spark) == ["o1", "o30", "o31", "o5", "o9"]


def read_from_another_file(shop: Shop, **source: object) -> Callable[[], RunReport]:
    """Runs a pipeline of another file that reads the shop's table, and has read its first rows."""
    table = str(shop.root / "tables" / "orders" / "paid")
    step = {"name": "lines", "source": {"kind": "table", "path": table, **source}}
    other = shop.folder / "silver.yaml"
    step["sink"] = {"mode": "append"}
    other.write_text(yaml.safe_dump({"name": "silver", "steps": [step]}))
    (shop.folder / "broken.yaml").write_text("name: [")
    land_day(shop, 1, at(1, "01T01:00"))
    assert shop.run().status == "done"

    def run() -> RunReport:
        return run_pipeline(RunRequest(pipeline=str(other), root=str(shop.root)))

    assert run().counts.written == 1
    return run


def test_a_range_that_a_step_of_another_file_reads_is_refused_and_the_advice_reaches_it(
    spark, tmp_path
):
    shop = Shop(tmp_path, source=DATED)
    behind = read_from_another_file(shop)
    land_day(shop, 1, at(1, "01T01:00"), at(2, "01T02:00"), name="-more")
    report = replace(shop, FIRST_DAY)
    assert report.exit_code is ExitCode.TERMINAL
    assert "silver.lines" in report.error and "--write merge" in report.error
    assert shop.run(window=FIRST_DAY, write="merge").error is None
    assert fates(behind())[:2] == (1, 1)
    assert shop.ids(spark) == ["o1", "o2"]


def test_a_range_is_replaced_behind_a_step_that_passes_over_deletes(spark, tmp_path):
    shop = Shop(tmp_path, source=DATED)
    behind = read_from_another_file(shop, skip_change_commits=True)
    assert replace(shop, FIRST_DAY).error is None
    land_day(shop, 2, at(2, "02T01:00"))
    assert shop.run().error is None
    assert fates(behind())[:2] == (1, 1)
