"""What a copy is: the same in one run, in many, and however far apart the rows of a key lie."""

import random
from collections import Counter

import pytest

from .shop import Shop, order

MOST = {"order_by": ["amount desc"]}
WIDE = {"order_id": "string", "amount": "double", "at": "timestamp"}


def at(moment: str, amount: float = 1.0, number: int = 1, **more: object) -> dict:
    """Order `o1`, or another one, at a moment of January 2026: `02T12`."""
    return {"order_id": f"o{number}", "amount": amount, "at": f"2026-01-{moment}:00:00Z", **more}


def play(shop: Shop, files: list[list[dict]], cut: tuple[int, ...]) -> list:
    """Land the files in order, with a run after as many of them as each number of the cut says."""
    left, reports = list(files), []
    for number in cut:
        for rows in left[:number]:
            shop.land(*rows)
        left = left[number:]
        reports.append(shop.run())
        assert (reports[-1].status, reports[-1].error) == ("done", None)
    return reports


def total(reports: list, fate: str) -> int:
    return sum(getattr(report.counts, fate) for report in reports)


FAR_APART = [[at("01T00")], [at("04T00")], [at("02T12", 9.0)]]
"""The last row beats two that lie farther apart than `within`."""


@pytest.mark.parametrize("cut", [(1, 1, 1), (2, 1), (3,)], ids=str)
def test_with_order_by_a_key_is_one_row_however_far_apart_its_rows_lie(spark, tmp_path, cut):
    shop = Shop(tmp_path, dedup=MOST)
    reports = play(shop, FAR_APART, cut)
    assert [row[:2] for row in shop.rows(spark).elements()] == [("o1", 9.0)]
    assert (total(reports, "written"), total(reports, "duplicate")) == (1, 2)


@pytest.mark.parametrize(
    "cut", [(1, 1), (2,)], ids=["the winners come in a later run", "all in one run"]
)
def test_two_rows_that_lie_far_apart_and_both_beat_one_are_not_an_error(spark, tmp_path, cut):
    files = [[at("02T12", 1.0)], [at("01T00", 5.0), at("04T00", 9.0)]]
    shop = Shop(tmp_path, dedup=MOST)
    reports = play(shop, files, cut)
    assert [row[:2] for row in shop.rows(spark).elements()] == [("o1", 9.0)]
    assert (total(reports, "written"), total(reports, "duplicate")) == (1, 2)


def test_every_cut_of_rows_that_lie_far_apart_leaves_the_same_winners(spark, tmp_path):
    rng = random.Random(4)
    rows = [
        at(f"{rng.randint(1, 28):02d}T{rng.randrange(24):02d}", float(rng.randint(1, 4)), key)
        for key in range(12)
        for _ in range(rng.randint(1, 6))
    ]
    rng.shuffle(rows)
    size = -(-len(rows) // 3)
    files = [rows[n : n + size] for n in range(0, len(rows), size)]
    dedup = {"order_by": ["amount desc", "at"]}
    winners = {}
    for row in sorted(rows, key=lambda row: (-row["amount"], row["at"])):
        winners.setdefault(row["order_id"], (row["order_id"], row["amount"], row["at"]))
    wanted = Counter(winners.values())
    for name, cut, bound in (("one", (3,), None), ("two", (2, 1), 1), ("three", (1, 1, 1), None)):
        shop = Shop(tmp_path / name, dedup=dedup, source={"max_files_per_batch": bound})
        reports = play(shop, files, cut)
        found = Counter(
            (number, amount, f"{moment:%Y-%m-%dT%H:%M:%SZ}")
            for number, amount, moment in shop.rows(spark).elements()
        )
        assert found == wanted, name
        fates = [total(reports, fate) for fate in ("read", "written", "duplicate")]
        assert fates == [len(rows), 12, len(rows) - 12], name


def test_a_loser_that_comes_long_after_its_winner_does_not_enter(spark, tmp_path):
    shop = Shop(tmp_path, dedup=MOST)
    reports = play(shop, [[at("01T00", 9.0)], [at("20T00", 1.0)]], (1, 1))
    assert [row[:2] for row in shop.rows(spark).elements()] == [("o1", 9.0)]
    assert total(reports, "duplicate") == 1


@pytest.mark.parametrize("cut", [(2,), (1, 1)], ids=str)
def test_values_that_trade_places_with_null_are_a_conflict_and_have_one_winner(
    spark, tmp_path, cut
):
    schema = {**WIDE, "note_1": "string", "note_2": "string"}
    one = at("01T00", note_1="x", note_2=None)
    other = at("01T00", note_1=None, note_2="x")
    found = []
    for name, files in (("there", [[one], [other]]), ("back", [[other], [one]])):
        shop = Shop(tmp_path / name, dedup=MOST, source={"schema": schema})
        reports = play(shop, files, cut)
        found.append(shop.rows(spark, columns=("note_1", "note_2")))
        assert sum(report.steps[0].conflicts for report in reports) == 1
    assert found[0] == found[1] and found[0].total() == 1


def test_a_value_and_a_null_in_other_columns_are_told_apart_at_any_place(spark, tmp_path):
    columns = ("n1", "n2", "n3")
    schema = {**WIDE, **dict.fromkeys(columns, "bigint")}
    rows = [at("01T00", **{column: 7}) for column in columns] + [at("01T00")]
    found = []
    for name, order_of_rows in (("up", rows), ("down", rows[::-1])):
        shop = Shop(tmp_path / name, dedup=MOST, source={"schema": schema})
        play(shop, [[row] for row in order_of_rows], (1, 3))
        found.append(shop.rows(spark, columns=columns))
    assert found[0] == found[1] and found[0].total() == 1


def test_a_column_that_is_added_goes_with_a_key_of_the_whole_row(spark, tmp_path):
    shop = Shop(tmp_path, dedup={"keys": "*"})
    shop.land(order(1), order(2), order(2))
    shop.run()
    shop.step["source"]["schema"] = {**WIDE, "shop": "string"}
    shop.write()
    shop.land(order(1), order(3), order(1, shop="north"))
    report = shop.run()
    assert (report.status, report.error) == ("done", None)
    assert (report.counts.written, report.counts.duplicate) == (2, 1)
    paid = shop.rows(spark, columns=("order_id", "shop"))
    assert paid == {("o1", None): 1, ("o2", None): 1, ("o3", None): 1, ("o1", "north"): 1}


def test_columns_that_are_added_one_after_the_other_go_with_a_key_of_the_whole_row(spark, tmp_path):
    shop = Shop(tmp_path, dedup={"keys": "*", "late": "keep"})
    for number, more in enumerate(({}, {"a": "bigint"}, {"a": "bigint", "b": "date"})):
        shop.step["source"]["schema"] = {**more, **WIDE}
        shop.write()
        shop.land(order(1, day=20), order(2, day=20 if number == 0 else 2))
        report = shop.run()
        assert (report.status, report.error) == ("done", None)
    assert shop.ids(spark) == ["o1", "o2"]
    assert shop.rows(spark, "paid__late", ("order_id",)) == {("o2",): 1}


RENAMED = {"amount": 1.0, "at": "2026-01-01T00:00:00Z"}


def test_refused_rows_that_differ_in_an_undeclared_field_are_all_kept(spark, tmp_path):
    shop = Shop(tmp_path)
    shop.land(*({"orderId": f"o{number}", **RENAMED} for number in (1, 2, 3)))
    counts = shop.run().counts
    assert (counts.read, counts.quarantined, counts.duplicate) == (3, 3, 0)
    kept = shop.rows(spark, "paid__quarantine", ("row",))
    assert all(f'"o{n}"' in "".join(row for (row,) in kept) for n in (1, 2, 3))
    shop.land(*({"orderId": f"o{number}", **RENAMED} for number in (3, 4)))
    counts = shop.run().counts
    assert (counts.quarantined, counts.duplicate) == (1, 1)


@pytest.mark.parametrize("policy", ["rescue", "ignore"])
def test_refused_rows_that_differ_in_what_the_schema_cuts_off_are_all_kept(spark, tmp_path, policy):
    shop = Shop(tmp_path, source={"unknown_fields": policy})
    rows = [
        {"order_id": None, "amount": 1.0, "at": f"2026-01-01T00:00:00.{micros:06d}Z"}
        for micros in range(3)
    ]
    rows += [{**rows[0], "note": {"deep": deep}} for deep in ("x", "y")]
    shop.land(*rows, *rows)
    counts = shop.run().counts
    assert (counts.read, counts.quarantined, counts.duplicate) == (10, 5, 5)


def test_rows_that_differ_in_an_undeclared_field_alone_are_two_or_are_reported(spark, tmp_path):
    shop = Shop(tmp_path, dedup={"keys": "*"})
    shop.land(order(1, note="x"), order(1, note="y"), order(2, note="x"), order(2, note="x"))
    report = shop.run()
    kept = shop.rows(spark, columns=("order_id", "_rescued"))
    assert kept.total() == 3 or (kept.total() == 2 and report.steps[0].conflicts == 1)
    shop.land(order(2, note="z"))
    report = shop.run()
    again = shop.rows(spark, columns=("order_id", "_rescued"))
    assert again.total() == kept.total() + 1 or report.steps[0].conflicts == 1


TEXT = {"source": {"schema": {**WIDE, "at": "string"}}}


@pytest.mark.parametrize("cut", [(2,), (1, 1)], ids=str)
def test_within_means_the_same_for_an_event_time_that_is_text(spark, tmp_path, cut):
    files = [[at("01T00"), at("20T00", number=2)], [at("25T00"), at("21T00", number=2)]]
    found = []
    for name, given in (("text", TEXT), ("time", {})):
        shop = Shop(tmp_path / name, **given)
        reports = play(shop, files, cut)
        fates = total(reports, "written"), total(reports, "duplicate")
        found.append((sorted(shop.ids(spark)), fates))
    assert found[0] == found[1] == (["o1", "o1", "o2"], (3, 1))


def test_moments_may_be_written_in_several_ways_and_text_that_is_none_is_refused(spark, tmp_path):
    shop = Shop(tmp_path, **TEXT)
    written = ["2026-01-01T00:00:00Z", "2026-01-02 23:59:59", "2026-01-02T12:00:00+00:00", "soon"]
    shop.land(*({**at("01T00"), "at": moment} for moment in written))
    counts = shop.run().counts
    fates = counts.read, counts.written, counts.quarantined, counts.duplicate
    assert fates == (4, 1, 1, 2)
    shop.land({**at("01T00"), "at": "2026-01-01"}, {**at("01T00"), "at": "2026-06-01"})
    counts = shop.run().counts
    assert (counts.written, counts.duplicate) == (1, 1)
    assert sorted(at for _, _, at in shop.rows(spark))[1] == "2026-06-01"
