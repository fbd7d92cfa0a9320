"""Refresh by group where a row belongs to several: sums over the last days. A run computes the days
that a new row has a part in, from the files that hold rows of them."""

from datetime import datetime

import pytest
from sluice.spark.day_lists import Days, read_days
from sluice.spec import Redo, Window, load_pipeline
from sluice.streaming.verifying import verify_groups

from tests.spark.gold import Gold
from tests.spark.gold_queries import Query
from tests.spark.test_refresh_history import add, fates, open_gold, order

WEEK = "sequence(date(at), date_add(date(at), 6))"
ROLLING = Query(
    f"""SELECT day, sum(amount) AS total, count(DISTINCT customer) AS people
      FROM source LATERAL VIEW explode({WEEK}) AS day GROUP BY day""",
    {"day": WEEK},
)
DAYS = 150
"""More groups than are told one by one."""


@pytest.fixture(scope="module")
def started(spark, tmp_path_factory):
    """Weeks up to each of the first days of January, after one run."""
    gold = open_gold(spark, tmp_path_factory.mktemp("started"), ROLLING)
    gold.refresh()
    return gold


@pytest.fixture
def gold(tmp_path, started):
    return started.copied(tmp_path)


def verify(gold: Gold, share: float = 1.0):
    pipeline = load_pipeline(gold.write())
    (step,) = pipeline.steps
    paths = pipeline.paths(str(gold.folder / "root"))
    return verify_groups(gold.spark, pipeline, step, paths, share)


def test_a_new_row_has_the_days_computed_that_it_has_a_part_in_and_no_other(gold):
    assert gold.table().count() == 9  # three days, the last of which reaches six days on
    add(gold, order(9, 3, customer="bob"))
    found = gold.refresh()
    assert (found.whole, found.touched, fates(found)) == ("", 7, (0, 7, 0, 0))
    add(gold, order(10, 20))
    assert fates(gold.refresh()) == (7, 0, 0, 0)
    gold.sql("DELETE FROM {table} WHERE id = 10")
    assert fates(gold.refresh()) == (0, 0, 7, 0)


def test_a_row_that_moves_touches_the_days_it_leaves_and_those_it_comes_to(gold):
    gold.sql("UPDATE {table} SET at = at + INTERVAL 2 DAYS WHERE id = 4")
    found = gold.refresh()
    assert (found.touched, fates(found)) == (9, (2, 2, 0, 5))  # of five days it stays a part


def test_files_without_a_row_of_these_days_are_not_read(gold):
    for day in range(4, 29):
        add(gold, order(day, day))
    gold.refresh()
    add(gold, order(99, 28))
    found = gold.refresh()
    assert found.touched == 7
    assert 0 < found.bytes_read < found.bytes_of_all / 2


def test_many_days_are_told_by_their_ends(gold):
    at = "TIMESTAMP '2026-03-01 12:00:00' + make_interval(0, 0, 0, CAST(id AS INT))"
    gold.sql(f"INSERT INTO {{table}} SELECT CAST(id AS INT), {at}, 1, 'bob' FROM range({DAYS})")
    found = gold.refresh()
    assert (found.whole, found.touched) == ("", DAYS + 6)


def test_what_was_written_beside_the_step_is_found_and_made_again(gold):
    with gold.unseen():
        gold.spark.sql(f"UPDATE delta.`{gold.target()}` SET total = 0 WHERE day = '2026-01-05'")
    found = verify(gold)
    assert (found.rows, found.missing, found.surplus) == (9, 1, 1)
    days = Window(start=datetime(2026, 1, 4), end=datetime(2026, 1, 6))
    report = gold.run(redo=Redo(step="daily", window=days))
    (batch,) = report.steps[0].batches
    assert (batch.refresh.touched, fates(batch.refresh)) == (2, (0, 1, 0, 1))
    assert verify(gold).equal
    part = verify(gold, 0.5)
    assert part.equal and 0 < part.rows < 9


@pytest.mark.parametrize(
    ("said", "days"),
    [
        (WEEK, Days("at", 0, 6)),
        ("sequence(date_sub(date(at), 3), to_date(at) + 2)", Days("at", -3, 2)),
        ("SEQUENCE(date(`at`) - INTERVAL 1 DAY, date(at) + INTERVAL '2' DAYS)", Days("at", -1, 2)),
        ("sequence(date(at), date(until))", None),
        ("sequence(date(at), date_add(date(at), n))", None),
        ("sequence(date(at), date_add(date(at), 6), INTERVAL 1 DAY)", None),
        ("sequence(date_add(date(at), 1), date(at))", None),
        ("split(note, ' ')", None),
    ],
)
def test_which_days_a_list_has_is_read_from_its_sql(said, days):
    assert read_days(said) == days
