"""Refresh by group where people write to the table itself: what they changed is computed again by
the next run, which wakes for it, and nothing else is."""

import pytest
from sluice.backlog import measure_step
from sluice.errors import ExitCode
from sluice.report.text import render_text
from sluice.spec import load_pipeline
from sluice.streaming import recompute

from tests.spark.gold import Gold
from tests.spark.test_refresh_history import SUMS, add, fates, open_gold, order


@pytest.fixture
def gold(spark, tmp_path):
    """Three days of sums, after two runs."""
    gold = open_gold(spark, tmp_path, SUMS)
    gold.refresh()
    add(gold, order(10, 2))
    gold.refresh()
    return gold


def do(gold: Gold, statement: str) -> None:
    gold.spark.sql(statement.format(table=f"delta.`{gold.target()}`"))


def why_run(gold: Gold) -> str:
    """Why a run would start; empty where it would not."""
    pipeline = load_pipeline(gold.write())
    paths = pipeline.paths(str(gold.folder / "root"))
    found = measure_step(pipeline, pipeline.steps[0], paths)
    return found.reason if found.must_run else ""


CHANGED = {
    "UPDATE {table} SET total = 0 WHERE day = '2026-01-02'": ("UPDATE", (0, 1, 0)),
    "DELETE FROM {table} WHERE day > '2026-01-01'": ("DELETE", (2, 0, 0)),
    "INSERT INTO {table} BY NAME SELECT DATE '2020-01-01' AS day, 1 AS rows": ("WRITE", (0, 0, 1)),
    "RESTORE TABLE {table} TO VERSION AS OF 1": ("RESTORE", (0, 1, 0)),
    "TRUNCATE TABLE {table}": ("TRUNCATE", (3, 0, 0)),
}
"""What somebody does -> its operation, and how many groups come again, change back and go."""


def test_what_somebody_changed_is_computed_again_though_nothing_is_new(gold):
    for statement, (operation, done) in CHANGED.items():
        do(gold, statement)
        assert f"somebody else wrote to the step's table ({operation}" in why_run(gold)
        found = gold.refresh()
        assert (found.whole, fates(found)[:3]) == ("", done), statement
        assert why_run(gold) == ""
    assert gold.run().exit_code is ExitCode.NOTHING_NEW


def test_a_report_says_what_was_done_to_the_table_and_that_it_is_undone(gold):
    do(gold, "RESTORE TABLE {table} TO VERSION AS OF 1")
    said = " ".join(render_text(gold.run()).split())
    assert "RESTORE to version 1 by somebody" in said
    assert "what it changed is computed again" in said
    assert "backfill" not in said


def test_it_is_computed_before_what_is_new(gold):
    do(gold, "UPDATE {table} SET total = 0 WHERE day = '2026-01-01'")
    add(gold, order(11, 9))
    report = gold.run()
    gold.check()
    done = [batch.refresh for batch in report.steps[0].batches]
    assert [(one.touched, fates(one)) for one in done] == [(1, (0, 1, 0, 0)), (1, (1, 0, 0, 0))]


def test_what_changes_no_row_starts_no_run(gold):
    do(gold, "OPTIMIZE {table}")
    do(gold, "ALTER TABLE {table} SET TBLPROPERTIES (told = 'something')")
    assert why_run(gold) == ""


def test_what_was_done_while_the_table_kept_no_feed_has_all_computed(gold):
    for text in ("false", "true"):
        do(gold, f"ALTER TABLE {{table}} SET TBLPROPERTIES (delta.enableChangeDataFeed = {text})")
        do(gold, "UPDATE {table} SET total = 0 WHERE day = '2026-01-02'")
    assert "its change feed is gone (UPDATE, version" in gold.refresh().whole


def test_what_is_done_while_a_run_lasts_is_left_to_the_next(gold, monkeypatch):
    find = recompute.find_beside

    def find_and_write(*args: object) -> object:
        found = find(*args)
        do(gold, "INSERT INTO {table} BY NAME SELECT DATE '2020-01-01' AS day, 1 AS rows")
        return found

    add(gold, order(12, 3))
    monkeypatch.setattr(recompute, "find_beside", find_and_write)
    assert gold.run().error is None
    monkeypatch.undo()
    assert "WRITE" in why_run(gold)
    assert fates(gold.refresh()) == (0, 0, 1, 0)
