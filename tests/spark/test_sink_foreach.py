"""The user's Python as a sink, and the sinks to look at rows with."""

import json
from collections import Counter
from pathlib import Path

import pytest
from sluice.errors import SpecError, TerminalError, TransientError
from sluice.sinks.delivery import Delivery
from sluice.spec import ConsoleSink, ForeachBatchSink, ForeachSink, MemorySink

from tests.spark.delivering import deliver, prepare

WRITER = """
import json, os, uuid

FOLDER = {folder!r}
FAIL = {fail!r}


def note(*what):
    with open(os.path.join(FOLDER, "calls"), "a") as file:
        file.write(json.dumps(what) + "\\n")


class Writer:
    def __init__(self):
        self.name = uuid.uuid4().hex

    def open(self, partition, batch):
        note(self.name, "open", partition, batch)
        if "open" in FAIL:
            raise OSError("no way in")
        return {opened}

    def process(self, row):
        note(self.name, "process", row.n, list(row.asDict()))
        if row.n == 3 and "process" in FAIL:
            raise ValueError("three is\\ntoo many")

    def close(self, error):
        note(self.name, "close", error and type(error).__name__, str(error))
        if "close" in FAIL and (error or "process" not in FAIL):
            raise KeyError("cannot close")


class OnlyProcess:
    def process(self, row):
        note(None, "process", row.n, [])


class NoProcess:
    pass


class NeedsMore:
    def __init__(self, what):
        pass

    def process(self, row):
        pass


import threading


class Locked:
    lock = threading.Lock()

    def process(self, row):
        pass


NUMBER = 3
"""
FUNCTION = """
calls = []


def keep(rows, token):
    rows.write.mode("overwrite").json({folder!r} + "/" + token.replace("/", "-"))
    calls.append(token)
    rows.sparkSession.conf.set("spark.sluice.test.calls", len(calls))


def refuse(rows, token):
    raise ConnectionRefusedError("nobody there")


def give_up(rows, token):
    from sluice.errors import TerminalError
    raise TerminalError("never", where=token)


NUMBER = 3
"""


@pytest.fixture
def play(spark, tmp_path):
    """A function that writes the writer's module and delivers a batch to it.

    The batch has five rows. Returns the number of rows, and the calls.
    """

    def play_batch(
        name: str = "Writer",
        fail: tuple = (),
        opened: object = None,
        rows: object = None,
        **more: object,
    ) -> tuple[int, list]:
        (tmp_path / "json.py").write_text(
            WRITER.format(folder=str(tmp_path), fail=fail, opened=opened)
        )  # the name of a library does not matter
        if rows is None:
            rows = spark.range(0, 5, 1, 2).selectExpr("id n", "'run' _run_id", "7L _batch_id")
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        try:
            count = deliver(
                rows, ForeachSink(kind="foreach", writer=f"json.py:{name}"), to(tmp_path, **more)
            )
        finally:
            play_batch.calls = (
                [json.loads(line) for line in calls.read_text().splitlines()]
                if calls.exists()
                else []
            )
        return count, play_batch.calls

    return play_batch


def to(folder: Path, batch: int = 7, key: str = "p/s/g", **more: object) -> Delivery:
    """A batch on its way."""
    return Delivery(key, batch, ["n"], folder, str(folder), **more)


def by_partition(calls: list) -> dict[int, list[int]]:
    """What each partition's instance was given, between one `open` and one `close`."""
    found = {}
    for name in dict.fromkeys(call[0] for call in calls):
        opened, *rows, closed = [call[1:] for call in calls if call[0] == name]
        assert (opened[0], closed) == ("open", ["close", None, "None"])
        assert all(row[0::2] == ["process", ["n"]] for row in rows)
        found[opened[1]] = [row[1] for row in rows]
    return found


def test_each_partition_is_opened_processed_and_closed_by_an_instance_of_its_own(play, monkeypatch):
    monkeypatch.setattr("sluice.sinks.foreach._ROWS", 2)
    count, calls = play()
    found = by_partition(calls)
    assert count == 5 and sorted(found) == [0, 1, 2]
    assert sorted(n for rows in found.values() for n in rows) == [0, 1, 2, 3, 4]


def test_a_batch_that_comes_again_is_split_alike_however_its_rows_lie_in_files(
    play, spark, monkeypatch
):
    monkeypatch.setattr("sluice.sinks.foreach._ROWS", 2)
    splits = [
        by_partition(play(rows=spark.range(5).repartition(parts).selectExpr("id n"))[1])
        for parts in (1, 2, 5)
    ]
    assert splits[0] == splits[1] == splits[2]


def test_a_batch_has_a_number_that_no_batch_of_another_generation_has(play):
    calls = [play(key=key)[1] for key in ("p/s/g", "p/s/g", "p/s/h")]
    first, again, other = ({call[3] for call in found if call[1] == "open"} for found in calls)
    assert first == again and not first & other


def test_a_partition_that_open_refuses_is_passed_over_and_closed(play):
    count, calls = play(opened=False)
    assert count == 5 and Counter(call[1] for call in calls) == {"open": 1, "close": 1}


def test_open_and_close_need_not_be_there(play):
    count, calls = play("OnlyProcess")
    assert count == 5 and Counter(call[2] for call in calls) == Counter(range(5))


def test_what_process_raises_reaches_close_and_the_error_and_the_batch_may_come_again(
    play, tmp_path
):
    for fail in (("process",), ("process", "close")):
        with pytest.raises(
            TransientError, match="Writer.process raised ValueError: three is too many"
        ) as raised:
            play(fail=fail)
        assert raised.value.where == f"foreach {tmp_path / 'json.py'}:Writer"
        assert ["close", "ValueError", "three is\ntoo many"] in [call[1:] for call in play.calls]
        assert ["process", 4, ["n"]] not in [call[1:] for call in play.calls]
    assert play()[0] == 5


@pytest.mark.parametrize(
    ("name", "fail", "said"),
    [
        ("Writer", ("open",), "Writer.open raised OSError: no way in"),
        ("Writer", ("close",), "Writer.close raised KeyError: "),
        ("NeedsMore", (), "NeedsMore.__init__ raised TypeError: "),
    ],
)
def test_what_the_other_methods_raise_is_named_as_well(play, name, fail, said):
    with pytest.raises(TransientError, match=said):
        play(name, fail=fail)
    assert "open" not in fail or "close" not in [call[1] for call in play.calls]


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("w.py:NoProcess", "process"),
        ("w.py:NUMBER", "must be a class"),
        ("w.py:Absent", "cannot load the Class"),
        ("v.py:Writer", "no such file"),
        ("w.py:Locked", "cannot be sent to the executors"),
    ],
)
def test_a_class_that_cannot_be_called_is_refused_before_anything_is_read(
    tmp_path, reference, said
):
    (tmp_path / "w.py").write_text(WRITER.format(folder=str(tmp_path), fail=(), opened=True))
    with pytest.raises(SpecError, match=said):
        prepare(ForeachSink(kind="foreach", writer=reference), folder=tmp_path)


def test_a_function_gets_the_rows_of_a_batch_and_its_token_and_keeps_its_module(spark, tmp_path):
    (tmp_path / "f.py").write_text(FUNCTION.format(folder=str(tmp_path)))
    sink, rows = (
        ForeachBatchSink(kind="foreach_batch", function="f.py:keep"),
        spark.range(5).selectExpr("id n", "'run' _run_id"),
    )
    prepare(sink, folder=tmp_path)
    for batch in (1, 1):
        assert deliver(rows, sink, to(tmp_path, batch)) == 5
    assert sorted(
        path.name for path in tmp_path.iterdir() if path.is_dir() and path.name != "__pycache__"
    ) == ["p-s-g-1"]
    assert Counter(map(tuple, spark.read.json(str(tmp_path / "p-s-g-1")).collect())) == Counter(
        (n,) for n in range(5)
    )
    assert spark.conf.get("spark.sluice.test.calls") == "2"


def test_where_values_are_hidden_what_was_raised_is_named_without_its_text(play, spark, tmp_path):
    hidden = frozenset({"n"})
    with pytest.raises(TransientError, match="Writer.process raised ValueError.") as raised:
        play(fail=("process",), hidden=hidden)
    assert "three" not in str(raised.value)
    (tmp_path / "f.py").write_text(FUNCTION.format(folder=str(tmp_path)))
    with pytest.raises(TransientError, match="refuse raised ConnectionRefusedError.") as raised:
        deliver(
            spark.range(1).toDF("n"),
            ForeachBatchSink(kind="foreach_batch", function="f.py:refuse"),
            to(tmp_path, hidden=hidden),
        )
    assert "nobody" not in str(raised.value)


def test_what_a_function_raises_is_named_and_an_error_of_ours_passes(spark, tmp_path):
    (tmp_path / "f.py").write_text(FUNCTION.format(folder=str(tmp_path)))
    with pytest.raises(TransientError, match="refuse raised ConnectionRefusedError: nobody there"):
        deliver(
            spark.range(1).toDF("n"),
            ForeachBatchSink(kind="foreach_batch", function="f.py:refuse"),
            to(tmp_path),
        )
    with pytest.raises(TerminalError, match="p/s/g/7: never"):
        deliver(
            spark.range(1).toDF("n"),
            ForeachBatchSink(kind="foreach_batch", function="f.py:give_up"),
            to(tmp_path),
        )
    with pytest.raises(SpecError, match="must be a function"):
        sink = ForeachBatchSink(kind="foreach_batch", function="f.py:NUMBER")
        prepare(sink, folder=tmp_path)


def test_the_console_shows_the_first_rows_and_no_hidden_value(spark, tmp_path, capsys):
    rows = spark.sql("SELECT id n, if(id = 1, null, 'secret') name, 'run' _run_id FROM range(3)")
    delivery = Delivery("k", 4, ["n", "name"], tmp_path, "", frozenset({"name"}))
    assert deliver(rows, ConsoleSink(kind="console", rows=2), delivery) == 3
    shown = capsys.readouterr().out
    assert (
        "Batch 4: 3 row(s)" in shown
        and "only showing top 2 rows" in shown
        and "|  0|(hidden)|" in shown
        and "|  1|    NULL|" in shown
    )
    assert "secret" not in shown and "_run_id" not in shown
    assert deliver(rows.limit(0), ConsoleSink(kind="console"), delivery) == 0
    assert capsys.readouterr().out.strip() == "Batch 4: 0 row(s)"


def test_the_view_in_memory_holds_each_batch_of_a_key_once(spark, tmp_path):
    sink = MemorySink(kind="memory", name="seen")
    other = spark.newSession()  # as a stream's batches have
    for batch, session in ((0, spark), (1, other), (1, other)):
        assert (
            deliver(
                session.range(batch * 2, batch * 2 + 2).selectExpr("id n", "'run' _run_id"),
                sink,
                to(tmp_path, batch),
            )
            == 2
        )
    assert Counter(map(tuple, spark.table("seen").collect())) == Counter((n,) for n in range(4))
    assert deliver(spark.range(2).selectExpr("id n"), sink, to(tmp_path, 0, key="another")) == 2
    assert spark.table("seen").count() == 2 and spark.table("seen").columns == ["n"]
