"""Files of a folder: every row in exactly one of them, whatever came twice or was killed."""

import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from glob import glob
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from py4j.java_gateway import JavaObject
from sluice.errors import SpecError, TransientError
from sluice.sinks.delivery import Delivery
from sluice.sinks.files import sink as files
from sluice.sinks.files import store as file_store
from sluice.sinks.files.store import FileStore
from sluice.spec import FilesSink

from tests.spark.delivering import deliver, prepare

SCHEMA = (
    "id long, city string, ratio double, price decimal(10,2), ok boolean, day date, at timestamp"
)
ROWS = [
    (
        1,
        'Łódź, "west" side',
        0.1,
        Decimal("1.10"),
        True,
        date(2025, 1, 1),
        datetime(2025, 1, 1, 12, 30, 0, 123000, UTC),
    ),
    (
        2,
        "a/b c%=2",
        None,
        Decimal("-0.01"),
        False,
        date(1969, 12, 31),
        datetime(1969, 12, 31, tzinfo=UTC),
    ),
    (
        2,
        "a/b c%=2",
        None,
        Decimal("-0.01"),
        False,
        date(1969, 12, 31),
        datetime(1969, 12, 31, tzinfo=UTC),
    ),
    (3, None, -1e300, None, None, None, None),
]
SYSTEM = ", 'run' _run_id, 7L _batch_id, 'file:/landed' _source, current_timestamp() _ingested_at"


@pytest.fixture(scope="module")
def batch(spark):
    """A batch as the sinks get it, and its rows as a multiset.

    It has the user's columns and the system's.
    """
    frame = spark.createDataFrame(ROWS, SCHEMA)
    return frame.selectExpr("*", *SYSTEM.strip(", ").split(", ")), Counter(
        map(tuple, frame.collect())
    )


def numbers(spark, start: int, end: int):
    """A batch of two partitions: n, and whether it is even."""
    return spark.range(start, end, 1, 2).selectExpr(
        "id n", "if(id % 2 = 0, 'even', 'odd') kind", *SYSTEM.strip(", ").split(", ")
    )


def to(tmp_path: Path, batch: int = 0, columns: str = "n kind", key: str = "p/s/g") -> Delivery:
    """A batch on its way."""
    return Delivery(key, batch, columns.split(), tmp_path, str(tmp_path))


def read_all(folder: Path) -> Counter:
    """What the least careful reader finds: every Parquet file below a folder, hidden or not."""
    return Counter(
        n
        for path in glob(f"{folder}/**/*.parquet", recursive=True, include_hidden=True)
        for n in pq.ParquetFile(path).read()["n"].to_pylist()
    )


def snapshot(folder: Path) -> dict[str, tuple]:
    """Every file below a folder: name -> size and time."""
    return {
        str(p.relative_to(folder)): (p.stat().st_size, p.stat().st_mtime_ns)
        for p in folder.rglob("*")
        if p.is_file()
    }


@pytest.mark.parametrize("partition_by", [[], ["city", "ok"]], ids=["whole", "partitioned"])
@pytest.mark.parametrize("kind", ["parquet", "orc", "json", "csv", "avro"])
def test_rows_come_back_as_they_went_and_a_batch_that_comes_again_changes_nothing(
    spark, batch, tmp_path, kind, partition_by
):
    sink, (rows, expected) = (
        FilesSink(kind="files", path="out", format=kind, partition_by=partition_by),
        batch,
    )
    delivery = to(tmp_path, columns="id city ratio price ok day at")
    assert deliver(rows, sink, delivery) == len(ROWS)
    once = snapshot(tmp_path)
    assert deliver(rows, sink, delivery) == len(ROWS)
    assert snapshot(tmp_path) == once
    read = (
        spark.read.format(kind)
        .schema(SCHEMA)
        .option("header", True)
        .load(str(tmp_path / "out"))
        .select(*delivery.columns)
    )
    assert Counter(map(tuple, read.collect())) == expected


def test_small_batches_make_one_file_each_and_one_note_in_all(spark, tmp_path):
    sink = FilesSink(kind="files", path=str(tmp_path / "lake" / "out"))
    for batch in range(3):
        assert deliver(numbers(spark, batch * 10, batch * 10 + 10), sink, to(tmp_path, batch)) == 10
    out = tmp_path / "lake" / "out"
    assert len(list(out.iterdir())) == 3 and read_all(tmp_path) == Counter(range(30))
    assert [p.name for p in (tmp_path / "lake" / "_batches").rglob("*") if p.is_file()] == [
        "2.done"
    ]
    assert (
        list(spark.read.parquet(str(out)).columns)
        == list(pd.read_parquet(out).columns)
        == ["n", "kind"]
    )
    assert Counter(pd.read_parquet(out)["n"]) == Counter(range(30))


def test_a_large_batch_is_written_by_several_tasks_and_appears_whole(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ROWS_OF_ONE_FILE", 5)
    for sink in (
        FilesSink(kind="files", path="out"),
        FilesSink(kind="files", path="parts", partition_by=["kind"]),
    ):
        assert deliver(numbers(spark, 0, 50), sink, to(tmp_path)) == 50
        assert read_all(tmp_path / sink.path) == Counter(range(50))
    assert len(list((tmp_path / "out").iterdir())) > 1


def test_two_checkpoints_and_two_formats_share_a_folder(spark, tmp_path):
    parquet, text = (
        FilesSink(kind="files", path="out"),
        FilesSink(kind="files", path="out", format="json"),
    )
    for key in ("p/s/g", "p/s/backfill"):
        for sink in (parquet, text, parquet):
            assert deliver(numbers(spark, 0, 4), sink, to(tmp_path, key=key)) == 4
    assert read_all(tmp_path) == Counter(dict.fromkeys(range(4), 2))
    assert len(list((tmp_path / "out").glob("*.json"))) == 2


def test_an_empty_batch_leaves_nothing_and_one_out_of_turn_is_written_once(spark, tmp_path):
    sink = FilesSink(kind="files", path="out")
    assert deliver(numbers(spark, 0, 0), sink, to(tmp_path, 0)) == 0
    assert list(tmp_path.iterdir()) == []
    assert deliver(numbers(spark, 0, 3), sink, to(tmp_path, 5)) == 3
    for batch, size in ((4, 2), (5, 3), (4, 2), (6, 1), (4, 2)):
        assert deliver(numbers(spark, 0, size), sink, to(tmp_path, batch)) == size
    assert read_all(tmp_path) == Counter({0: 3, 1: 2, 2: 1})


class WatchedSystem:
    """A file system that calls `before` before each operation that changes something.

    It copies and removes instead of renaming, as S3 does: a kill can fall in between there, and on
    either side of it a rename is the same.
    """

    def __init__(self, system: JavaObject, before: Callable[[], None]) -> None:
        self._system, self._before = system, before

    def __getattr__(self, name: str) -> object:
        return getattr(self._system, name)

    def create(self, path: JavaObject, overwrite: bool) -> JavaObject:
        self._before()
        stream = self._system.create(path, overwrite)
        self._before()  # the file is there, and empty
        return stream

    def mkdirs(self, path: JavaObject) -> bool:
        self._before()
        return self._system.mkdirs(path)

    def delete(self, path: JavaObject, recursive: bool) -> bool:
        self._before()
        return self._system.delete(path, recursive)

    def rename(self, old: JavaObject, new: JavaObject) -> bool:
        self._before()
        shutil.copyfile(old.toUri().getPath(), new.toUri().getPath())
        self._before()
        return self._system.delete(old, False)


@pytest.fixture
def images(tmp_path, monkeypatch):
    """A function that calls another one and returns what kills would have left: copies of a root.

    A kill comes before each of its operations on files, and after the last.
    """

    def watch(root: Path, deliver: Callable[[], int]) -> list[Path]:
        taken, connect = [], file_store.connect

        def take() -> None:
            taken.append(tmp_path / f"{root.name}-{len(taken)}")
            shutil.copytree(root, taken[-1])

        with monkeypatch.context() as patch:
            patch.setattr(
                file_store,
                "connect",
                lambda session, path: WatchedSystem(connect(session, path), take),
            )
            deliver()
        take()
        return taken

    return watch


def test_a_kill_before_any_operation_and_a_replay_leave_each_row_once(spark, tmp_path, images):
    sink, root = FilesSink(kind="files", path="out", partition_by=["kind"]), tmp_path / "root"
    deliver(numbers(spark, 0, 4), sink, to(root, 0))
    batch = numbers(spark, 4, 8)
    left, planned = images(root, lambda: deliver(batch, sink, to(root, 1))), []
    for image in left:
        seen = read_all(image / "out")
        assert set(range(4)) <= set(seen) <= set(range(8)) and max(seen.values()) == 1
        planned += [image] if list(image.rglob("1.plan")) else []
        assert deliver(batch, sink, to(image, 1)) == 4
        assert read_all(image / "out") == Counter(range(8))
        assert [p.name for p in (image / "_batches").rglob("*") if p.is_file()] == ["1.done"]
    assert len(left) > 10 and len(planned) > 4
    assert Counter(row.n for row in spark.read.parquet(str(left[5] / "out")).collect()) == Counter(
        range(8)
    )


def test_a_kill_while_it_recovers_loses_nothing_and_the_next_batch_recovers_as_well(
    spark, tmp_path, images
):
    sink, root = FilesSink(kind="files", path="out", partition_by=["kind"]), tmp_path / "root"
    root.mkdir()
    batch, seen = numbers(spark, 0, 4), set()
    first = next(
        image
        for image in images(root, lambda: deliver(batch, sink, to(root, 0)))
        if list(image.rglob("0.plan"))
    )
    for image in images(first, lambda: deliver(batch, sink, to(first, 0))):
        seen.add(len(read_all(image / "out")))
        following = len(seen) == 2  # the batch that comes is another one
        assert deliver(
            numbers(spark, 4, 6) if following else batch, sink, to(image, int(following))
        ) == (2 if following else 4)
        assert read_all(image / "out") == Counter(range(6 if following else 4))
    assert seen == {0, 2, 4}


def test_what_a_killed_write_left_is_removed(spark, tmp_path):
    sink = FilesSink(kind="files", path="out")
    deliver(numbers(spark, 0, 2), sink, to(tmp_path, 0))
    (ledger,) = (tmp_path / "_batches" / "out").iterdir()
    task = ledger / "staged-0123456789ab" / "_temporary" / "0"
    task.mkdir(parents=True)
    (task / "part-00000.parquet").write_bytes(b"PAR1 half")
    (ledger / "1.plan.unfinished").write_text('{"key": "p/')
    deliver(numbers(spark, 2, 4), sink, to(tmp_path, 1))
    assert read_all(tmp_path) == Counter(range(4)) and [p.name for p in ledger.iterdir()] == [
        "1.done"
    ]


def test_a_file_that_a_consumer_took_away_does_not_come_back(spark, tmp_path):
    sink = FilesSink(kind="files", path="out")
    for _ in range(2):
        assert deliver(numbers(spark, 0, 2), sink, to(tmp_path)) == 2
        for path in (tmp_path / "out").iterdir():
            path.unlink()
    assert read_all(tmp_path) == Counter()


def test_files_of_others_are_left_alone(spark, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    for name in ("notes.txt", "part-00000-theirs.snappy.parquet", "_SUCCESS", ".hidden"):
        (out / name).write_text(name)
    theirs = snapshot(out)
    for batch in (0, 0, 1):
        deliver(numbers(spark, 0, 2), FilesSink(kind="files", path="out"), to(tmp_path, batch))
    now = snapshot(out)
    assert {name: now[name] for name in theirs} == theirs and len(now) == len(theirs) + 2


def test_half_a_copy_is_replaced_and_a_whole_one_is_kept(spark, tmp_path):
    store = FileStore(spark, str(tmp_path))
    (tmp_path / "deeper").mkdir()
    for held in ("ha", "whole", None):
        (tmp_path / "old").write_text("whole")
        new = tmp_path / "deeper" / "new"
        new.unlink(missing_ok=True)
        if held:
            new.write_text(held)
        for _ in range(2):
            store.move(str(tmp_path / "old"), str(new))
            assert new.read_text() == "whole" and not (tmp_path / "old").exists()


def test_csv_files_have_a_header_unless_the_options_say_otherwise(spark, tmp_path):
    with_header = FilesSink(kind="files", path="a", format="csv", options={"sep": ";"})
    without = FilesSink(
        kind="files", path="b", format="csv", options={"HEADER": False, "compression": "gzip"}
    )
    for sink in (with_header, without):
        deliver(numbers(spark, 1, 3), sink, to(tmp_path))
    (a,), (b,) = (tmp_path / "a").iterdir(), (tmp_path / "b").iterdir()
    assert a.suffix == ".csv" and a.read_text().splitlines() == ["n;kind", "1;odd", "2;even"]
    assert b.name.endswith(".csv.gz") and pd.read_csv(b, header=None).values.tolist() == [
        [1, "odd"],
        [2, "even"],
    ]


def test_a_sink_that_cannot_take_the_columns_is_refused(spark, tmp_path):
    schema = spark.createDataFrame([], "id long, tags array<string>").schema
    for sink, word in (
        (FilesSink(kind="files", path="o", partition_by=["day"]), "no column 'day'"),
        (FilesSink(kind="files", path="o", format="csv"), "nested column 'tags'"),
        (FilesSink(kind="files", path="o", partition_by=["tags"]), "nested column 'tags'"),
        (FilesSink(kind="files", path="s3a://bucket/"), "root of a store"),
        (
            FilesSink(kind="files", path="o", partition_by=["id", "tags"]),
            "every column is a partition column",
        ),
    ):
        with pytest.raises(SpecError, match=word):
            prepare(sink, schema)
    prepare(FilesSink(kind="files", path="s3a://bucket/o/", partition_by=["id"]), schema)
    with pytest.raises(SpecError, match="compression|codec"):
        deliver(
            numbers(spark, 0, 2),
            FilesSink(kind="files", path="o", options={"compression": "nonsense"}),
            to(tmp_path),
        )
    assert not (tmp_path / "o").exists()


def test_a_store_that_refuses_may_take_it_the_next_time(spark, tmp_path):
    (tmp_path / "out").write_text("a file where the folder should be")
    sink = FilesSink(kind="files", path="out")
    with pytest.raises(TransientError):
        deliver(numbers(spark, 0, 2), sink, to(tmp_path))
    os.remove(tmp_path / "out")
    assert deliver(numbers(spark, 0, 2), sink, replace(to(tmp_path), hidden=frozenset({"n"}))) == 2
    assert read_all(tmp_path) == Counter(range(2))
