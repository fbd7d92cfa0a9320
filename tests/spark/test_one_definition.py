"""A batch is finished under one definition.

Each test breaks the target while a batch is written, when its refused and late rows are stored
already, changes the pipeline or its input, and runs again: the whole batch is judged anew. Or it
lets another checkpoint meet the same records first: what a half-done try left counts for nobody.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sluice.checkpoint import begin_anew
from sluice.errors import ExitCode
from sluice.report import Counts

from tests.long_runs import leave

from .kept import Kept
from .shop import RULES, Shop, order

FIELDS = {"order_id": "string", "amount": "double", "at": "timestamp", "region": "string"}
WHOLE = {"start": "2026-01-01", "end": "2026-02-01"}
AT_MOST_100 = {
    "type": "expect_column_values_to_be_between",
    "kwargs": {"column": "amount", "max_value": 100},
    "on_fail": "quarantine",
    "name": "amount_at_most_100",
}


def sale(number: int, amount: float = 1.0, **more: object) -> dict:
    """An order of the region whose part of the target can be broken."""
    return order(number, **{"day": 20, "amount": amount, "region": "eu", **more})


@pytest.fixture(scope="module")
def kept(spark, tmp_path_factory) -> Kept[Shop]:
    shop = Shop(
        tmp_path_factory.mktemp("kept") / "shop",
        source={"schema": FIELDS},
        sink={"kind": "delta", "partition_by": ["region"]},
        rules=RULES,
        dedup={"late": "keep"},
    )
    shop.land(sale(100, region="us"))
    assert shop.run().status == "done"
    return Kept(spark, shop)


@pytest.fixture
def shop(kept) -> Shop:
    """A shop whose tables exist, with a first order far from all others in region `us`."""
    return kept.put_back()


@contextmanager
def broken_target(shop: Shop) -> Iterator[None]:
    """While it lasts, no row of region `eu` is written: a file lies where its folder belongs."""
    obstacle = shop.root / "tables" / "orders" / "paid" / "region=eu"
    obstacle.write_text("")
    try:
        yield
    finally:
        obstacle.unlink()


def fail_once(shop: Shop, spark) -> None:
    """One run that cannot write the target."""
    with broken_target(shop):
        report = shop.run("broken")
    assert report.exit_code is not ExitCode.DONE and report.error
    assert shop.ids(spark) == ["o100"]


def finish(shop: Shop) -> Counts:
    """The next run, which must end well."""
    report = shop.run("mended")
    assert (report.status, report.error) == ("done", None)
    return report.counts


def fates(counts: Counts) -> tuple[int, ...]:
    return counts.read, counts.written, counts.quarantined, counts.duplicate, counts.late


def test_a_rule_that_is_added_before_the_retry_judges_every_row_of_the_batch(spark, shop):
    shop.land(sale(1), sale(2, -1.0), sale(3, 5000.0), sale(4, 6000.0))
    fail_once(shop, spark)
    shop.step["rules"] = [*RULES, AT_MOST_100]
    shop.write()
    assert fates(finish(shop)) == (4, 1, 3, 0, 0)
    assert shop.ids(spark) == ["o1", "o100"]
    assert shop.reasons(spark) == {("amount_not_negative",): 1, ("amount_at_most_100",): 2}


def test_a_rule_that_is_loosened_before_the_retry_takes_back_what_it_refused(spark, shop):
    shop.land(sale(1), sale(2, -1.0))
    fail_once(shop, spark)
    shop.step["rules"] = []
    shop.write()
    assert fates(finish(shop)) == (2, 2, 0, 0, 0)
    assert shop.ids(spark) == ["o1", "o100", "o2"]
    assert shop.reasons(spark) == {}


def test_a_transform_that_changes_before_the_retry_is_the_one_by_which_all_is_judged(spark, shop):
    shop.step |= {"rules": [*RULES, AT_MOST_100], "transform": "t.sql"}
    transform = shop.folder / "t.sql"
    transform.write_text("SELECT order_id, amount, at, region FROM source")
    shop.write()
    shop.land(sale(1, 5.0), sale(2, -1.0), sale(3, 50.0))
    fail_once(shop, spark)
    transform.write_text("SELECT order_id, amount * 10 AS amount, at, region FROM source")
    assert fates(finish(shop)) == (3, 1, 2, 0, 0)
    paid = shop.rows(spark, columns=("order_id", "amount"))
    assert paid == {("o100", 1.0): 1, ("o1", 50.0): 1}
    assert shop.reasons(spark) == {("amount_not_negative",): 1, ("amount_at_most_100",): 1}


def test_a_policy_for_late_rows_that_changes_before_the_retry_leaves_each_in_one_table(spark, shop):
    shop.land(sale(1), sale(2, day=2))
    fail_once(shop, spark)
    shop.step["dedup"] |= {"late": "merge"}
    shop.write()
    assert fates(finish(shop)) == (2, 2, 0, 0, 0)
    assert shop.ids(spark) == ["o1", "o100", "o2"]
    assert shop.rows(spark, "paid__late", ("order_id",)) == {}


def test_keys_that_change_before_the_retry_are_the_ones_a_row_is_refused_by(spark, shop):
    shop.land(sale(1), {**sale(2), "order_id": None}, {**sale(3), "region": "eu"})
    fail_once(shop, spark)
    shop.step["dedup"] |= {"keys": ["amount", "at"]}
    shop.write()
    assert fates(finish(shop)) == (3, 3, 0, 0, 0)
    assert shop.rows(spark, columns=("order_id",)) == {
        ("o100",): 1,
        ("o1",): 1,
        (None,): 1,
        ("o3",): 1,
    }
    assert shop.reasons(spark) == {}


def test_a_file_that_is_gone_before_the_retry_is_told_and_its_rows_are_taken_back(spark, shop):
    shop.land(sale(1), sale(2, -1.0))
    gone = shop.land(sale(3), sale(4, -1.0))
    fail_once(shop, spark)
    gone.unlink()
    assert fates(finish(shop)) == (3, 1, 2, 0, 0)
    assert shop.ids(spark) == ["o1", "o100"]
    assert shop.reasons(spark) == {("amount_not_negative",): 1, ("unreadable_file",): 1}


def test_the_only_file_that_refused_a_row_is_gone_before_the_retry(spark, shop):
    shop.land(sale(1), sale(2))
    gone = shop.land("{broken")
    fail_once(shop, spark)
    gone.unlink()
    assert fates(finish(shop)) == (3, 2, 1, 0, 0)
    assert shop.ids(spark) == ["o1", "o100", "o2"]
    assert shop.reasons(spark) == {("unreadable_file",): 1}


def test_a_file_that_is_mended_before_the_retry_is_judged_by_what_it_says_now(spark, shop):
    mended = shop.land(sale(1), sale(2, -1.0))
    fail_once(shop, spark)
    mended.write_text(mended.read_text().replace("-1.0", "1.0") + "{broken\n")
    assert fates(finish(shop)) == (3, 2, 1, 0, 0)
    assert shop.ids(spark) == ["o1", "o100", "o2"]
    assert shop.reasons(spark) == {("malformed",): 1}


def test_a_batch_that_failed_twice_under_two_definitions_has_the_fates_of_the_third(spark, shop):
    shop.land(sale(1), sale(2, -1.0), sale(3, 5000.0), sale(4, day=2))
    fail_once(shop, spark)
    shop.step["rules"] = []
    shop.write()
    fail_once(shop, spark)
    shop.step["rules"] = [AT_MOST_100]
    shop.write()
    assert fates(finish(shop)) == (4, 2, 1, 0, 1)
    assert shop.ids(spark) == ["o1", "o100", "o2"]
    assert shop.reasons(spark) == {("amount_at_most_100",): 1}
    assert shop.rows(spark, "paid__late", ("order_id",)) == {("o4",): 1}


def test_rows_that_earlier_batches_refused_stay_when_a_half_done_one_is_taken_back(spark, shop):
    shop.land(sale(5, -5.0), sale(6, day=2))
    assert shop.run("calm").counts.quarantined == 1
    shop.land(sale(1), sale(2, -1.0), sale(5, -5.0), sale(6, day=2))
    fail_once(shop, spark)
    shop.step["rules"] = [*RULES, AT_MOST_100]
    shop.write()
    assert fates(finish(shop)) == (4, 1, 1, 2, 0)
    assert shop.reasons(spark) == {("amount_not_negative",): 2}
    assert shop.rows(spark, "paid__late", ("order_id",)) == {("o6",): 1}


def test_a_retry_under_the_same_definition_writes_nothing_twice(spark, shop):
    shop.land(sale(1), sale(1), sale(2, -1.0), sale(4, day=2), "{broken")
    fail_once(shop, spark)
    fail_once(shop, spark)
    assert fates(finish(shop)) == (5, 1, 2, 1, 1)
    assert shop.ids(spark) == ["o1", "o100"]
    assert shop.reasons(spark) == {("amount_not_negative",): 1, ("malformed",): 1}
    assert shop.rows(spark, "paid__late", ("order_id",)) == {("o4",): 1}


def fill(shop: Shop) -> None:
    """A batch with a good row, a refused one and a copy of that, and a late one."""
    shop.land(sale(1), sale(2, -1.0), sale(2, -1.0), sale(3, day=2))


def test_a_backfill_before_the_retry_takes_over_what_the_half_done_try_refused(spark, shop):
    fill(shop)
    fail_once(shop, spark)
    backfilled = shop.run("backfill", window=WHOLE).counts
    # the order of the fixture is a copy; a backfill knows no late rows
    assert fates(backfilled) == (5, 2, 1, 2, 0)
    assert fates(finish(shop)) == (4, 0, 0, 4, 0)
    assert shop.ids(spark) == ["o1", "o100", "o3"]
    assert shop.reasons(spark) == {("amount_not_negative",): 1}


def test_a_rule_that_is_loosened_after_a_backfill_leaves_what_that_refused(spark, shop):
    fill(shop)
    fail_once(shop, spark)
    assert shop.run("backfill", window=WHOLE).counts.quarantined == 1
    shop.step["rules"] = []
    shop.write()
    # Judged under no rule now, the refused order is good; the reading before keeps its fate.
    assert fates(finish(shop))[1:4] == (1, 0, 3)
    assert shop.reasons(spark) == {("amount_not_negative",): 1}


@pytest.mark.parametrize("table", leave(["paid__quarantine", "paid__late"], "paid__late"))
def test_a_checkpoint_that_is_begun_anew_counts_what_a_half_done_try_left(spark, shop, table):
    fill(shop)
    fail_once(shop, spark)
    assert sum(shop.rows(spark, table, ("_batch_key",)).values()) == 1
    shutil.rmtree(shop.root / "checkpoints" / "orders" / "paid")
    shop.land(sale(4, -2.0))
    counts = finish(shop)
    # Without a watermark of its own the new checkpoint takes the late row as a timely one.
    assert fates(counts) == (6, 2, 2, 2, 0)
    generations = {key.rpartition("/")[0] for (key,) in shop.rows(spark, columns=("_batch_key",))}
    refused = shop.rows(spark, "paid__quarantine", ("_batch_key",))
    assert {key.rpartition("/")[0] for (key,) in refused} < generations


def test_a_batch_of_refused_rows_alone_is_final_by_an_empty_commit_of_the_target(spark, shop):
    shop.land(sale(2, -1.0))
    assert fates(shop.run("all refused").counts) == (1, 0, 1, 0, 0)
    log = shop.root / "tables" / "orders" / "paid" / "_delta_log"
    newest = max(log.glob("*.json")).read_text()
    assert '"all refused' in newest.replace("\\", "") and '"add":' not in newest
    assert fates(shop.run("backfill", window=WHOLE).counts) == (2, 0, 0, 2, 0)
    assert shop.run("idle").status == "nothing new"
    assert shop.run("again", window=WHOLE).counts.duplicate == 2


def test_refused_rows_that_nobody_will_finish_are_told_where_rows_are_not_compared(spark, tmp_path):
    sink = {"kind": "delta", "mode": "append", "partition_by": ["region"]}
    shop = Shop(tmp_path, source={"schema": FIELDS}, sink=sink, rules=RULES)
    shop.step["dedup"] = None
    shop.write()
    shop.land(sale(100, region="us"))
    assert shop.run().status == "done"
    shop.land(sale(1, amount=-1.0), sale(2))
    fail_once(shop, spark)
    begin_anew(str(shop.root / "checkpoints" / "orders" / "paid"))  # as `sluice reset --append`
    report = shop.run("anew")
    assert (report.status, report.counts.quarantined) == ("done", 1)
    assert shop.reasons(spark).total() == 2
    (told,) = [w for w in report.steps[0].warnings if "no report counts them" in w]
    assert told.startswith("1 row(s) in quarantine")
    spark.sql(told.partition("To remove them: ")[2])
    assert shop.reasons(spark).total() == 1
    assert shop.run("idle").status == "nothing new"
