"""Refresh by group, history by history: what a run does after one thing that befell its inputs, its
query or its tables."""

import shutil
from collections import Counter

import pytest
from sluice.backlog import table_version
from sluice.errors import ExitCode
from sluice.streaming import step

from tests.long_runs import leave
from tests.spark.gold import AFTER, BEFORE, DEATHS, Gold
from tests.spark.gold_commits import create_table
from tests.spark.gold_queries import Query

COLUMNS = "id INT, at TIMESTAMP, amount INT, customer STRING"
SUMS = Query(
    "SELECT date(at) AS day, sum(amount) AS total, count(*) AS rows FROM source GROUP BY 1"
)
WATCH = "ALTER TABLE {table} SET TBLPROPERTIES (delta.enableChangeDataFeed = %s)"
SMALL = {
    "type": "expect_column_values_to_be_between",
    "kwargs": {"column": "total", "max_value": 100},
    "on_fail": "quarantine",
    "name": "small",
}


def order(id_: int, day: int | None, amount: int = 1, customer: str = "ann") -> str:
    """An order as SQL; `day` counts those of January 2026."""
    at = "NULL" if day is None else f"TIMESTAMP '2026-01-{day:02} 12:00:00'"
    return f"({id_}, {at}, {amount}, '{customer}')"


def add(gold: Gold, *orders: str, table: str = "orders") -> None:
    gold.sql(f"INSERT INTO {{table}} VALUES {', '.join(orders)}", table)


@pytest.fixture(scope="module")
def started(spark, tmp_path_factory):
    """A first run."""
    gold = open_gold(spark, tmp_path_factory.mktemp("started"), SUMS)
    gold.refresh()
    return gold


@pytest.fixture
def gold(tmp_path, started):
    """Sums of three days, which are computed: the first has two orders."""
    return started.copied(tmp_path)


def open_gold(spark, folder, query: Query) -> Gold:
    gold = Gold(spark, folder, query)
    create_table(spark, gold.path("orders"), COLUMNS)
    add(gold, order(1, 1), order(2, 1), order(3, 2), order(4, 3))
    return gold


def fates(refresh) -> tuple[int, int, int, int]:
    return refresh.inserted, refresh.updated, refresh.deleted, refresh.unchanged


def test_the_first_run_computes_everything_and_says_so_and_later_ones_only_what_is_touched(
    spark, tmp_path
):
    gold = open_gold(spark, tmp_path, SUMS)
    first = gold.refresh()
    assert first.whole and fates(first) == (3, 0, 0, 0)
    add(gold, order(5, 3), order(6, 4))
    second = gold.refresh()
    assert (second.whole, second.touched, fates(second)) == ("", 2, (1, 1, 0, 0))
    assert second.versions == {"source": 2} == gold.versions


def test_a_row_that_moves_to_another_group_leaves_its_old_one(gold):
    gold.sql("UPDATE {table} SET at = at + INTERVAL 1 DAY WHERE id = 1")
    gold.sql("UPDATE {table} SET at = at + INTERVAL 9 DAYS WHERE id = 4")
    moved = gold.refresh()
    assert (moved.whole, fates(moved)) == ("", (1, 2, 1, 0))


def test_a_group_whose_rows_are_all_deleted_vanishes_and_comes_back_with_its_next_row(gold):
    gold.sql("DELETE FROM {table} WHERE date(at) = '2026-01-01'")
    assert fates(gold.refresh()) == (0, 0, 1, 0)
    gold.sql("DELETE FROM {table}")
    assert fates(gold.refresh()) == (0, 0, 2, 0)
    assert gold.groups() == {}
    add(gold, order(5, 1))
    assert fates(gold.refresh()) == (1, 0, 0, 0)


def test_rows_without_a_group_are_a_group_like_any_other(gold):
    add(gold, order(5, None), order(6, None))
    assert fates(gold.refresh()) == (1, 0, 0, 0)
    gold.sql("UPDATE {table} SET amount = 7 WHERE id = 5")
    gold.sql("UPDATE {table} SET at = NULL WHERE id = 4")
    assert fates(gold.refresh()) == (0, 1, 1, 0)
    gold.sql("DELETE FROM {table} WHERE at IS NULL")
    assert fates(gold.refresh()) == (0, 0, 1, 0)


def test_a_group_that_is_null_for_every_row_is_warned_of_and_kept_all_the_same(spark, tmp_path):
    gold = Gold(spark, tmp_path, SUMS)
    create_table(spark, gold.path("orders"), COLUMNS)
    add(gold, order(1, None), order(2, None))
    said = "every row has NULL for a group, which tells none apart (day: date(at))"
    assert gold.run().steps[0].batches[0].warnings == [said]
    gold.check()
    add(gold, order(3, 1))
    assert gold.run().steps[0].batches[0].warnings == []
    gold.check()


def test_an_update_that_changes_nothing_writes_nothing_and_is_noted(gold):
    files = gold.files
    gold.sql("UPDATE {table} SET amount = amount WHERE id < 4")
    again = gold.refresh()
    assert (again.touched, fates(again)) == (2, (0, 0, 0, 2))
    assert (gold.files, gold.versions) == (files, {"source": 2})


def test_rows_that_come_and_go_between_two_runs_leave_their_groups_as_they_were(gold):
    files = gold.files
    add(gold, order(5, 1), order(6, 9))
    gold.sql("DELETE FROM {table} WHERE id > 4")
    assert fates(gold.refresh()) == (0, 0, 0, 2)
    assert gold.files == files


def test_optimize_alone_rewrites_nothing(gold):
    add(gold, order(5, 1))
    gold.refresh()
    files, held = gold.files, gold.groups()
    gold.sql("OPTIMIZE {table}")
    report = gold.run()
    assert report.error is None
    assert all(batch.refresh.touched == 0 for step in report.steps for batch in step.batches)
    assert (gold.files, gold.groups()) == (files, held)
    gold.check()


@pytest.mark.parametrize("edited", leave(["query", "rules", "groups"], "groups"))
def test_what_was_edited_has_all_computed_anew_by_the_next_run_and_the_report_says_why(
    gold, edited
):
    gold.query = {
        "query": Query(SUMS.code.replace("sum(amount)", "sum(amount + 1)")),
        "rules": Query(SUMS.code, rules=(SMALL,)),
        "groups": Query(SUMS.code, {"day": "to_date(at)"}),
    }[edited]
    whole = gold.refresh()
    assert "the query, its rules" in whole.whole and whole.versions == {"source": 1}
    assert fates(whole) == ((0, 3, 0, 0) if edited == "query" else (0, 0, 0, 3))
    assert gold.run().exit_code is ExitCode.NOTHING_NEW
    add(gold, order(5, 4, amount=9))
    found = gold.refresh()
    assert (found.whole, fates(found)) == ("", (1, 0, 0, 0))


@pytest.mark.parametrize("when", [None, *DEATHS])
def test_what_was_edited_and_what_is_new_are_both_in_the_table_wherever_the_run_dies(gold, when):
    gold.query = Query(SUMS.code.replace("sum(amount)", "sum(amount + 1)"))
    add(gold, order(5, 3), order(6, 4))
    if when is not None:
        gold.die(when)
    report = gold.run()
    assert report.exit_code is ExitCode.DONE, report.error
    gold.check()
    assert gold.run().exit_code is ExitCode.NOTHING_NEW


def test_a_feed_that_was_off_for_some_commits_has_all_computed_anew_and_is_named(gold):
    gold.sql(WATCH % "false")
    gold.sql("UPDATE {table} SET at = at + INTERVAL 1 DAY WHERE id = 1")
    gold.sql("DELETE FROM {table} WHERE id = 4")
    gold.sql(WATCH % "true")
    unwatched = gold.refresh()
    assert "feed" in unwatched.whole and fates(unwatched) == (0, 2, 1, 0)
    add(gold, order(5, 4))
    assert gold.refresh().whole == ""


def test_a_source_table_made_anew_is_refused_and_the_target_stays(spark, gold):
    held = gold.groups()
    shutil.rmtree(gold.path("orders"))
    create_table(spark, gold.path("orders"), COLUMNS)
    for number in range(3):
        add(gold, order(number, 8))
    report = gold.run()
    assert report.exit_code is ExitCode.TERMINAL
    assert "made anew" in report.error
    assert gold.groups() == held


def test_a_static_input_that_changed_has_all_computed_anew_with_the_next_news(spark, tmp_path):
    names = """SELECT date(at) AS day, name, sum(amount) AS total FROM orders
      JOIN people ON customer = person GROUP BY 1, 2"""
    gold = open_gold(spark, tmp_path, Query(names, static=("people",)))
    create_table(spark, gold.path("people"), "person STRING, name STRING")
    add(gold, "('ann', 'Ann')", table="people")
    assert gold.refresh().inserted == 3
    gold.sql("UPDATE {table} SET name = 'Anna'", "people")
    assert gold.run().exit_code is ExitCode.NOTHING_NEW
    add(gold, order(5, 3))
    changed = gold.refresh()
    assert "people" in changed.whole and fates(changed) == (0, 3, 0, 0)
    assert changed.versions == {"orders": 2, "people": 2}
    add(gold, order(6, 3))
    assert gold.refresh().whole == ""


def test_a_refused_row_of_the_result_is_in_quarantine_once_however_often_it_is_made(
    spark, tmp_path
):
    gold = open_gold(spark, tmp_path, Query(SUMS.code, rules=(SMALL,)))
    add(gold, order(5, 2, amount=200))

    def run() -> tuple[Counter, Counter]:
        report = gold.run()
        assert report.error is None
        refused = spark.read.format("delta").load(gold.target("daily__quarantine"))
        held = gold.table().select("total").collect()
        return Counter(row[0] for row in held), Counter(row["row"] for row in refused.collect())

    held, refused = run()
    assert held == Counter([2, 1]) and [*refused.values()] == [1]
    gold.sql("UPDATE {table} SET amount = amount")
    assert run() == (held, refused)
    gold.sql("UPDATE {table} SET amount = 3 WHERE id = 5")
    assert run() == (Counter([2, 4, 1]), refused)
    gold.sql("UPDATE {table} SET amount = 200 WHERE id = 5")
    assert run() == (held, refused)


def test_a_step_that_refreshes_from_a_refreshed_step_stays_equal_to_its_query(gold):
    months = "SELECT trunc(day, 'MM') AS month, sum(total) AS total FROM source GROUP BY 1"
    (gold.folder / "monthly.sql").write_text(months)
    second = {"name": "monthly", "source": {"kind": "table", "step": "daily"}}
    gold.behind = [second | {"transform": "monthly.sql", "groups": {"month": "trunc(day, 'MM')"}}]
    gold.run()
    for statement in (
        "UPDATE {table} SET at = at + INTERVAL 31 DAYS WHERE id < 4",
        "DELETE FROM {table} WHERE date(at) < '2026-02-01'",
    ):
        gold.sql(statement)
        report = gold.run()
        assert report.error is None
        gold.check()
        (batch,) = report.steps[1].batches
        assert batch.refresh.whole == ""
        gold.table().createOrReplaceTempView("source")
        expected = gold.spark.sql(months).collect()
        assert Counter(gold.table("monthly").collect()) == Counter(expected)
    assert gold.run().exit_code is ExitCode.NOTHING_NEW


def test_a_commit_between_planning_and_reading_is_not_read_and_comes_with_the_next_run(
    gold, monkeypatch
):
    add(gold, order(5, 1))
    take = step.take_batch

    def add_and_take(*args):
        gold.sql("UPDATE {table} SET amount = 50")
        return take(*args)

    monkeypatch.setattr(step, "take_batch", add_and_take)
    report = gold.run()
    monkeypatch.undo()
    assert report.error is None
    assert (gold.versions, table_version(gold.path("orders"))) == ({"source": 2}, 3)
    gold.check(newest=False)
    assert fates(gold.refresh()) == (0, 3, 0, 0)


def test_a_run_that_died_behind_its_write_is_told_once_with_the_counts_of_that_write(gold):
    gold.sql("UPDATE {table} SET at = at + INTERVAL 1 DAY WHERE id = 4")
    add(gold, order(5, 1))
    died = gold.die(AFTER)
    files, version = gold.files, table_version(gold.target())
    assert died.steps[0].batches == []
    report = gold.run()
    (batch,) = report.steps[0].batches
    assert (batch.replayed, fates(batch.refresh)) == (True, (1, 1, 1, 0))
    assert batch.counts == report.counts and report.counts.written == 2
    assert (gold.files, table_version(gold.target())) == (files, version)
    gold.check()


def test_a_run_that_died_before_its_write_is_done_again_over_the_same_versions(gold):
    add(gold, order(5, 1))
    gold.die(BEFORE)
    gold.sql("DELETE FROM {table} WHERE id = 5")
    report = gold.run()
    told = [(batch.refresh.versions, fates(batch.refresh)) for batch in report.steps[0].batches]
    assert told == [({"source": 2}, (0, 1, 0, 0)), ({"source": 3}, (0, 1, 0, 0))]
    gold.check()


@pytest.mark.parametrize("when", leave(DEATHS, AFTER))
def test_vacuum_between_a_death_and_the_next_run_leaves_the_table_right(spark, gold, when):
    add(gold, order(5, 1))
    gold.die(when)
    gold.sql("UPDATE {table} SET at = at + INTERVAL 2 DAYS")
    gold.sql("OPTIMIZE {table}")
    key = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(key, "false")
    gold.sql("VACUUM {table} RETAIN 0 HOURS")
    spark.conf.unset(key)
    report = gold.run()
    assert report.error is None
    gold.check()
    add(gold, order(6, 1))
    assert gold.refresh().whole == ""
