"""New objects as SQS names them: the same tables and counts as by listing.

A message goes only when its files are committed.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest
from pyarrow import parquet
from sluice.backlog import StepBacklog, measure_pipeline
from sluice.backlog.notices import waiting_count
from sluice.errors import ExitCode
from sluice.report import Counts, RunReport
from sluice.runner import run_pipeline
from sluice.setup.fetch import fetch_jars
from sluice.spec import RunRequest, load_pipeline
from sluice.storage import Paths, aws_client, open_path, replace_file, split_uri

from tests.s3_server import S3Server
from tests.servers.s3_runs import S3Runs, start_runs

YAML = """
name: shop
master: local[2]
steps:
  - name: orders
    source:
      path: {bucket}/in
      pattern: "*.csv"
      format: csv
      schema: {{id: string, at: timestamp, amount: double}}
      {notifications}
    event_time: {{column: at}}
    dedup: {{keys: [id], within: 2 days}}
    rules:
      - type: expect_column_values_to_be_between
        kwargs: {{column: amount, min_value: 0}}
        on_fail: {on_fail}
"""


@dataclass
class Shop:
    """A pipeline over a bucket. `queue`: empty for one that lists."""

    s3: S3Server
    runs: S3Runs
    bucket: str
    spec: Path
    root: str
    queue: str = ""
    reports: list[RunReport] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.write()

    def write(self, on_fail: str = "quarantine") -> None:
        notifications = f'notifications: {{queue: "{self.queue}"}}' if self.queue else ""
        self.spec.write_text(
            YAML.format(bucket=self.bucket, notifications=notifications, on_fail=on_fail)
        )

    def land(self, file: str, ids: range) -> str:
        """Land one file; every tenth order has a negative amount."""
        lines = [f"o{i},2026-01-01T00:00:{i % 60:02}Z,{-1 if i % 10 == 0 else i}" for i in ids]
        self.s3.put(f"{self.bucket}/in/{file}", "\n".join(["id,at,amount", *lines]))
        return f"{self.bucket}/in/{file}"

    def land_unnoticed(self, file: str, ids: range) -> None:
        """Land one file whose message is lost, or late."""
        bucket = split_uri(self.bucket)[0]
        config = self.s3.client.get_bucket_notification_configuration(Bucket=bucket)
        self.s3.client.put_bucket_notification_configuration(
            Bucket=bucket, NotificationConfiguration={}
        )
        self.land(file, ids)
        self.s3.client.put_bucket_notification_configuration(
            Bucket=bucket,
            NotificationConfiguration={"QueueConfigurations": config["QueueConfigurations"]},
        )

    def send(self, key: str) -> None:
        """A message as S3 writes it, once more or late. Args: key: as S3 encodes it."""
        found = {
            "bucket": {"name": split_uri(self.bucket)[0]},
            "object": {"key": f"in/{key}", "size": 1},
        }
        event = {
            "eventName": "ObjectCreated:Put",
            "eventTime": "2026-01-01T00:00:00.000Z",
            "s3": found,
        }
        aws_client("sqs").send_message(
            QueueUrl=self.queue, MessageBody=json.dumps({"Records": [event]})
        )

    def run(self) -> RunReport:
        self.reports.append(self.runs.run(self.spec, self.root))
        return self.reports[-1]

    def run_idle(self) -> RunReport:
        """A run in this process, where nothing would start Spark."""
        return run_pipeline(RunRequest(pipeline=str(self.spec), root=self.root))

    def probe(self) -> StepBacklog:
        return measure_pipeline(load_pipeline(self.spec), self.paths)[0]

    @property
    def paths(self) -> Paths:
        return Paths.under(self.root, "shop")

    @property
    def tables(self) -> tuple[Counter, Counter]:
        """Target and quarantine, as multisets."""
        target, refused = rows(self.paths.table("orders")), rows(self.paths.quarantine("orders"))
        return Counter((r["id"], r["at"], r["amount"], r["_source"]) for r in target), Counter(
            (r["row"], tuple(r["reasons"])) for r in refused
        )

    @property
    def counts(self) -> Counts:
        return sum((report.counts for report in self.reports), Counts())

    def age_audit(self) -> None:
        note = open_path(self.paths.checkpoint("orders")) / "audit.json"
        replace_file(
            note, json.dumps(json.loads(note.read_text()) | {"at": "2026-01-01T00:00:00+00:00"})
        )


def rows(table: str) -> list[dict]:
    """A Delta table's rows, read without Spark: the files its log holds."""
    files: dict[str, None] = {}
    for commit in sorted(
        (p for p in (open_path(table) / "_delta_log").iterdir() if p.suffix == ".json"),
        key=lambda p: p.name,
    ):
        for action in map(json.loads, commit.read_text().splitlines()):
            files |= {action["add"]["path"]: None} if "add" in action else {}
            files = {file: None for file in files if file != action.get("remove", {}).get("path")}
    found = []
    for file in files:
        with (open_path(table) / file).open("rb") as content:
            found += parquet.read_table(content).to_pylist()
    return found


def folder_listings(requests: list[tuple[str, str]]) -> list[str]:
    """Requests that list the landing folder, not what lies below one of its files' names."""
    return [
        path
        for _, path in requests
        if "list-type=2" in path
        and any(
            part in ("prefix=in", "prefix=in/", "prefix=in%2F")
            for part in path.replace("?", "&").split("&")
        )
    ]


@pytest.fixture(scope="module")
def runs(s3_server, tmp_path_factory):
    """The process that runs; one session for all tests of this module."""
    fetch_jars("s3")
    folder = tmp_path_factory.mktemp("runs")
    (folder / "shop.yaml").write_text(
        YAML.format(bucket="s3a://none", notifications="", on_fail="warn")
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in s3_server.environment.items():
            patch.setenv(name, value)
        with start_runs(folder / "shop.yaml", folder / "runs.log") as process:
            yield process


@pytest.fixture
def shop(s3, runs, tmp_path):
    """A shop with a queue, and a root on this machine."""
    bucket = s3.create_bucket(f"shop-{uuid4().hex[:12]}")
    return Shop(
        s3, runs, bucket, tmp_path / "shop.yaml", str(tmp_path / "root"), s3.create_queue(bucket)
    )


def test_the_same_rows_and_counts_as_by_listing_whatever_the_queue_does(s3, runs, tmp_path):
    """The notified pipeline, whose root is on S3, in a folder with a thousand other objects.

    Keys of every kind; messages doubled, late, out of order and about known files.
    """
    bucket = s3.create_bucket(f"shop-{uuid4().hex[:12]}")
    for number in range(1_010):
        s3.put(f"{bucket}/in/other/{number}.txt", "")
    listed = Shop(s3, runs, bucket, tmp_path / "listed.yaml", str(tmp_path / "root"))
    notified = Shop(
        s3,
        runs,
        bucket,
        tmp_path / "notified.yaml",
        f"{bucket}/root",
        s3.create_queue(bucket, "in/"),
    )

    listed.land("a.csv", range(30))
    listed.land("day=1/b {c,d}+e f[1].csv", range(20, 50))
    assert notified.run().counts == listed.run().counts
    assert waiting_count(notified.queue) == 0

    listed.land("2026-01-01T00:00:00.csv", range(40, 70))
    listed.land("day=2/100%25 é\\?.csv", range(60, 80))
    listed.land_unnoticed("late.csv", range(75, 90))
    notified.send("2026-01-01T00%3A00%3A00.csv")
    with s3.counted() as requests:
        second = notified.run()
    assert second.steps[0].files_read == 2 and folder_listings(requests) == []
    with s3.counted() as requests:
        assert listed.run().steps[0].files_read == 3
    assert len(folder_listings(requests)) >= 4

    notified.send("late.csv")
    listed.land("c.csv", range(85, 100))
    listed.land("a.csv", range(500, 510))  # over one that was read
    notified.send("day%3D2/100%2525+%C3%A9%5C%3F.csv")
    with s3.counted() as requests:
        third = notified.run()
    assert third.steps[0].files_read == 2 and folder_listings(requests) == []
    assert listed.run().steps[0].files_read == 1

    assert notified.tables == listed.tables and notified.counts == listed.counts
    assert sum(notified.tables[0].values()) == 90 and notified.counts.read == 140
    assert waiting_count(notified.queue) == 0 and not notified.probe().must_run

    notified.age_audit()
    listed.land("d.csv", range(100, 105))
    audit = notified.run()  # Spark itself lists, and knows each file it was handed by name
    assert (audit.steps[0].files_read, audit.counts.read, audit.counts.duplicate) == (1, 5, 0)


def test_messages_stay_while_a_batch_is_refused_and_go_when_it_is_committed(shop):
    shop.land("a.csv", range(1, 5))
    shop.run()
    shop.write(on_fail="stop")
    shop.land("b.csv", range(5, 25))
    with shop.s3.counted() as requests:
        stopped = shop.run()
    assert stopped.exit_code == ExitCode.STOPPED_BY_RULE
    assert Counter(p for _, p in requests if "SQS" in p) == Counter(
        {"/?AmazonSQS.ReceiveMessage": 2, "/?AmazonSQS.ChangeMessageVisibilityBatch": 1}
    )
    assert waiting_count(shop.queue) == 1 and sum(shop.tables[0].values()) == 4
    shop.write()
    assert shop.run().counts.read == 20
    assert waiting_count(shop.queue) == 0 and sum(shop.tables[0].values()) == 22
    assert not shop.probe().must_run


def test_messages_that_outlive_their_batch_change_nothing_and_start_no_spark(shop):
    shop.land("a.csv", range(1, 5))
    shop.run()
    shop.land("b.csv", range(5, 9))
    with shop.s3.refusing(lambda method, path: path.endswith("DeleteMessageBatch")):
        kept = shop.run()
    assert (kept.status, kept.exit_code, kept.counts.written) == ("done", ExitCode.DONE, 4)
    assert any("were not settled" in warning for warning in kept.steps[0].warnings)
    shop.send("b.csv")  # as it comes again when its time is up
    assert shop.probe().audited is not None
    idle = shop.run_idle()
    assert (idle.status, idle.spark) == ("nothing new", {})
    assert waiting_count(shop.queue) == 0 and not shop.probe().must_run
    assert sum(shop.tables[0].values()) == 8


def test_a_file_whose_message_was_lost_is_read_by_the_next_audit_also_without_a_queue(shop):
    shop.land("a.csv", range(1, 5))
    shop.run()
    shop.land_unnoticed("lost.csv", range(5, 9))
    aws_client("sqs").purge_queue(QueueUrl=shop.queue)  # S3's test of the configuration
    assert not shop.probe().must_run
    shop.age_audit()
    with shop.s3.refusing(lambda method, path: "SQS" in path):
        assert shop.probe().files == 1
        found = shop.run()
    assert found.counts.written == 4 and any(
        warning.startswith("the queue could not be asked, so the folder was listed")
        for warning in found.steps[0].warnings
    )
    assert not shop.probe().must_run
