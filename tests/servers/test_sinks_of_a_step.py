"""Several sinks in one step, written from one batch, against real servers.

Each row of the target is once in each, also when a batch comes again.
"""

import json
from collections import Counter
from pathlib import Path

import pytest
from sluice.errors import ExitCode
from sluice.sinks.jdbc.sink import JdbcWriter
from sluice.spec import Window

from tests.spark.factories import Project

ORDER = {"id": "string", "n": "bigint", "at": "timestamp"}
STEP = {"event_time": {"column": "at"}, "dedup": {"keys": ["id"], "within": "2 days"}}
FUNCTION = """
import pathlib
def note(rows, token):
    with open({place!r}, "a") as file:
        file.writelines(f"{{token}} {{row.id}}\\n" for row in rows.collect())
"""


def order(number: int, n: int | None = None) -> str:
    return (
        json.dumps(
            {"id": f"o{number}", "n": number if n is None else n, "at": "2026-01-01T00:00:00Z"}
        )
        + "\n"
    )


def jdbc(postgres, table: str, **more: object) -> dict:
    return {**postgres.as_sink(table), **more}


@pytest.fixture
def project(spark, postgres, tmp_path, monkeypatch):
    """A pipeline over a folder of JSON orders with the given sinks."""
    monkeypatch.setenv("PG_PASSWORD", postgres.password)

    def make(*sinks: dict, **step: object) -> Project:
        return Project(
            spark,
            tmp_path,
            {"kind": "files", "format": "json", "schema": ORDER},
            {**STEP, "sink": list(sinks), **step},
        )

    return make


def select(postgres, table: str) -> Counter:
    with postgres.connect() as connection:
        return Counter(connection.execute(f"SELECT id, n FROM {table}").fetchall())


def sent(kafka_broker, topic: str) -> Counter:
    """The records of a topic as a multiset, those sent again left out by their headers."""
    once = {
        (headers["sluice.batch"], headers["sluice.position"]): r.value
        for r in kafka_broker.read(topic)
        for headers in [dict(r.headers)]
    }
    return Counter((value["id"], value["n"]) for value in map(json.loads, once.values()))


def forget_commit(project: Project, batch: int) -> None:
    """As if the process had died between the sinks and the checkpoint's commit."""
    commits = project.folder / "root" / "checkpoints" / "p" / "s" / "spark" / "commits"
    for name in (str(batch), f".{batch}.crc"):
        (commits / name).unlink(missing_ok=True)


def test_every_sink_gets_the_rows_of_the_target_once_also_when_a_batch_comes_again(
    project, spark, postgres, kafka_broker, tmp_path, capsys
):
    topic = kafka_broker.create_topic("every_sink", partitions=2)
    (tmp_path / "f.py").write_text(FUNCTION.format(place=str(tmp_path / "noted")))
    shop = project(
        {"kind": "delta"},
        jdbc(postgres, "every_sink"),
        {"kind": "kafka", "servers": kafka_broker.servers, "topic": topic, "key": "id"},
        {"kind": "files", "path": "out", "format": "csv"},
        {"kind": "foreach_batch", "function": "f.py:note"},
        {"kind": "memory", "name": "every_sink"},
        {"kind": "console", "rows": 1},
    )
    shop.land("1.json", order(1) + order(1) + order(2) + "{broken\n")
    first = shop.run()
    assert first.error is None
    places = [
        "jdbc every_sink",
        "kafka every_sink",
        "files out",
        "foreach_batch f.py:note",
        "memory every_sink",
        "console",
    ]
    assert first.steps[0].delivered == dict.fromkeys(places, 2)
    shop.land("2.json", order(2) + order(3))
    shop.run()
    forget_commit(shop, 1)
    again = shop.run()
    assert [batch.replayed for batch in again.steps[0].batches] == [True]
    # What is only looked at is shown again; the others are known to have the batch.
    assert again.steps[0].delivered == dict.fromkeys(places[-2:], 1)
    wanted = Counter([("o1", 1), ("o2", 2), ("o3", 3)])
    assert (
        shop.rows("id", "n")
        == select(postgres, "every_sink")
        == sent(kafka_broker, topic)
        == wanted
    )
    assert (
        Counter(
            (r.id, int(r.n))
            for r in spark.read.option("header", True).csv(str(tmp_path / "root" / "out")).collect()
        )
        == wanted
    )
    assert Counter((r.id, r.n) for r in spark.table("every_sink").collect()) == wanted
    noted = Counter((tmp_path / "noted").read_text().splitlines())
    assert sorted(line.rpartition(" ")[2] for line in noted) == ["o1", "o2", "o3"]
    assert max(noted.values()) == 1 and len(kafka_broker.read(topic)) == 3
    assert "rows were delivered to jdbc every_sink" in " ".join(
        (Path(shop.paths.reports()) / f"{first.run_id}.html").read_text().split()
    )


def test_a_row_that_replaces_its_copy_reaches_the_sinks_and_an_upsert_keeps_one(project, postgres):
    shop = project(
        {"kind": "delta"},
        jdbc(postgres, "replaced", mode="upsert", keys=["id"]),
        dedup={"keys": ["id"], "within": "2 days", "order_by": ["n desc"]},
    )
    shop.land("1.json", order(1, n=5) + order(2, n=1))
    shop.run()
    shop.land("2.json", order(1, n=7) + order(2, n=0))
    report = shop.run()
    assert report.error is None
    assert select(postgres, "replaced") == shop.rows("id", "n") == Counter([("o1", 7), ("o2", 1)])


def test_an_upsert_never_lets_an_older_row_overwrite_a_newer_one(project, postgres):
    def at(number: int, n: int, day: int) -> str:
        row = {"id": f"o{number}", "n": n, "at": f"2026-01-{day:02}T00:00:00Z"}
        return json.dumps(row) + "\n"

    shop = project({"kind": "delta"}, jdbc(postgres, "newest", mode="upsert", keys=["id"]))
    shop.land("1.json", at(1, 10, day=10) + at(2, 3, day=3) + at(2, 9, day=9) + at(2, 6, day=6))
    assert shop.run().error is None  # two rows of one key in a batch, farther apart than `within`
    assert select(postgres, "newest") == Counter([("o1", 10), ("o2", 9)])
    shop.land("2.json", at(1, 1, day=1) + at(2, 12, day=12))
    assert shop.run().error is None
    assert select(postgres, "newest") == Counter([("o1", 10), ("o2", 12)])
    assert sum(shop.rows("id", "n").values()) == 6


def test_a_step_without_a_target_writes_its_good_rows_and_accounts_for_the_others(
    project, postgres
):
    shop = project(
        jdbc(postgres, "no_target"), dedup={"keys": ["id"], "within": "2 days", "memory": "state"}
    )
    shop.land("1.json", order(1) + order(1) + order(2) + "{broken\n")
    counts = shop.run().counts
    assert (counts.read, counts.written, counts.quarantined, counts.duplicate) == (4, 2, 1, 1)
    shop.land("2.json", order(2) + order(3))
    counts = shop.run().counts
    assert (counts.read, counts.written, counts.duplicate) == (2, 1, 1)
    assert select(postgres, "no_target") == Counter([("o1", 1), ("o2", 2), ("o3", 3)])


def test_a_database_that_is_away_ends_the_run_as_one_that_may_pass_and_the_next_completes_it(
    project, postgres, monkeypatch
):
    shop = project({"kind": "delta"}, jdbc(postgres, "away"))
    shop.land("1.json", order(1))
    shop.run()
    shop.land("2.json", order(2) + order(2))
    original = JdbcWriter.deliver

    def stop_first(self, rows, delivery):
        postgres.stop()  # when the target has the batch
        return original(self, rows, delivery)

    monkeypatch.setattr(JdbcWriter, "deliver", stop_first)
    try:
        report = shop.run()
    finally:
        monkeypatch.setattr(JdbcWriter, "deliver", original)
        postgres.start()
    assert report.exit_code is ExitCode.TRANSIENT
    assert (report.counts.read, report.counts.written, report.counts.duplicate) == (2, 1, 1)
    assert postgres.password not in report.model_dump_json()
    done = shop.run()
    assert (done.error, done.counts.read) == (None, 0)
    assert done.steps[0].delivered == {"jdbc away": 1}
    assert select(postgres, "away") == shop.rows("id", "n") == Counter([("o1", 1), ("o2", 2)])


def test_a_backfill_sends_only_what_was_missing_and_refuses_to_send_a_range_again(
    project, postgres
):
    shop = project({"kind": "delta"}, jdbc(postgres, "range_again"))
    shop.land("1.json", order(1) + order(2))
    shop.run()
    window = Window(start="2026-01-01", end="2026-01-02")
    shop.land("2.json", order(3))
    assert shop.run(window=window).counts.written == 1
    upsert = jdbc(postgres, "range_again", mode="upsert", keys=["id"])
    for sinks in (shop.step["sink"], [{"kind": "delta"}, upsert]):
        shop.step["sink"] = sinks  # an upsert would keep what the range no longer has
        refused = shop.run(window=window, write="replace")
        assert refused.exit_code is ExitCode.TERMINAL
        assert "replacing a range would send its rows again" in refused.error
    assert select(postgres, "range_again") == Counter([("o1", 1), ("o2", 2), ("o3", 3)])


def test_a_target_has_a_name_in_the_catalog(project, spark):
    shop = project({"kind": "delta", "name": "named_orders"})
    shop.land("1.json", order(1))
    try:
        shop.run()
        shop.land("2.json", order(1) + order(2))
        shop.run()
        assert (
            Counter((r.id, r.n) for r in spark.table("named_orders").collect())
            == shop.rows("id", "n")
            == Counter([("o1", 1), ("o2", 2)])
        )
    finally:
        spark.sql("DROP TABLE IF EXISTS named_orders")
