"""Triggers and trials: how a step's query ends, and what it reports.

And that `available_now` goes on from the same checkpoint.
"""

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sluice.errors import ExitCode
from sluice.report import RunReport
from sluice.storage import Paths

from tests.kafka_broker import Record
from tests.spark.factories import Project

FILES = {"kind": "files", "format": "json", "schema": {"id": "string", "n": "bigint"}}


def order(number: int) -> str:
    return json.dumps({"id": f"o{number}", "n": number}) + "\n"


def trial(project: Project, seconds: float = 2.0, **step: object) -> tuple:
    """A trial's report and the paths of its own root."""
    report = project.run(dev_seconds=seconds, **step)
    return report, Paths.under(project.folder / "root", "p").trial(report.run_id)


def rows_at(spark, path: str, *columns: str) -> Counter:
    return Counter(
        tuple(row) for row in spark.read.format("delta").load(path).select(*columns).collect()
    )


@contextmanager
def lines_server(lines: list[str]) -> Iterator[int]:
    """A TCP server on a free port: it sends some lines to whoever comes, and stays on the line."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        peers = []

        def serve() -> None:
            try:
                while True:
                    peers.append(server.accept()[0])
                    peers[-1].sendall("".join(f"{line}\n" for line in lines).encode())
            except OSError:
                return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for peer in peers:
                peer.close()
            thread.join(10)


@pytest.mark.parametrize(
    "source",
    [{"kind": "rate-micro-batch", "rows": 5}, {"kind": "rate", "rows": 20}],
    ids=lambda source: source["kind"],
)
def test_a_source_that_makes_rows_runs_in_a_trial_alone_and_every_row_has_its_fate(
    spark, tmp_path, source
):
    project = Project(spark, tmp_path, source)
    refused = project.run()
    assert (
        refused.exit_code,
        "sluice run --dev" in refused.error,
        "no run is ever done" in refused.error,
    ) == (ExitCode.TERMINAL, True, True)
    for seconds in (2, 8, 30):  # a slow machine needs longer until the first rows are there
        report, paths = trial(project, seconds)
        if report.counts.read:
            break
    assert (report.status, report.error, report.kind) == ("done", None, "trial")
    assert (
        report.counts.read
        == report.counts.written
        == rows_at(spark, paths.table("s"), "value").total()
        > 0
    )
    assert not report.steps[0].left_for_next_run
    assert (
        not (tmp_path / "root" / "tables").exists()
        and not (tmp_path / "root" / "checkpoints").exists()
    )


def test_a_socket_is_read_in_a_trial_until_its_seconds_are_over(spark, tmp_path):
    with lines_server(["one", "two", "two"]) as port:
        project = Project(spark, tmp_path, {"kind": "socket", "port": port})
        assert "a socket cannot be read again after a crash" in project.run().error
        for seconds in (3, 30):  # a busy machine may need more
            report, paths = trial(project, seconds=seconds)
            if report.counts.read:
                break
    assert (report.error, report.counts.read) == (None, 3)
    assert rows_at(spark, paths.table("s"), "value") == Counter({("one",): 1, ("two",): 2})


def test_a_trial_of_files_reads_them_all_each_time_and_touches_nothing_that_is_scheduled(
    spark, tmp_path
):
    project = Project(spark, tmp_path, FILES)
    project.land("1.json", order(1))
    project.run()
    project.land("2.json", order(2))
    for _ in range(2):
        report, paths = trial(project, seconds=30)
        assert (report.status, report.counts.written, report.steps[0].warnings) == ("done", 2, [])
        assert rows_at(spark, paths.table("s"), "id") == Counter([("o1",), ("o2",)])
    assert project.plan().files == 1
    assert project.run().counts.written == 1
    assert project.rows("id") == Counter([("o1",), ("o2",)])


@pytest.mark.parametrize(
    "sink",
    [
        {"kind": "kafka", "servers": "127.0.0.1:1", "topic": "t"},
        {"mode": "append", "table": "/far/away"},
        {"mode": "append", "name": "a.b"},
        {"kind": "files", "path": "s3a://bucket/out"},
    ],
    ids=["kafka", "table_elsewhere", "catalog", "bucket"],
)
def test_a_trial_of_a_source_that_is_read_for_good_sends_its_rows_nowhere_else(
    spark, tmp_path, sink
):
    report, _ = trial(Project(spark, tmp_path, FILES, {"sink": sink}))
    assert (report.exit_code, "lies outside the trial's own root" in report.error) == (
        ExitCode.TERMINAL,
        True,
    )


def test_once_takes_the_backlog_in_one_batch_and_available_now_goes_on(spark, tmp_path):
    project = Project(
        spark,
        tmp_path,
        {**FILES, "max_files_per_batch": 1},
        {"sink": {"mode": "append"}, "trigger": "once"},
    )
    for number in range(3):
        project.land(f"{number}.json", order(number))
    first = project.run()
    assert (first.status, len(first.steps[0].batches), first.counts.written) == ("done", 1, 3)
    assert "trigger once: one batch takes the whole backlog" in first.steps[0].warnings[0]
    assert project.run().status == "nothing new"
    del project.step["trigger"]
    project.land("4.json", order(4))
    project.land("5.json", order(5))
    second = project.run()
    assert (len(second.steps[0].batches), second.steps[0].warnings) == (2, [])
    assert project.rows("n") == Counter([(0,), (1,), (2,), (4,), (5,)])


def read_log(folder: Path) -> list[Path]:
    """Commits of a table, which its first batch makes."""
    return list((folder / "_delta_log").glob("*.json"))


def land_later(project: Project, over: threading.Event) -> None:
    """Land a second file as soon as the first is in the table, while the query waits."""
    while not read_log(project.folder / "root" / "tables" / "p" / "s") and not over.wait(0.05):
        pass
    project.land("2.json", order(2))


def test_processing_time_runs_out_its_budget_between_two_batches_and_available_now_goes_on(
    spark, tmp_path
):
    for seconds in (5, 20, 80):  # a slow machine needs longer until both files are read
        project = Project(
            spark,
            tmp_path / str(seconds),
            FILES,
            {"sink": {"mode": "append"}, "trigger": {"processing_time": "1 second"}},
            {"budget": f"{seconds} seconds"},
        )
        project.land("1.json", order(1))
        over = threading.Event()
        thread = threading.Thread(target=land_later, args=(project, over))
        thread.start()
        report = project.run()
        over.set()
        thread.join()
        assert (report.status, report.exit_code, report.error) == ("done", ExitCode.DONE, None)
        assert "the query does not end by itself" in report.steps[0].warnings[0]
        assert project.rows("n").total() == report.counts.written
        if report.counts.written == 2:
            break
    assert (
        report.counts.written,
        len(report.steps[0].batches),
        report.steps[0].left_for_next_run,
    ) == (2, 2, False)
    assert project.plan().must_run  # whatever waits
    project.step["trigger"], project.pipeline["budget"] = "available_now", "5 minutes"
    assert project.plan().reason == "nothing is new"
    project.land("3.json", order(3))
    assert project.run().counts.written == 1
    assert project.rows("n") == Counter([(1,), (2,), (3,)])


def test_a_batch_that_is_on_its_way_when_the_time_is_over_is_finished_and_what_waits_is_left(
    spark, tmp_path
):
    over = tmp_path / "over"
    (tmp_path / "t.py").write_text(
        "import pathlib, time\n"
        "def wait(rows, token):\n"
        f"    while time.time() < float(pathlib.Path({str(over)!r}).read_text()):\n"
        "        time.sleep(0.05)\n"
    )
    sinks = [{"mode": "append"}, {"kind": "foreach_batch", "function": "t.py:wait"}]
    project = Project(
        spark, tmp_path, {**FILES, "max_files_per_batch": 1}, {"sink": sinks, "trigger": "default"}
    )
    for number in range(5):
        project.land(f"{number}.json", order(number))
    written = 0
    for seconds in (4, 16, 64):
        project.pipeline["budget"] = f"{seconds} seconds"
        over.write_text(str(time.time() + seconds + 1))  # the first batch ends after the budget
        first = project.run()
        written += first.counts.written
        if first.counts.written and first.status != "undelivered":  # else not reached in time
            break
    assert (first.status, first.steps[0].left_for_next_run, first.counts.written) == (
        "done",
        True,
        1,
    )
    assert project.rows("n") == Counter((n,) for n in range(written))
    project.step["trigger"], project.pipeline["budget"] = "available_now", "5 minutes"
    over.write_text("0")
    second = project.run()
    assert (second.counts.written, any(batch.replayed for batch in second.steps[0].batches)) == (
        5 - written,
        False,
    )
    assert project.rows("n") == Counter((n,) for n in range(5))


def run_until(project: Project, arrived: Callable[[], bool]) -> RunReport:
    """Run with a budget that is longer from try to try.

    A slow machine needs longer until the first rows are there.
    """
    for seconds in (6, 20, 90):
        project.pipeline = {"budget": f"{seconds} seconds"}
        report = project.run()
        if arrived():
            break
    return report


def test_continuous_sends_each_record_at_least_once_and_available_now_goes_on_from_its_checkpoint(
    spark, kafka_broker, tmp_path
):
    source, target = (
        kafka_broker.create_topic("continuous_in", partitions=2),
        kafka_broker.create_topic("continuous_out"),
    )
    (tmp_path / "t.sql").write_text("SELECT id, n * 10 AS n FROM source WHERE n <> 3")
    sink = {
        "kind": "kafka",
        "servers": kafka_broker.servers,
        "topic": target,
        "key": "id",
        "headers": {"h": "n"},
    }
    project = Project(
        spark,
        tmp_path,
        {
            "kind": "kafka",
            "servers": kafka_broker.servers,
            "subscribe": source,
            "format": "json",
            "schema": FILES["schema"],
        },
        {"sink": sink, "transform": "t.sql", "trigger": {"continuous": "1 second"}},
    )
    kafka_broker.produce(
        source,
        [*(Record(order(n), partition=n % 2) for n in range(6)), Record("{broken", partition=0)],
    )
    wanted = {b"o0", b"o1", b"o2", b"o4", b"o5"}
    first = run_until(
        project, lambda: wanted <= {record.key for record in kafka_broker.read(target)}
    )
    assert (first.status, first.error, first.counts.read) == ("done", None, 0)
    assert "no counts (all are zero)" in first.steps[0].warnings[0]
    sent = kafka_broker.read(target)
    assert {record.key for record in sent} == wanted
    assert {json.loads(record.value)["n"] for record in sent} == {0, 10, 20, 40, 50} and sent[
        0
    ].headers[0][0] == "h"
    project.step["trigger"], project.pipeline = "available_now", {}
    kafka_broker.produce(source, [Record(order(n), partition=n % 2) for n in range(6, 9)])
    second = project.run()
    assert (second.error, second.counts.read >= 3) == (None, True)
    project.step["trigger"] = {"continuous": "1 second"}
    kafka_broker.produce(source, [Record(order(n), partition=n % 2) for n in range(9, 12)])
    assert (
        run_until(
            project, lambda: b"o11" in {record.key for record in kafka_broker.read(target)}
        ).error
        is None
    )
    project.step["trigger"], project.pipeline = "available_now", {}
    kafka_broker.produce(source, [Record(order(12))])
    assert project.run().error is None
    assert {record.key.decode() for record in kafka_broker.read(target)} == {
        f"o{n}" for n in range(13) if n != 3
    }
    assert not project.plan().must_run


def test_continuous_is_refused_where_its_tasks_could_not_all_start_or_its_transform_needs_batches(
    spark, kafka_broker, tmp_path
):
    topic = kafka_broker.create_topic("continuous_wide", partitions=3)
    project = Project(
        spark,
        tmp_path,
        {
            "kind": "kafka",
            "servers": kafka_broker.servers,
            "subscribe": topic,
            "format": "json",
            "schema": FILES["schema"],
        },
        {"sink": {"kind": "console"}, "trigger": {"continuous": "1 second"}},
    )
    wide = project.run()
    assert (wide.exit_code, "3 partitions, 2 cores" in wide.error) == (ExitCode.TERMINAL, True)
    (tmp_path / "t.sql").write_text("SELECT explode(array(1, 2)) AS n, _row FROM source")
    project.source["subscribe"], project.step["transform"] = (
        kafka_broker.create_topic("continuous_narrow"),
        "t.sql",
    )
    refused = project.run()
    assert (refused.exit_code, "Continuous processing does not support" in refused.error) == (
        ExitCode.TERMINAL,
        True,
    )


def test_a_continuous_trial_of_rate_ends_when_its_seconds_are_over(spark, tmp_path):
    project = Project(
        spark,
        tmp_path,
        {"kind": "rate", "rows": 10, "options": {"numPartitions": "2"}},
        {"sink": {"kind": "console"}, "trigger": {"continuous": "1 second"}},
    )
    for seconds in (3, 12, 60):
        report, paths = trial(project, seconds)
        if report.steps[0].offsets_after is not None:
            break
    assert (
        report.status,
        report.error,
        report.counts.read,
        report.steps[0].offsets_after >= 0,
    ) == ("done", None, 0, True)
    assert not any("no place was noted" in warning for warning in report.steps[0].warnings)
