"""Rows that share a key: which one stays, and what the report says of the others."""

from collections import Counter

import pytest
from sluice.spark import tables

from .shop import Shop, order

pytestmark = pytest.mark.usefixtures("two_partitions")

FIRST, BETTER, BEST = ({**order(1), "amount": amount} for amount in (1.0, 2.0, 3.0))
WINNER = {"order_by": ["amount desc"]}


@pytest.mark.parametrize(
    "files",
    [[[FIRST, BEST, BETTER]], [[BETTER], [FIRST, FIRST], [BEST]], [[BEST], [FIRST], [BETTER]]],
    ids=["one file", "winner last", "winner first"],
)
def test_order_by_names_the_same_winner_for_every_cut_and_the_losers_are_duplicates(
    spark, tmp_path, files
):
    shop = Shop(tmp_path, dedup=WINNER, source={"max_files_per_batch": 1})
    for rows in files:
        shop.land(*rows)
    report = shop.run()
    assert [row[:2] for row in shop.rows(spark).elements()] == [("o1", 3.0)]
    read = sum(map(len, files))
    assert (report.counts.read, report.counts.written, report.counts.duplicate) == (
        read,
        1,
        read - 1,
    )
    step = report.steps[0]
    assert step.conflicts >= 1 and step.conflict_samples == ["o1"]
    assert report.counts.replaced == sum(
        max(r["amount"] for r in rows) > max(r["amount"] for b in files[:n] for r in b)
        for n, rows in enumerate(files)
        if n
    )


def test_content_breaks_ties_the_same_way_for_every_cut(spark, tmp_path):
    rows = [{**order(1), "amount": float(n)} for n in range(6)]
    found = []
    for name, files in (
        ("one", [rows]),
        ("many", [[r] for r in rows]),
        ("reversed", [rows[:2:-1], rows[2::-1]]),
    ):
        shop = Shop(
            tmp_path / name, dedup={"order_by": ["order_id"]}, source={"max_files_per_batch": 2}
        )
        for part in files:
            shop.land(*part)
        shop.run()
        found.append(shop.rows(spark))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("few", [tables.FEW_ROWS, 0], ids=["few rows", "many rows"])
def test_without_order_by_the_first_written_stays_and_the_report_names_the_key(
    spark, tmp_path, monkeypatch, few
):
    monkeypatch.setattr(tables, "FEW_ROWS", few)
    shop = Shop(tmp_path)
    shop.land(FIRST, order(2))
    shop.run()
    shop.land(BEST, order(2), order(3))
    report = shop.run()
    assert [row[:2] for row in sorted(shop.rows(spark).elements())] == [
        ("o1", 1.0),
        ("o2", 1.0),
        ("o3", 1.0),
    ]
    assert (
        report.counts.duplicate,
        report.steps[0].conflicts,
        report.steps[0].conflict_samples,
    ) == (2, 1, ["o1"])


def test_a_key_column_marked_pii_is_counted_but_not_sampled(spark, tmp_path):
    shop = Shop(tmp_path)
    shop.write(pii=["order_id"])
    shop.land(FIRST, BEST)
    step = shop.run().steps[0]
    assert (step.conflicts, step.conflict_samples) == (1, [])


def test_a_broken_promise_that_the_first_arrives_first_is_reported_and_nothing_is_replaced(
    spark, tmp_path
):
    shop = Shop(tmp_path, dedup={**WINNER, "first_arrives_first": True})
    shop.land(BETTER)
    shop.run()
    shop.land(FIRST)
    assert shop.run().steps[0].overtaken == 0
    shop.land(BEST)
    report = shop.run()
    assert (report.steps[0].overtaken, report.counts.replaced) == (1, 0)
    assert [row[:2] for row in shop.rows(spark).elements()] == [("o1", 2.0)]


def test_copies_farther_apart_than_within_are_two_rows_and_the_report_says_so(spark, tmp_path):
    from sluice.report import render_text

    shop = Shop(tmp_path)
    shop.land(order(1, day=20))
    shop.run()
    shop.land(order(1, day=10), order(1, day=19))
    report = shop.run()
    assert shop.ids(spark) == ["o1", "o1"]
    assert (report.counts.written, report.counts.duplicate, report.counts.late_merged) == (1, 1, 1)
    assert "were older than the newest by more than `within: 2 days`" in render_text(report)


def test_late_rows_that_are_kept_are_kept_once_and_only_where_the_target_lacks_them(
    spark, tmp_path
):
    shop = Shop(tmp_path, dedup={"late": "keep"})
    shop.land(order(1, day=5), order(2, day=20))
    shop.run()
    shop.land(order(1, day=5), order(3, day=6), order(3, day=6), order(4, day=20))
    first = shop.run()
    shop.land(order(3, day=6), order(5, day=7))
    second = shop.run()
    late = shop.rows(spark, "paid__late", ("order_id",))
    assert late == Counter({("o3",): 1, ("o5",): 1})
    assert shop.ids(spark) == ["o1", "o2", "o4"]
    assert [(r.counts.written, r.counts.late, r.counts.duplicate) for r in (first, second)] == [
        (1, 1, 2),
        (0, 1, 1),
    ]


def test_the_report_tells_how_far_behind_rows_came_and_which_horizon_would_have_covered_them(
    spark, tmp_path
):
    shop = Shop(tmp_path)
    shop.land(order(0, day=20))
    assert shop.run().steps[0].lateness == []
    shop.land(
        {**order(1), "at": "2026-01-20T00:10:00Z"},
        {**order(2), "at": "2026-01-19T23:30:00Z"},
        {**order(3), "at": "2026-01-18T12:00:00Z"},
    )
    histogram = shop.run().steps[0].lateness
    assert (sum(histogram), histogram[0], histogram[4], histogram[9]) == (3, 1, 1, 1)
