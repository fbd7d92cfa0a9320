"""`sluice redo`: the groups of a range are computed again, from what the table was made of; what is
new in the inputs, and the schedule's place in them, stays."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pyspark.sql import functions as F
from sluice.checkpoint import Checkpoint
from sluice.cli.app import app
from sluice.errors import ExitCode
from sluice.report import RunReport
from sluice.spec import Redo, Window
from typer.testing import CliRunner

from tests.spark.gold import AFTER, BEFORE, Gold, dying
from tests.spark.gold_queries import Query
from tests.spark.test_refresh_history import SUMS, add, open_gold, order

EARLY = Window(start=datetime(2026, 1, 1), end=datetime(2026, 1, 16))
ALL = Window(start=datetime(2026, 1, 1), end=datetime(2026, 2, 1))
MONTHS = Query(
    "SELECT date_trunc('month', at) AS month, count(*) AS rows FROM source GROUP BY 1",
    {"month": "date_trunc('month', at)"},
)


@pytest.fixture(scope="module")
def started(spark, tmp_path_factory):
    """Orders of the first three days of January and of the last, after one run."""
    gold = open_gold(spark, tmp_path_factory.mktemp("started"), SUMS)
    add(gold, order(5, 31))
    gold.refresh()
    return gold


@pytest.fixture
def gold(tmp_path, started):
    return started.copied(tmp_path)


def redo(gold: Gold, window: Window = EARLY) -> RunReport:
    return gold.run(redo=Redo(step="daily", window=window))


def spoil(gold: Gold) -> None:
    """The table is wrong, and nobody can tell by its log: rows go, change and come."""
    table = f"delta.`{gold.target()}`"
    rows = gold.spark.read.format("delta").load(gold.target()).where("day = '2026-01-03'")
    moved = rows.withColumn("day", F.lit("2026-01-10").cast("date"))
    with gold.unseen():
        gold.spark.sql(f"DELETE FROM {table} WHERE day = '2026-01-01'")
        gold.spark.sql(f"UPDATE {table} SET total = 0 WHERE day IN ('2026-01-02', '2026-01-31')")
        moved.write.format("delta").mode("append").save(gold.target())


def offsets(gold: Gold) -> list[str]:
    """What the schedule has read up to."""
    checkpoint = Checkpoint.below(f"{gold.folder}/root/checkpoints/gold/daily")
    newest = checkpoint.newest_commit
    assert checkpoint.open_batch is None and newest is not None
    return checkpoint.offsets[newest].read_text().splitlines()[2:]


def test_the_groups_of_a_range_are_as_the_query_says_and_others_as_they_were(gold):
    whole, before = Counter(gold.batch(gold.versions).collect()), offsets(gold)
    spoil(gold)
    report = redo(gold)
    assert (report.error, report.kind) == (None, "redo")
    assert report.window == "2026-01-01 00:00:00+00:00 .. 2026-01-16 00:00:00+00:00"
    (batch,) = report.steps[0].batches
    found = batch.refresh
    assert (found.touched, found.inserted, found.updated, found.deleted) == (4, 1, 1, 1)
    assert found.whole == ""
    held = Counter(gold.table().collect())
    assert [row.day.day for row in held - whole] == [31]  # out of the range, so left alone
    redo(gold, Window(start=datetime(2026, 1, 31), end=datetime(2026, 2, 2)))
    gold.check()
    assert offsets(gold) == before
    assert gold.run().exit_code is ExitCode.NOTHING_NEW


def test_the_command_names_step_and_range_and_shows_what_became_of_the_groups(gold):
    spoil(gold)
    root = str(gold.folder / "root")
    asked = ["--step", "daily", "--from", "2026-01-01", "--to", "2026-01-16"]
    shown = CliRunner().invoke(app, ["redo", "--spec", str(gold.write()), "--root", root, *asked])
    assert shown.exit_code == 0, shown.output
    told = "Groups: 4 touched = 1 inserted + 1 updated + 1 deleted + 1 unchanged"
    assert "(redo, 2026-01-01 00:00:00+00:00" in shown.output and told in shown.output
    empty = [*asked[:-1], "2026-01-01"]
    refused = CliRunner().invoke(app, ["redo", "--spec", str(gold.write()), "--root", root, *empty])
    assert refused.exit_code == 6 and "Write the earlier moment first" in refused.output


def test_what_is_new_in_the_inputs_is_left_to_the_next_run(gold):
    versions = gold.versions
    spoil(gold)
    add(gold, order(99, 2))
    report = redo(gold, ALL)
    assert report.error is None
    assert gold.versions == versions
    gold.check(newest=False)
    assert gold.refresh().updated == 1


def test_a_redo_that_dies_and_one_beside_an_open_batch_end_as_they_would_have(gold):
    spoil(gold)
    with dying(AFTER):
        assert redo(gold).error is not None
    again = gold.run()
    assert again.error is None
    assert again.steps[0].batches[0].refresh.updated == 1  # told by its commit
    with gold.unseen():
        gold.spark.sql(f"UPDATE delta.`{gold.target()}` SET total = 1 WHERE day = '2026-01-02'")
    add(gold, order(50, 31))
    with dying(AFTER):
        gold.run()
    assert redo(gold).error is None
    redo(gold, ALL)
    gold.check()


def test_a_redo_that_died_before_its_commit_has_changed_nothing_and_may_be_asked_for_again(gold):
    spoil(gold)
    before = Counter(gold.table().collect())
    with dying(BEFORE):
        assert redo(gold).error is not None
    assert gold.run().error is None  # finishes the batch, in which nothing is new
    assert Counter(gold.table().collect()) == before
    assert redo(gold, ALL).error is None
    gold.check()


def test_of_a_group_that_lies_in_the_range_in_part_all_is_computed(spark, tmp_path):
    gold = open_gold(spark, tmp_path, MONTHS)
    add(gold, "(9, TIMESTAMP '2026-02-03 12:00:00', 1, 'ann')")
    gold.refresh()
    with gold.unseen():
        gold.spark.sql(f"UPDATE delta.`{gold.target()}` SET rows = 0")
    report = redo(gold, Window(start=datetime(2026, 1, 30), end=datetime(2026, 2, 1)))
    assert report.steps[0].batches[0].refresh.updated == 1
    assert sorted(row.rows for row in gold.table().collect()) == [0, 4]


def test_what_cannot_be_computed_again_is_refused_and_leaves_no_batch_behind(gold, tmp_path):
    of_customers = "SELECT customer, count(*) AS rows FROM source GROUP BY 1"
    other = replace(gold, query=Query(of_customers, {"customer": "customer"}))
    report = redo(other)
    assert report.exit_code is ExitCode.TERMINAL
    assert "no group of the step is a date or a time" in report.error
    assert Checkpoint.below(f"{gold.folder}/root/checkpoints/gold/daily").open_batch is None
    named = gold.run(redo=Redo(step="nightly", window=EARLY))
    assert "no step of this name has `groups`" in named.error
    assert "There are: daily" in named.error


def test_a_step_that_has_not_run_has_nothing_to_compute_again(spark, tmp_path):
    gold = open_gold(spark, tmp_path, SUMS)
    add(gold, order(1, 1))
    report = redo(gold)
    assert report.exit_code is ExitCode.TERMINAL
    assert "no batch of the step is finished, so there is nothing to compute again" in report.error


def test_a_range_is_in_utc():
    window = Window(start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime(2026, 1, 2))
    assert window.literals[0] == "TIMESTAMP '2026-01-01 00:00:00.000000+00:00'"


def test_windows_that_have_a_part_in_the_range_are_computed_again(spark, tmp_path):
    cut = "window(at, '2 days', '1 day')"
    query = f"SELECT window.start AS began, count(*) AS rows FROM source GROUP BY {cut}"
    gold = open_gold(spark, tmp_path, Query(query, {"began": f"{cut}.start"}))
    add(gold, order(5, 31))
    gold.refresh()
    table = f"delta.`{gold.target()}`"
    with gold.unseen():
        gold.spark.sql(f"DELETE FROM {table} WHERE began = '2026-01-15'")
        gold.spark.sql(f"UPDATE {table} SET rows = 0 WHERE began < '2026-01-03'")
    report = redo(gold)
    assert report.error is None
    (batch,) = report.steps[0].batches
    assert (batch.refresh.touched, batch.refresh.updated) == (4, 3)
    gold.check()
