"""Refresh by group where an input has no group of its own: what changes in it has the groups of the
rows computed that are joined to its key, found in the files that can hold it."""

from dataclasses import replace
from datetime import datetime

import pytest
from sluice.backlog import table_version
from sluice.cli import app
from sluice.errors import ExitCode
from sluice.spec import Redo, Window, load_pipeline
from sluice.streaming.verifying import verify_groups
from typer.testing import CliRunner

from tests.spark.gold import BEFORE, Gold
from tests.spark.gold_commits import create_table
from tests.spark.gold_queries import Query
from tests.spark.test_refresh_history import fates

WORTH = Query(
    """SELECT date(o.at) AS day, p.kind, sum(o.amount) AS total FROM orders o
      LEFT JOIN products p ON o.shop = p.shop AND o.product = p.id GROUP BY 1, 2""",
    {"day": {"orders": "date(at)"}},
    inputs=("orders", "products"),
    through={"products": {"key": ["shop", "id"], "through": {"orders": ["shop", "product"]}}},
)
DAYS = 20


@pytest.fixture(scope="module")
def started(spark, tmp_path_factory):
    """Each day has one order, of a product of its own; the last has none that anybody knows."""
    folder = tmp_path_factory.mktemp("started")
    gold = Gold(spark, folder, WORTH)
    create_table(spark, gold.path("orders"), "shop INT, product INT, at TIMESTAMP, amount INT")
    create_table(spark, gold.path("products"), "shop INT, id INT, kind STRING")
    for day in range(1, DAYS + 1):
        gold.sql(f"INSERT INTO {{table}} VALUES (1, {day}, TIMESTAMP '2026-01-{day:02}', {day})")
    rows = ", ".join(f"({shop}, {id_}, 'k')" for shop in (1, 2) for id_ in range(1, DAYS))
    gold.sql(f"INSERT INTO {{table}} VALUES {rows}", "products")
    gold.refresh()
    return gold


@pytest.fixture
def gold(tmp_path, started):
    return started.copied(tmp_path)


def change(gold: Gold, condition: str, what: str = "kind = 'other'") -> None:
    gold.sql(f"UPDATE {{table}} SET {what} WHERE {condition}", "products")


def test_a_row_that_changed_has_the_groups_computed_that_it_is_joined_to_and_no_other(gold):
    change(gold, "shop = 1 AND id IN (3, 5)")
    found = gold.refresh()
    assert (found.whole, found.touched, fates(found)) == ("", 2, (0, 2, 0, 0))
    assert 0 < found.bytes_read < found.bytes_of_all / 2
    change(gold, "shop = 2")  # half of the key is met, and no order by the whole
    assert gold.refresh().touched == 0


def test_a_key_that_moves_touches_what_it_leaves_and_what_it_comes_to(gold):
    change(gold, "shop = 1 AND id = 4", f"id = {DAYS}")
    found = gold.refresh()
    assert (found.touched, fates(found)) == (2, (0, 2, 0, 0))
    rows = {row["day"].day: row["kind"] for row in gold.table().collect()}
    assert (rows[4], rows[DAYS]) == (None, "k")


def test_rows_that_come_and_go_are_met_as_those_that_change(gold):
    gold.sql(f"INSERT INTO {{table}} VALUES (1, {DAYS}, 'late'), (9, 9, 'nobody')", "products")
    assert (found := gold.refresh()).touched == 1 and fates(found) == (0, 1, 0, 0)
    gold.sql("DELETE FROM {table} WHERE id = 7", "products")
    assert (found := gold.refresh()).touched == 1 and fates(found) == (0, 1, 0, 0)


def test_both_may_change_at_once_and_a_run_may_die_in_between(gold):
    change(gold, "shop = 1 AND id = 2")
    gold.sql("UPDATE {table} SET product = 2 WHERE product = 3")
    gold.sql("DELETE FROM {table} WHERE product = 6")
    gold.die(BEFORE)
    change(gold, "shop = 1 AND id = 8")
    report = gold.run()
    assert report.exit_code is ExitCode.DONE, report.error
    gold.check()
    assert gold.run().exit_code is ExitCode.NOTHING_NEW


def test_a_change_that_nobody_can_read_any_more_has_all_computed(gold):
    gold.sql(
        "ALTER TABLE {table} SET TBLPROPERTIES (delta.enableChangeDataFeed = false)", "products"
    )
    change(gold, "id = 1")
    assert "changed or deleted rows while its change feed was off" in gold.refresh().whole


def test_an_input_that_was_read_as_a_whole_before_is_read_commit_by_commit_after_a_reset(gold):
    gold.query = replace(WORTH, inputs=("orders",), static=("products",), through={})
    error = gold.run().error
    assert "before: orders, products; now: one" in error
    assert "`sluice reset gold --step daily` has all computed again" in error
    reset = [
        *("reset", "--spec", str(gold.write()), "--root", str(gold.folder / "root")),
        *("--step", "daily", "--yes"),
    ]
    assert CliRunner().invoke(app, reset).exit_code == 0
    assert gold.refresh().touched == DAYS


def test_its_table_is_verified_in_part_and_redone_in_a_range(gold):
    with gold.unseen():
        gold.spark.sql(f"UPDATE delta.`{gold.target()}` SET total = 0 WHERE day = '2026-01-05'")
    pipeline = load_pipeline(gold.write())
    (step,), paths = pipeline.steps, pipeline.paths(str(gold.folder / "root"))
    found = verify_groups(gold.spark, pipeline, step, paths)
    assert (found.rows, found.missing, found.surplus) == (DAYS, 1, 1)
    assert found.versions == {n: table_version(gold.path(n)) for n in ("orders", "products")}
    change(gold, "shop = 1 AND id = 5")
    days = Window(start=datetime(2026, 1, 4), end=datetime(2026, 1, 6))
    report = gold.run(redo=Redo(step="daily", window=days))
    (batch,) = report.steps[0].batches
    assert (batch.refresh.touched, fates(batch.refresh)) == (2, (0, 1, 0, 1))
    gold.refresh()
    part = verify_groups(gold.spark, pipeline, step, paths, 0.5)
    assert part.equal and 0 < part.rows < DAYS
