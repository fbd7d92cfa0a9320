"""Files a queue names: what the probe asks, and what a run takes.

Which messages go and which stay, and when the folder is listed all the same.
"""

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import ValidationError
from sluice.backlog import (
    Arrivals,
    StepBacklog,
    measure_pipeline,
    note_idle_audits,
    notified,
    settle,
    take_arrivals,
)
from sluice.backlog.buckets import find_object
from sluice.backlog.notices import receive_notices, waiting_count
from sluice.checkpoint import Checkpoint
from sluice.cli import app
from sluice.errors import ExitCode, SourceError
from sluice.runner import run_pipeline
from sluice.spec import FileSource, Pipeline, RunRequest, load_pipeline
from sluice.storage import Paths, aws_client
from typer.testing import CliRunner

from tests.s3_server import S3Server

YAML = """
name: shop
steps:
  - name: orders
    source:
      path: {path}
      pattern: "*.csv"
      format: csv
      schema: {{id: string}}
      notifications: {{queue: "{queue}", audit_every: 1 day}}
    sink: {{mode: append}}
"""
LISTS = "list-type=2"


@dataclass
class Shop:
    """A pipeline whose landing folder has a queue.

    Its root is a local folder, and its batches are noted as Spark notes them.
    """

    s3: S3Server
    bucket: str
    queue: str
    folder: Path

    def __post_init__(self) -> None:
        self.spec.write_text(YAML.format(path=self.landing, queue=self.queue))

    @property
    def spec(self) -> Path:
        return self.folder / "shop.yaml"

    @property
    def landing(self) -> str:
        return f"{self.bucket}/in"

    @property
    def pipeline(self) -> Pipeline:
        return load_pipeline(self.spec)

    @property
    def source(self) -> FileSource:
        return self.pipeline.steps[0].source

    @property
    def paths(self) -> Paths:
        return Paths.under(self.folder / "root", "shop")

    @property
    def spark(self) -> Path:
        return Path(self.paths.checkpoint("orders")) / "spark"

    @property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self.spark)

    def land(self, *names: str) -> list[str]:
        for name in names:
            self.s3.put(f"{self.landing}/{name}", "id\n1\n")
        return [f"{self.landing}/{name}" for name in names]

    def note_batch(self, batch: int, paths: list[str], *, committed: bool = True) -> None:
        """What Spark's checkpoint holds after it planned, or finished, a batch."""
        entries = [
            json.dumps(
                {"path": path, "timestamp": int(find_object(path)[2] * 1000), "batchId": batch}
            )
            for path in paths
        ]
        notes = {
            "sources/0": ["v1", *entries],
            "offsets": ["v1", '{"batchWatermarkMs": 0}', json.dumps({"logOffset": batch})],
        }
        for place, lines in (notes | ({"commits": ["v1", "{}"]} if committed else {})).items():
            (self.spark / place).mkdir(parents=True, exist_ok=True)
            (self.spark / place / str(batch)).write_text("\n".join(lines))

    def take(self, hold: int = 600) -> Arrivals:
        return take_arrivals(self.source, self.checkpoint, hold)

    def probe(self) -> StepBacklog:
        """As Airflow's task does."""
        backlog = measure_pipeline(self.pipeline, self.paths)
        note_idle_audits(self.pipeline, self.paths, backlog)
        return backlog[0]

    def run(self) -> tuple[str, dict]:
        """A run that finds nothing: its status, and what it says of Spark."""
        report = run_pipeline(RunRequest(pipeline=str(self.spec), root=self.paths.root))
        return report.status, report.spark

    def change_audit(self, **entries: object) -> None:
        note = self.spark.parent / "audit.json"
        note.write_text(json.dumps(json.loads(note.read_text()) | entries))

    def send(self, *names: str) -> None:
        """Messages as S3 writes them, once more or without an object."""
        for name in names:
            found = {
                "bucket": {"name": self.bucket.removeprefix("s3a://")},
                "object": {"key": f"in/{name}", "size": 5},
            }
            self.send_body(
                json.dumps(
                    {
                        "Records": [
                            {
                                "eventName": "ObjectCreated:Put",
                                "eventTime": "2026-01-01T00:00:00.000Z",
                                "s3": found,
                            }
                        ]
                    }
                )
            )

    def send_body(self, body: str) -> None:
        aws_client("sqs").send_message(QueueUrl=self.queue, MessageBody=body)


@pytest.fixture
def shop(s3, tmp_path, monkeypatch):
    monkeypatch.setattr(
        notified, "receive_notices", partial(receive_notices, wait=0)
    )  # no second of waiting for messages that may be on their way
    bucket = s3.create_bucket(f"shop-{uuid4().hex[:12]}")
    return Shop(s3, bucket, s3.create_queue(bucket), tmp_path)


@pytest.fixture
def audited(shop):
    """A shop that read one file and whose folder was listed a moment ago; its queue is empty."""
    shop.note_batch(0, shop.land("first.csv"))
    assert settle(shop.take(), done=True) == [] and waiting_count(shop.queue) == 0
    return shop


def names(arrivals: Arrivals) -> Counter:
    return Counter(f.name for f in arrivals.files)


def test_an_idle_probe_asks_the_queue_once_and_lists_nothing(audited):
    with audited.s3.counted() as requests:
        found = audited.probe()
    assert (found.must_run, found.reason) == (False, "nothing is new")
    assert requests == [("POST", "/?AmazonSQS.GetQueueAttributes")]


def test_an_idle_run_asks_the_queue_once_lists_nothing_and_starts_no_spark(audited):
    with audited.s3.counted() as requests:
        assert audited.run() == ("nothing new", {})
    assert requests == [("POST", "/?AmazonSQS.ReceiveMessage")]


def test_a_probe_takes_no_message(audited):
    audited.land("a.csv")
    for _ in range(2):
        found = audited.probe()
        assert (
            found.must_run
            and found.reason == "the queue holds about 1 message(s)"
            and found.weight is None
        )
    assert names(audited.take()) == Counter(["a.csv"])


@pytest.mark.parametrize(
    "change",
    [
        {"at": (datetime.now(UTC) - timedelta(days=2)).isoformat()},
        {"at": (datetime.now(UTC) + timedelta(days=2)).isoformat()},
        {"commit": 7},
        {"of": ["s3a://elsewhere", "*", "http://queue"]},
        {"unsettled": True},
        {"unforeseen": 1},
        {"at": None},
    ],
    ids=[
        "old",
        "from_the_future",
        "checkpoint_set_back",
        "another_source",
        "a_run_died",
        "unknown_entry",
        "damaged",
    ],
)
def test_the_folder_is_listed_where_the_last_audit_says_nothing_of_it(audited, change):
    audited.change_audit(**change)
    with audited.s3.counted() as requests:
        found = audited.probe()
    assert not found.must_run and any(LISTS in path for _, path in requests)
    with audited.s3.counted() as requests:
        audited.probe()
    assert requests == [
        ("POST", "/?AmazonSQS.GetQueueAttributes")
    ]  # the listing that found nothing was noted


def test_a_first_probe_lists_and_is_no_audit_while_files_wait(shop):
    shop.land("a.csv")
    for _ in range(2):
        found = shop.probe()
        assert (found.files, found.reason) == (1, "1 file(s) are waiting")
    arrivals = shop.take()
    assert arrivals.listed and names(arrivals) == Counter(["a.csv"])
    shop.note_batch(0, [arrivals.files[0].path])
    assert settle(arrivals, done=True) == [] and waiting_count(shop.queue) == 0
    assert not shop.take().listed


def test_a_run_that_did_not_take_in_all_it_listed_is_no_audit(shop):
    shop.land("a.csv", "b.csv")
    arrivals = shop.take()
    shop.note_batch(0, [arrivals.files[0].path])
    assert settle(arrivals, done=False) == []
    assert waiting_count(shop.queue) == 1 and shop.take().listed


def test_a_run_reads_what_the_queue_names_and_the_checkpoint_does_not_know(audited):
    audited.land(
        "a b+c{d}.csv", "deep/er/é.csv", "first.csv", "note.txt", "x.csv.tmp", "_hidden/h.csv"
    )
    audited.send("deep/er/%C3%A9.csv", "gone.csv")
    with audited.s3.counted() as requests:
        arrivals = audited.take()
    assert not arrivals.listed and names(arrivals) == Counter(["a b+c{d}.csv", "é.csv"])
    assert {f.size for f in arrivals.files} == {5} and all(
        f.modified > 1_767_225_600 for f in arrivals.files
    )
    assert Counter(method for method, path in requests if "SQS" not in path) == Counter(HEAD=3)
    audited.note_batch(1, [f.path for f in arrivals.files])
    assert settle(arrivals, done=True) == []
    assert waiting_count(audited.queue) == 0 and names(audited.take()) == Counter()


def test_files_of_a_planned_batch_are_read_whatever_the_queue_says(audited):
    planned = audited.land("a.csv", "b.csv")
    audited.note_batch(1, planned, committed=False)
    audited.s3.remove(planned[1])
    assert audited.probe().reason == "a batch was planned and not finished"
    for notice in receive_notices(audited.queue, audited.source, 600)[0]:
        aws_client("sqs").delete_message(QueueUrl=audited.queue, ReceiptHandle=notice.receipt)
    arrivals = audited.take()
    assert {f.name: f.size for f in arrivals.files} == {
        "a.csv": 5,
        "b.csv": 0,
    } and not arrivals.listed
    assert arrivals.files[0].modified > 0


def test_messages_of_a_batch_that_failed_can_be_taken_again(audited):
    audited.land("a.csv")
    first = audited.take()
    assert waiting_count(audited.queue) == 0
    assert settle(first, done=False) == []
    again = audited.take()
    assert names(again) == names(first) == Counter(["a.csv"]) and not again.listed


def test_a_run_that_died_with_messages_makes_the_next_one_list(audited):
    audited.land("a.csv")
    audited.take()
    assert waiting_count(audited.queue) == 0
    found = audited.probe()
    assert (found.must_run, found.files) == (True, 1)
    again = audited.take()
    assert again.listed and names(again) == Counter(["a.csv"]) and again.warnings == []


def test_messages_about_known_files_go_without_spark(audited):
    """As after a kill between commit and delete.

    The messages come again, and the checkpoint knows their files.
    """
    audited.note_batch(1, audited.land("a.csv", "b.csv"))
    audited.send("a.csv")
    assert audited.probe().must_run
    assert audited.run() == ("nothing new", {})
    assert waiting_count(audited.queue) == 0 and not audited.probe().must_run


def test_messages_that_cannot_be_deleted_are_a_warning_and_the_next_run_lists(audited):
    audited.note_batch(1, audited.land("a.csv"))
    arrivals = audited.take(hold=1)
    audited.change_audit(unsettled=True)  # as it is noted where something new is named
    with audited.s3.outage():
        [warning] = settle(arrivals, done=True)
    assert "were not settled" in warning
    assert audited.probe().audited is not None


def test_a_lost_message_costs_one_period_and_is_told(audited, monkeypatch):
    audited.land("lost.csv", "told.csv")
    for notice in receive_notices(audited.queue, audited.source, 600)[0]:
        aws_client("sqs").delete_message(QueueUrl=audited.queue, ReceiptHandle=notice.receipt)
    audited.send("told.csv")
    arrivals = audited.take()
    audited.note_batch(1, [f"{audited.landing}/told.csv"])
    assert names(arrivals) == Counter(["told.csv"]) and settle(arrivals, done=True) == []
    assert not audited.probe().must_run
    audited.change_audit(at="2026-01-01T00:00:00+00:00")
    fresh = audited.take()
    assert (
        fresh.listed and names(fresh) == Counter(["lost.csv"]) and fresh.warnings == []
    )  # its message may be on its way
    monkeypatch.setattr(notified, "_ON_ITS_WAY", -60)
    [warning] = audited.take().warnings
    assert warning.startswith("1 file(s) no message named, found by listing the folder: lost.csv;")


def test_a_first_audit_warns_of_nothing(shop, monkeypatch):
    monkeypatch.setattr(notified, "_ON_ITS_WAY", -60)
    shop.land("a.csv")
    receive_notices(shop.queue, shop.source, 600)
    assert shop.take().warnings == []


def test_what_is_no_event_stays_and_wakes_no_run_while_it_is_held(audited):
    audited.send_body("what is this?")
    arrivals = audited.take()
    [warning] = settle(arrivals, done=True)
    assert (
        warning.startswith("1 message(s) in the queue are no events of S3's")
        and waiting_count(audited.queue) == 0
    )
    assert not audited.probe().must_run
    settings = {
        "QueueUrl": audited.queue,
        "AttributeNames": ["ApproximateNumberOfMessagesNotVisible"],
    }
    assert aws_client("sqs").get_queue_attributes(**settings)["Attributes"] == {
        "ApproximateNumberOfMessagesNotVisible": "1"
    }


def test_a_queue_that_is_away_means_run_and_list(audited):
    audited.land("a.csv")
    with audited.s3.refusing(lambda method, path: "SQS" in path):
        found = audited.probe()
        assert found.must_run and "could not be asked" in found.reason and len(found.warnings) == 1
        arrivals = audited.take()
    assert arrivals.listed and names(arrivals) == Counter(["a.csv"])
    assert len(arrivals.warnings) == 1 and arrivals.warnings[0].startswith(
        "the queue could not be asked, so the folder was listed"
    )


def test_an_absent_queue_is_an_error_and_not_a_listing_for_ever(audited):
    audited.spec.write_text(YAML.format(path=audited.landing, queue=f"{audited.queue}-none"))
    with pytest.raises(SourceError, match="the queue does not exist"):
        audited.take()
    report = run_pipeline(RunRequest(pipeline=str(audited.spec), root=audited.paths.root))
    assert report.exit_code == ExitCode.TERMINAL and "the queue does not exist" in report.error


def test_more_messages_than_a_run_takes_mean_a_listing(audited, monkeypatch):
    audited.land(*(f"{number}.csv" for number in range(15)))
    monkeypatch.setattr(notified, "receive_notices", partial(receive_notices, wait=0, limit=10))
    arrivals = audited.take()
    assert arrivals.listed and len(arrivals.files) == 15 and len(arrivals.notices) == 10


NOT_ON_S3 = YAML.format(path="/data/in", queue="https://sqs.example.com/123/new-files")


def test_validate_refuses_notifications_of_a_folder_that_is_not_on_s3(tmp_path):
    (tmp_path / "shop.yaml").write_text(NOT_ON_S3)
    result = CliRunner().invoke(app, ["validate", "--spec", str(tmp_path / "shop.yaml")])
    assert result.exit_code == ExitCode.TERMINAL
    said = " ".join(result.stderr.split())
    assert (
        "`notifications` are S3's, and '/data/in' lies elsewhere" in said
        and "write `path: s3a://bucket/folder`" in said
    )


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"notifications": {"queue": "new-files"}}, "not the URL of a queue"),
        (
            {"notifications": {"queue": "https://sqs.example.com/123/q", "audit_every": "0 days"}},
            "write a duration above zero",
        ),
        (
            {"notifications": {"queue": "https://sqs.example.com/123/q"}, "ordered_by": "name"},
            "leave out one of the two",
        ),
    ],
)
def test_notifications_that_cannot_work_are_refused(entries, message):
    with pytest.raises(ValidationError, match=message):
        FileSource.model_validate(
            {"path": "s3a://lake/in", "format": "csv", "schema": {"id": "string"}, **entries}
        )


def step(name: str, **entries: object) -> dict:
    source = {
        "path": "s3a://lake/in",
        "format": "csv",
        "schema": {"id": "string"},
        "notifications": {"queue": "https://sqs.example.com/123/q"},
    }
    return {"name": name, "source": source, "sink": {"mode": "append"}, **entries}


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([step("s", trigger="default")], "`notifications` name what a run reads as it begins"),
        ([step("a"), step("b")], "two steps read one queue"),
    ],
    ids=["a_trigger_that_waits_for_more", "two_steps"],
)
def test_a_queue_that_would_not_be_read_in_whole_is_refused(steps, message):
    with pytest.raises(ValidationError, match=message):
        Pipeline.model_validate({"name": "p", "steps": steps})
