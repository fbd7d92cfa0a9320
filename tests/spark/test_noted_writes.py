"""Which writes a table holds is read from what Delta noted beside its newest commit; where that
says nothing, from the table's state."""

import json
from pathlib import Path

import pytest
from delta.tables import DeltaTable
from sluice.backlog.delta import noted_writes, table_version
from sluice.spark import tables
from sluice.spark.tables import newest_writes

ACTS = {
    "nothing more": lambda spark, path: None,
    "another write": lambda spark, path: write(spark, path, "b", 7),
    "a newer one": lambda spark, path: write(spark, path, "a", 5),
    "a write without a key": lambda spark, path: (
        spark.range(1).write.format("delta").mode("append").save(path)
    ),
    "DELETE": lambda spark, path: DeltaTable.forPath(spark, path).delete("id = 1"),
    "OPTIMIZE": lambda spark, path: DeltaTable.forPath(spark, path).optimize().executeCompaction(),
    "RESTORE": lambda spark, path: DeltaTable.forPath(spark, path).restoreToVersion(0),
    "overwrite": lambda spark, path: (
        spark.range(2).write.format("delta").mode("overwrite").save(path)
    ),
}


def write(spark, path: str, app: str, number: int) -> None:
    writer = spark.range(3).write.format("delta").mode("append")
    writer.option("txnAppId", app).option("txnVersion", number).save(path)


@pytest.fixture
def path(spark, tmp_path) -> str:
    path = str(tmp_path / "t")
    for app, number in (("a", 1), ("a", 4), ("c", 2)):
        write(spark, path, app, number)
    return path


def checksum(path: str) -> Path:
    return Path(path) / "_delta_log" / f"{table_version(path):020}.crc"


def of_state(spark, path: str) -> dict[str, int]:
    """By the table's state, which Spark computes."""
    checksum(path).unlink(missing_ok=True)
    return newest_writes(spark, path)


@pytest.mark.parametrize("act", ACTS)
def test_the_note_says_what_the_state_says(spark, path, act):
    ACTS[act](spark, path)
    noted = noted_writes(path)
    assert (noted is None) == (act == "RESTORE")  # Delta makes no note then
    found = of_state(spark, path)
    assert noted in (found, None)
    assert found["a"] == (5 if act == "a newer one" else 4) and found["c"] == 2


def test_no_state_is_computed_where_there_is_a_note(spark, path, monkeypatch):
    monkeypatch.setattr(tables, "_snapshot", lambda *_: pytest.fail("the state was computed"))
    assert newest_writes(spark, path) == {"a": 4, "c": 2}


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}", '{"txnId": null}'])
def test_where_the_note_is_gone_or_damaged_the_state_is_asked(spark, path, text):
    checksum(path).unlink()
    if text is not None:
        checksum(path).write_text(text)
    assert noted_writes(path) is None
    assert newest_writes(spark, path) == {"a": 4, "c": 2}


def test_a_note_of_another_commit_is_not_believed(spark, path):
    """As where somebody put an older copy of the log's commits back, and not of its notes."""
    note = json.loads(checksum(path).read_text())
    checksum(path).write_text(json.dumps({**note, "txnId": "another", "setTransactions": []}))
    assert newest_writes(spark, path) == {"a": 4, "c": 2}
