"""The further sinks follow the target: one that is away, refuses, is taken out or added later ends
with exactly the target's rows, whatever happens to the checkpoint, the log or the run meanwhile."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from sluice.errors import ExitCode
from sluice.report import list_reports
from sluice.spec import Refill, Window

from tests.servers.store import ORDER, STEP, Store, assert_followed, lack, order, write_to
from tests.spark.factories import Project

PICKY = """
import pathlib
def note(rows, token):
    found = rows.collect()
    if any(row.n > {limit} for row in found):
        raise ValueError("too large")
    with open({place!r}, "a") as file:
        file.writelines(f"{{row.id}}\\n" for row in found)
"""


def delivered(shop: Project) -> Counter:
    """Rows by sink, over all reports."""
    total = Counter()
    for report in shop.reports:
        total.update(report.steps[0].delivered if report.steps else {})
    return total


def with_an_open_batch(shop: Project, store: Store) -> None:
    """One batch that everybody has, and one that the target has and the sink refused."""
    write_to(shop, store.sink)
    shop.land("1.json", order(1))
    assert shop.run().error is None
    store.refuse_above(10)
    shop.land("2.json", order(2) + order(99))
    refused = shop.run()
    assert (refused.status, refused.exit_code) == ("undelivered", ExitCode.TERMINAL)
    assert lack(refused) == (1, 2)
    store.accept()


def test_a_sink_that_is_away_for_some_runs_holds_nothing_up_and_one_run_fills_it(shop, store):
    write_to(shop, store.sink)
    shop.land("0.json", order(0))
    shop.run()
    store.postgres.stop()
    try:
        for number in range(1, 4):
            shop.land(f"{number}.json", order(number) + order(number - 1))
            report = shop.run()
            assert (report.status, report.exit_code) == ("undelivered", ExitCode.TRANSIENT)
            assert (report.counts.written, report.counts.duplicate) == (1, 1)
            assert lack(report) == (number, number)
            assert f"lacks {number} row" in report.error
        assert shop.plan().must_run
    finally:
        store.postgres.start()
    filled = shop.run()  # nothing new waits
    assert (filled.error, filled.counts.read) == (None, 0)
    assert filled.steps[0].delivered == {f"jdbc {store.name}": 3}
    assert_followed(shop, store, *((f"o{number}", number) for number in range(4)))
    assert delivered(shop) == {f"jdbc {store.name}": 4}
    assert not shop.plan().must_run
    assert shop.run().status == "nothing new"


def test_a_batch_that_a_sink_refuses_for_good_holds_up_no_later_one(shop, store):
    with_an_open_batch(shop, store)
    store.refuse_above(10)
    shop.land("3.json", order(3))
    behind = shop.run()
    assert (behind.exit_code, lack(behind)) == (ExitCode.TERMINAL, (1, 2))
    assert store.rows == Counter([("o1", 1), ("o3", 3)])
    store.accept()
    assert shop.run().error is None
    assert_followed(shop, store, ("o1", 1), ("o2", 2), ("o3", 3), ("o99", 99))


def test_what_a_sink_lacks_outlives_the_checkpoint(shop, store):
    with_an_open_batch(shop, store)
    shutil.rmtree(shop.folder / "root" / "checkpoints")
    again = shop.run()
    assert (again.counts.read, again.counts.written, again.counts.duplicate) == (3, 0, 3)
    assert_followed(shop, store, ("o1", 1), ("o2", 2), ("o99", 99))


def test_a_batch_that_was_written_when_the_run_was_killed_outlives_the_checkpoint(
    shop, store, monkeypatch
):
    from sluice.streaming.following import Followers

    write_to(shop, store.sink)
    shop.land("1.json", order(1))
    shop.run()
    shop.land("2.json", order(2))
    with monkeypatch.context() as patch:

        def die(*_: object) -> None:
            raise RuntimeError("killed")

        patch.setattr(Followers, "follow", die)
        assert shop.run().status == "failed"
    shutil.rmtree(shop.folder / "root" / "checkpoints")
    shop.run()
    assert_followed(shop, store, ("o1", 1), ("o2", 2))


def test_a_sink_that_was_taken_out_gets_on_its_return_what_came_meanwhile(shop, store):
    with_an_open_batch(shop, store)
    write_to(shop)
    shop.land("3.json", order(3))
    shop.run()
    window = Window(start="2026-01-01", end="2026-01-03")
    shop.land("4.json", order(4))
    assert shop.run(window=window, run_id="back").counts.written == 1
    write_to(shop, store.sink)
    assert shop.plan().must_run
    assert shop.run().error is None
    wanted = [("o1", 1), ("o2", 2), ("o3", 3), ("o4", 4), ("o99", 99)]
    assert_followed(shop, store, *wanted)


def test_a_batch_stays_sendable_after_the_log_was_cleaned_and_the_files_rewritten(
    shop, store, spark
):
    with_an_open_batch(shop, store)
    table = DeltaTable.forPath(spark, shop.paths.table("s"))
    table.optimize().executeCompaction()
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    table.vacuum(0)
    log = Path(shop.paths.table("s")) / "_delta_log"
    newest = max(int(p.stem) for p in log.glob("*.json"))
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
        spark._jsparkSession, shop.paths.table("s")
    ).checkpoint()
    for commit in log.glob("*.json"):
        if int(commit.stem) < newest:
            commit.unlink()
            (log / f".{commit.name}.crc").unlink(missing_ok=True)
    shop.land("3.json", order(3))
    assert shop.run().error is None
    assert_followed(shop, store, ("o1", 1), ("o2", 2), ("o3", 3), ("o99", 99))


def test_rows_that_a_person_deleted_before_the_sink_had_them_are_told(shop, store, spark):
    with_an_open_batch(shop, store)
    DeltaTable.forPath(spark, shop.paths.table("s")).delete("id = 'o99'")
    report = shop.run()
    assert report.error is None
    (sent,) = report.steps[0].deliveries
    assert (sent.rows, sent.missing) == (1, 1)
    page = Path(shop.paths.reports()) / f"{report.run_id}.html"
    assert "1 row that jdbc" in page.read_text() and "had been deleted" in page.read_text()
    assert_followed(shop, store, ("o1", 1), ("o2", 2))


def test_a_restored_target_tells_that_the_sink_cannot_get_its_rows(shop, store, spark):
    with_an_open_batch(shop, store)
    table = DeltaTable.forPath(spark, shop.paths.table("s"))
    table.restoreToVersion(table.history(1).collect()[0].version - 1)
    report = shop.run()
    assert [(sent.rows, sent.missing) for sent in report.steps[0].deliveries] == [(0, 2)]
    assert_followed(shop, store, ("o1", 1))


def test_a_backfill_that_is_run_again_under_its_id_changes_nothing_in_any_sink(shop, spark):
    out = str(shop.folder / "out")
    write_to(shop, {"kind": "files", "path": out})
    shop.land("1.json", order(1) + order(2))
    window = Window(start="2026-01-01", end="2026-01-03")
    first = shop.run(window=window, run_id="cleared")
    assert first.counts.written == 2
    again = shop.run(window=window, run_id="cleared")
    assert (again.counts.written, again.counts.duplicate, again.error) == (0, 2, None)
    rows = Counter((r.id, r.n) for r in spark.read.parquet(out).collect())
    assert rows == shop.rows("id", "n") == Counter([("o1", 1), ("o2", 2)])


def test_user_code_that_refuses_a_row_for_good_gets_the_others_after_the_row_is_deleted(
    shop, spark, tmp_path
):
    place = tmp_path / "noted"
    (tmp_path / "f.py").write_text(PICKY.format(limit=100, place=str(place)))
    write_to(shop, {"kind": "foreach_batch", "function": "f.py:note"})
    shop.land("1.json", order(1) + order(500))
    first = shop.run()
    assert (first.status, lack(first)) == ("undelivered", (1, 2))
    assert "ValueError: too large" in first.error
    shop.land("2.json", order(2))
    shop.run()
    DeltaTable.forPath(spark, shop.paths.table("s")).delete("n > 100")
    assert shop.run().error is None
    assert sorted(place.read_text().split()) == ["o1", "o2"]
    assert shop.rows("id", "n") == Counter([("o1", 1), ("o2", 2)])


def test_a_step_behind_one_whose_sink_is_out_still_runs(shop, store, spark):
    write_to(shop, store.sink)
    shop.pipeline["steps"] = [
        {"name": "s", "source": {**shop.source, "path": str(shop.landing)}, **shop.step},
        {"name": "next", "source": {"kind": "table", "step": "s"}, "sink": {"mode": "append"}},
    ]
    shop.land("1.json", order(1))
    shop.run()
    store.refuse_above(0)
    shop.land("2.json", order(2))
    report = shop.run()
    assert (report.status, report.exit_code) == ("undelivered", ExitCode.TERMINAL)
    rows = spark.read.format("delta").load(shop.paths.table("next"))
    assert Counter(r.id for r in rows.collect()) == Counter(["o1", "o2"])


def test_a_sink_that_was_added_later_is_told_of_and_can_be_filled(shop, store):
    shop.land("1.json", order(1))
    shop.run()
    write_to(shop, store.sink)
    shop.land("2.json", order(2))
    added = shop.run()
    assert "follows the target from here on" in " ".join(added.steps[0].warnings)
    assert store.rows == Counter([("o2", 2)])
    filled = shop.run(refill=Refill(everything=True))
    assert (filled.error, filled.kind) == (None, "delivery")
    assert filled.steps[0].delivered == {f"jdbc {store.name}": 2}
    assert_followed(shop, store, ("o1", 1), ("o2", 2))


def test_a_sink_that_was_emptied_can_be_filled_again(shop, store, spark):
    out = shop.folder / "out"
    write_to(shop, store.sink, {"kind": "files", "path": str(out), "format": "json"})
    for number in range(3):
        shop.land(f"{number}.json", order(number))
        shop.run()
    store.run(f"TRUNCATE {store.name}")
    shutil.rmtree(out)
    for _ in range(2):  # also when it is asked for twice
        assert shop.run(refill=Refill(everything=True)).error is None
        wanted = [("o0", 0), ("o1", 1), ("o2", 2)]
        assert_followed(shop, store, *wanted)
        found = spark.read.json(str(out)).collect()
        assert Counter((row.id, row.n) for row in found) == Counter(wanted)


@pytest.mark.parametrize("act", ["TRUNCATE", "DROP TABLE", "another database"])
def test_a_sink_that_lost_its_rows_is_told_of_and_the_advice_fills_it(shop, store, act):
    write_to(shop, store.sink)
    shop.land("1.json", order(1))
    assert shop.run().steps[0].warnings == []
    if act == "another database":  # its table there is a new one, and so is its ledger
        store.run(f"ALTER TABLE {store.name} RENAME TO {store.name}_old")
        store.run("ALTER TABLE sluice_batches RENAME TO sluice_batches_old")
    else:
        store.run(f"{act} {store.name}")
    shop.land("2.json", order(2) + order(1))
    (told,) = shop.run().steps[0].warnings
    assert "is empty, although batches are noted as delivered to it" in told
    assert f"--sink 'jdbc {store.name}' --all" in told
    assert shop.run(refill=Refill(sink=f"jdbc {store.name}", everything=True)).error is None
    assert_followed(shop, store, ("o1", 1), ("o2", 2))
    shop.land("3.json", order(3))
    assert shop.run().steps[0].warnings == []
    if act == "another database":
        store.run("DROP TABLE sluice_batches")
        store.run("ALTER TABLE sluice_batches_old RENAME TO sluice_batches")


def test_a_position_that_cannot_be_read_is_refused_and_the_advice_loses_nothing(shop, store):
    with_an_open_batch(shop, store)
    (file,) = Path(shop.paths.positions("s")).glob("*.json")
    file.write_text(file.read_text()[:40])
    shop.land("3.json", order(3))
    refused = shop.run()
    assert refused.exit_code is ExitCode.TERMINAL
    assert "what the sink has got cannot be read" in refused.error
    file.rename(file.with_suffix(".broken"))
    shop.run()
    assert shop.run(refill=Refill(everything=True)).error is None
    assert_followed(shop, store, ("o1", 1), ("o2", 2), ("o3", 3), ("o99", 99))


def test_a_run_that_is_cleared_tells_each_delivery_once(shop, store):
    write_to(shop, store.sink)
    shop.land("1.json", order(1))
    shop.run(run_id="cleared")
    shop.land("2.json", order(2))
    shop.run(run_id="cleared")
    told = [
        sent.key
        for report in list_reports(shop.paths.reports())
        for sent in report.steps[0].deliveries
    ]
    assert len(told) == len(set(told)) == 2


def test_a_refused_row_is_named_by_its_keys_and_a_hidden_one_is_masked(shop, store):
    write_to(shop, store.sink)
    shop.land("1.json", order(1))
    shop.run()
    store.refuse_above(10)
    shop.land("2.json", order(2) + order(99))
    shop.run()
    assert "the row with id = o99" in shop.run().error
    shop.pipeline["pii"] = ["id"]
    hidden = shop.run().error
    assert "the row with id = …" in hidden and "o99" not in hidden


def test_a_topic_made_anew_takes_nothing_from_a_sink_that_lacks_what_the_target_has(
    spark, tmp_path, kafka_broker, store
):
    topic = kafka_broker.create_topic("followed_anew")
    source = {"kind": "kafka", "servers": kafka_broker.servers, "subscribe": topic}
    shop = Project(spark, tmp_path, {**source, "format": "json", "schema": ORDER}, {**STEP})
    write_to(shop, store.sink)
    kafka_broker.produce(topic, [order(1)])
    shop.run()
    store.refuse_above(10)
    kafka_broker.produce(topic, [order(2), order(99)])
    assert lack(shop.run()) == (1, 2)
    kafka_broker.delete_topic(topic)
    kafka_broker.create_topic(topic)
    kafka_broker.produce(topic, [order(n) for n in range(3, 9)])
    refused = shop.run()
    assert "were made anew" in refused.error and "move the checkpoint" in refused.error
    shutil.move(shop.paths.checkpoint("s"), tmp_path / "away")  # the advice
    store.accept()
    assert shop.run().error is None
    assert_followed(shop, store, *((f"o{n}", n) for n in (1, 2, *range(3, 9), 99)))


def test_a_range_is_not_replaced_behind_the_back_of_a_sink_that_was_taken_out(shop, store):
    write_to(shop, store.sink)
    shop.land("1.json", order(1))
    assert shop.run().error is None
    write_to(shop)
    month = Window(start="2026-01-01", end="2026-02-01")
    refused = shop.run(window=month, write="replace")
    assert refused.exit_code is ExitCode.TERMINAL
    assert f"jdbc {store.name} (taken out)" in refused.error
    assert shop.run(window=month, write="merge").error is None
    write_to(shop, store.sink)
    shop.land("2.json", order(2))
    assert shop.run().error is None
    assert_followed(shop, store, ("o1", 1), ("o2", 2))
    write_to(shop)
    (position,) = Path(shop.paths.positions("s")).glob("*.json")
    position.unlink()  # the advice
    assert shop.run(window=month, write="replace").error is None
    assert shop.rows("id", "n") == Counter([("o1", 1), ("o2", 2)])
