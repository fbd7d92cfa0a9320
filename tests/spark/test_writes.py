"""Rows come into a table once, whichever way they are compared with it, and whoever else writes."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sluice.spark import tables, writes
from sluice.spark.estimates import scanned_bytes
from sluice.spark.table_setup import Layout, ensure_table
from sluice.spark.tables import Keyed, Transaction, between_keys, find_commit, frame_of
from sluice.spark.writes import append, insert_new
from sluice.streaming.copies import Copies
from sluice.streaming.planning import choose_target

ON = "t.id <=> s.id AND abs(unix_micros(t.at) - unix_micros(s.at)) <= 86400000000"
KEYS = ["id"]
HELD = [("a", 1, "2026-01-01"), ("b", 2, "2026-01-01"), (None, 3, "2026-01-02")]
CAME = [
    ("a", 9, "2026-01-01"),  # held
    ("b", 9, "2026-01-03"),  # too far from the one that is held
    (None, 9, "2026-01-02"),  # held, by `<=>`
    ("c", 9, "2026-01-01"),
]


def make_rows(spark, rows):
    frame = spark.createDataFrame(rows, "id string, amount int, day string")
    return frame.select("id", "amount", F.col("day").cast("timestamp").alias("at"))


def make_table(spark, path: str, rows=(), **layout) -> str:
    frame = make_rows(spark, list(rows))
    ensure_table(spark, path, frame.schema, Layout(**layout))
    frame.write.format("delta").mode("append").save(path)
    return path


def read_rows(spark, path: str) -> list[tuple]:
    found = frame_of(spark, path).select("id", "amount", F.date_format("at", "yyyy-MM-dd"))
    return sorted((tuple(row) for row in found.collect()), key=repr)


WAYS = {
    "few": {},
    "by hashes": {"FEW_ROWS": 0},
    "by keys": {"FEW_ROWS": 0, "MANY_HASHES": 0},
}


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """How rows are compared with the table: each in turn."""
    for name, value in WAYS[request.param].items():
        monkeypatch.setattr(tables, name, value)


@pytest.mark.usefixtures("way")
def test_few_rows_and_many_rows_are_compared_with_the_table_alike(spark, tmp_path):
    path = make_table(spark, str(tmp_path / "t"), HELD)
    rows, txn = make_rows(spark, CAME), Transaction("app", 1, {"run_id": "r"})
    batch = Keyed(rows, len(CAME), KEYS, shown=KEYS)
    commit = insert_new(path, batch, ON, txn)
    new = [("b", 9, "2026-01-03"), ("c", 9, "2026-01-01")]
    assert read_rows(spark, path) == sorted([*HELD, *new], key=repr)
    assert (commit.given, commit.inserted, commit.replaced) == (4, 2, 0)
    assert find_commit(spark, path, txn) == commit  # a retry reads the same numbers
    again = insert_new(path, batch, ON, txn)
    assert again == commit
    assert frame_of(spark, path).count() == 5


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("held", [HELD, [], None], ids=["some rows", "no row", "no table"])
def test_a_key_that_another_writer_brought_meanwhile_is_not_inserted_again(
    spark, tmp_path, monkeypatch, held
):
    path, begun, go = str(tmp_path / "t"), tmp_path / "b", tmp_path / "g"
    if held is not None:
        make_table(spark, path, held)
    conflicts: list[float] = []
    monkeypatch.setattr(writes, "time", SimpleNamespace(sleep=conflicts.append))

    def wait_for_the_other(amount):  # in a Python worker of Spark's
        Path(str(begun)).touch()
        while not Path(str(go)).exists():
            time.sleep(0.02)
        return amount

    slow = make_rows(spark, [("c", 1, "2026-01-01"), ("d", 1, "2026-01-01")])
    slow = slow.coalesce(1)  # it holds one of the session's cores
    slow = slow.withColumn("amount", F.udf(wait_for_the_other, "int")("amount"))
    found: list[tables.Commit] = []
    writer = threading.Thread(
        target=lambda: found.append(
            insert_new(path, Keyed(slow, 2, KEYS), ON, Transaction("slow", 1))
        ),
        daemon=True,
    )
    writer.start()
    pause = threading.Event()
    while not begun.exists():
        assert writer.is_alive()
        pause.wait(0.02)
    other = spark.newSession()
    rows = make_rows(other, [("c", 2, "2026-01-01")])
    quick = insert_new(path, Keyed(rows, 1, KEYS), ON, Transaction("q", 1))
    assert quick.inserted == 1
    go.touch()
    writer.join()
    assert len(conflicts) == 1  # Delta refused the first try
    assert (found[0].given, found[0].inserted) == (2, 1)
    new = [("c", 2, "2026-01-01"), ("d", 1, "2026-01-01")]
    assert read_rows(spark, path) == sorted([*(held or ()), *new], key=repr)


@pytest.mark.parametrize("held", [HELD, []], ids=["some rows", "no row"])
def test_a_key_that_came_between_a_look_at_the_table_and_the_write_is_not_inserted_again(
    spark, tmp_path, monkeypatch, held
):
    path, other = make_table(spark, str(tmp_path / "t"), held), spark.newSession()
    look = writes.read_shape

    def look_late(session, table: str, again: bool = True) -> tables.Shape:
        if session is not other:  # the frame of the table is there, its transaction not yet
            rows = make_rows(other, [("c", 2, "2026-01-01")])
            assert insert_new(table, Keyed(rows, 1, KEYS), ON, Transaction("q", 1)).inserted == 1
        return look(session, table, again)

    monkeypatch.setattr(writes, "read_shape", look_late)
    rows = make_rows(spark, [("c", 1, "2026-01-01"), ("d", 1, "2026-01-01")])
    commit = insert_new(path, Keyed(rows, 2, KEYS), ON, Transaction("slow", 1))
    assert (commit.given, commit.inserted) == (2, 1)
    new = [("c", 2, "2026-01-01"), ("d", 1, "2026-01-01")]
    assert read_rows(spark, path) == sorted([*held, *new], key=repr)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("write", ["insert", "append"])
def test_a_table_that_another_writer_makes_first_gets_the_rows_of_both(
    spark, tmp_path, monkeypatch, write
):
    path, other, clear = str(tmp_path / "t"), spark.newSession(), writes.clear_unborn_log

    def clear_late(table: str) -> None:
        monkeypatch.setattr(writes, "clear_unborn_log", clear)
        append(table, make_rows(other, [("c", 2, "2026-01-01")]), Transaction("q", 1))

    monkeypatch.setattr(writes, "clear_unborn_log", clear_late)
    rows = make_rows(spark, [("c", 1, "2026-01-01"), ("d", 1, "2026-01-01")])
    if write == "insert":
        commit = insert_new(path, Keyed(rows, 2, KEYS), ON, Transaction("slow", 1))
        assert (commit.given, commit.inserted) == (2, 1)
        assert read_rows(spark, path) == [("c", 2, "2026-01-01"), ("d", 1, "2026-01-01")]
    else:
        assert append(path, rows, Transaction("slow", 1)).inserted == 2
        assert len(read_rows(spark, path)) == 3


def test_a_table_that_its_first_rows_make_is_made_in_one_commit(spark, tmp_path):
    path, rows = str(tmp_path / "t"), make_rows(spark, HELD)
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)  # of a run that was killed before
    txn = Transaction("app", 1, {"run_id": "r"})
    commit = insert_new(path, Keyed(rows, 3, KEYS), ON, txn)
    assert (commit.version, commit.given, commit.inserted) == (0, 3, 3)
    assert find_commit(spark, path, txn) == commit
    assert insert_new(path, Keyed(rows, 3, KEYS), ON, txn) == commit
    assert read_rows(spark, path) == sorted(HELD, key=repr)
    assert all(field.nullable for field in frame_of(spark, path).schema)


def test_a_parted_table_gets_one_file_a_partition_from_each_write(spark, tmp_path):
    path = make_table(spark, str(tmp_path / "t"), partition_by=["amount"])
    rows = [(f"k{n}", n % 3, "2026-01-01") for n in range(60)]
    spread = make_rows(spark, rows).repartition(8)
    assert insert_new(path, Keyed(spread, 60, KEYS), ON, Transaction("app", 1)).inserted == 60
    files = frame_of(spark, path).inputFiles()
    assert len(files) == 3


def test_columns_that_only_the_table_has_stay_empty_in_new_rows(spark, tmp_path):
    path = make_table(spark, str(tmp_path / "t"), HELD)
    rows = make_rows(spark, [("n", 1, "2026-01-01")])
    more = rows.withColumn("note", F.lit("x"))
    insert_new(path, Keyed(more, 1, KEYS), ON, Transaction("app", 1))
    rows = make_rows(spark, [("m", 1, "2026-01-01")])
    insert_new(path, Keyed(rows, 1, KEYS), ON, Transaction("app", 2))
    notes = {row.id: row.note for row in frame_of(spark, path).collect()}
    assert notes == {"a": None, "b": None, None: None, "n": "x", "m": None}


def test_keys_that_sql_calls_equal_are_found_however_they_are_written(spark, tmp_path):
    path, day = str(tmp_path / "t"), "timestamp '2026-01-01' AS at"
    held, came = "array(0.0D, double('NaN'), 1.5D)", "array(-0.0D, double('NaN'), 2.5D, NULL)"
    spark.range(1).selectExpr(f"explode({held}) AS id", day).write.format("delta").save(path)
    rows = spark.range(1).selectExpr(f"explode({came}) AS id", day)
    commit = insert_new(path, Keyed(rows, 4, KEYS, shown=KEYS), ON, Transaction("app", 1))
    assert (commit.given, commit.inserted) == (4, 2)
    found = sorted(str(row.id) for row in frame_of(spark, path).collect())
    assert found == ["0.0", "1.5", "2.5", "None", "nan"]


GROWING = {
    "whole numbers": "n",
    "text": "lpad(n, 5, '0')",
    "decimals": "CAST(n AS DECIMAL(38, 0))",
    "dates": "DATE '2026-01-01' + CAST(n AS INT)",
}


def number_keys(spark, said: str, first: int, last: int) -> DataFrame:
    return spark.range(first, last).selectExpr("id AS n").selectExpr(f"{said} AS id", "n")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("said", GROWING.values(), ids=GROWING)
def test_files_whose_keys_are_all_smaller_or_all_larger_are_not_read(spark, tmp_path, said):
    path = str(tmp_path / "t")
    for first in range(0, 100, 10):
        rows = number_keys(spark, said, first, first + 10).coalesce(1)
        rows.write.format("delta").mode("append").save(path)
    came = number_keys(spark, said, 45, 55)
    batch = Keyed(came, 10, KEYS, shown=KEYS)
    table = frame_of(spark, path)
    near, count = between_keys(table, batch)
    read = scanned_bytes(near) / scanned_bytes(table)
    assert count == 10 and 0.15 < read < 0.25
    commit = insert_new(path, batch, "t.id = s.id", Transaction("app", 1))
    assert (commit.given, commit.inserted) == (10, 0)


def test_a_key_that_is_no_text_is_found_in_the_table(spark, tmp_path):
    path = str(tmp_path / "t")
    keys = spark.sql("SELECT explode(array(X'80', X'61')) AS id").selectExpr("CAST(id AS STRING)")
    keys.write.format("delta").save(path)
    batch = Keyed(keys, 2, KEYS, shown=KEYS)
    assert insert_new(path, batch, "t.id = s.id", Transaction("app", 1)).inserted == 0


def test_a_table_that_holds_keys_as_another_type_is_read_whole(spark, tmp_path):
    path = str(tmp_path / "t")
    spark.range(8, 12).write.format("delta").save(path)
    text = spark.range(8, 12).selectExpr("CAST(id AS STRING) AS id")  # '10' < '9'
    near, _ = between_keys(frame_of(spark, path), Keyed(text, 4, KEYS, shown=KEYS))
    assert near.count() == 4


def test_values_of_hidden_keys_stand_in_no_plan(spark, tmp_path):
    path = make_table(spark, str(tmp_path / "t"), HELD)
    keyed = Keyed(make_rows(spark, [("k-secret", 1, "2026-01-01")]), 1, KEYS)
    for shown in ([], KEYS):
        near, _ = between_keys(frame_of(spark, path), replace(keyed, shown=shown))
        plan = near._jdf.queryExecution().toString()
        assert ("k-secret" in plan) == bool(shown)


@pytest.mark.parametrize(
    ("everything", "shown"), [(False, ["id"]), (True, ())], ids=["named keys", "whole rows"]
)
def test_only_named_keys_that_are_not_pii_may_be_shown(everything, shown):
    copies = Copies(("id", "email"), None, null_equals=everything)
    run = SimpleNamespace(
        pipeline=SimpleNamespace(pii=["email"]), mode=SimpleNamespace(replaces=False)
    )
    step = SimpleNamespace(target=SimpleNamespace(keys=[]), groups=[], output_mode="append")
    target = choose_target(run, step, "table", copies, None)
    unique = SimpleNamespace(rows=None, given=SimpleNamespace(keys=1), span=(None, None))
    assert target._keyed(unique).shown == shown
