"""Landing, tables, checkpoints, reports and leases on S3: the same promises as on a local disk.

And what an outage costs. Each run is a process of its own, as a user starts it: the S3 client is a
jar of 686 MB, which has no place in the session other tests share.
"""

import io
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from pyarrow import parquet
from pyspark.errors import PySparkException
from sluice.checkpoint import hold_lease
from sluice.errors import ExitCode, SourceError, TransientError
from sluice.report import list_reports
from sluice.setup.fetch import fetch_jars
from sluice.spark.failure import UnreadableFile, explain
from sluice.storage import Paths

from tests.long_runs import further
from tests.s3_server import S3Server

YAML = """
name: shop
master: local[2]
# the product's own limit makes an outage cost a minute more, and nothing else
spark: {{spark.hadoop.fs.s3a.retry.throttle.limit: 2}}
steps:
  - name: orders
    source: {{path: {landing}, format: csv, schema: {{id: string, at: timestamp, amount: double}}}}
    event_time: {{column: at}}
    dedup: {{keys: [id], within: 2 days}}
    rules:
      - type: expect_column_values_to_be_between
        kwargs: {{column: amount, min_value: 0}}
        on_fail: quarantine
"""


@dataclass(frozen=True)
class Shop:
    """A pipeline of which everything lies in one bucket."""

    s3: S3Server
    spec: Path
    bucket: str

    @property
    def paths(self) -> Paths:
        return Paths.under(f"{self.bucket}/root", "shop")

    def land(self, file: str, ids: range) -> None:
        """Land one file; every tenth order has a negative amount."""
        lines = [f"o{i},2026-01-01T00:00:{i % 60:02}Z,{-1 if i % 10 == 0 else i}" for i in ids]
        self.s3.put(f"{self.bucket}/landing/{file}", "\n".join(["id,at,amount", *lines]))

    def call(self, *arguments: str) -> subprocess.CompletedProcess:
        """Call `sluice` as a user does, over S3."""
        command = [
            sys.executable,
            "-m",
            "sluice.cli",
            *arguments,
            "--spec",
            str(self.spec),
            "--root",
            self.paths.root,
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)

    def table(self, path: str) -> list[dict]:
        """A Delta table's rows, read without Spark: the files its log holds."""
        files: dict[str, None] = {}
        for commit in (
            uri for uri in self.s3.addresses(f"{path}/_delta_log/") if uri.endswith(".json")
        ):
            for action in map(json.loads, self.s3.get(commit).splitlines()):
                files |= {action["add"]["path"]: None} if "add" in action else {}
                files = {
                    file: None for file in files if file != action.get("remove", {}).get("path")
                }
        return [
            row
            for file in files
            for row in parquet.read_table(io.BytesIO(self.s3.get(f"{path}/{file}"))).to_pylist()
        ]

    def ids(self) -> Counter:
        """The orders of the target."""
        return Counter(row["id"] for row in self.table(self.paths.table("orders")))

    def refused(self) -> Counter:
        """The orders of the quarantine table."""
        return Counter(
            row["row"].partition(",")[0] for row in self.table(self.paths.quarantine("orders"))
        )


def orders(ids: range, *, negative: bool) -> Counter:
    """What one of the two tables must hold."""
    return Counter(f"o{i}" for i in ids if (i % 10 == 0) is negative)


@pytest.fixture
def shop(s3, tmp_path):
    fetch_jars("s3")
    bucket, spec = s3.create_bucket(f"shop-{uuid4().hex[:12]}"), tmp_path / "shop.yaml"
    spec.write_text(YAML.format(landing=f"{bucket}/landing"))
    return Shop(s3, spec, bucket)


def test_a_pipeline_of_which_everything_lies_on_s3(shop):
    shop.land("a.csv", range(100))
    shop.land("_hidden/b.csv", range(500, 600))
    first = shop.call("run")
    assert first.returncode == ExitCode.DONE, first.stderr
    assert shop.ids() == orders(range(100), negative=False) and shop.refused() == orders(
        range(100), negative=True
    )

    with shop.s3.counted() as requests:
        probe = shop.call("plan")
    assert probe.returncode == ExitCode.NOTHING_NEW, probe.stdout + probe.stderr
    assert not [path for method, path in requests if method != "GET" and method != "HEAD"]

    shop.land("c.csv", range(50, 150))
    with hold_lease(shop.paths.lease("orders"), "another"):
        busy = shop.call("run")
    assert busy.returncode == ExitCode.TRANSIENT and "run another" in busy.stderr

    with shop.s3.slow(0.05):
        second = shop.call("run")
    assert second.returncode == ExitCode.DONE, second.stderr
    assert shop.ids() == orders(range(150), negative=False) and shop.refused() == orders(
        range(150), negative=True
    )
    newest, oldest = (
        report for report in list_reports(shop.paths.reports()) if report.status == "done"
    )
    assert (oldest.counts.written, oldest.counts.quarantined, oldest.counts.duplicate) == (
        90,
        10,
        0,
    )
    assert (newest.counts.written, newest.counts.quarantined, newest.counts.duplicate) == (
        45,
        5,
        50,
    )
    assert any(
        uri.endswith("/spark/commits/1")
        for uri in shop.s3.addresses(shop.paths.checkpoint("orders"))
    )


def test_a_store_that_refuses_everything_in_the_middle_of_a_run_loses_and_doubles_nothing(shop):
    """Everything is refused from the moment on in which Spark notes that the batch is done.

    Its rows are in the tables, and nothing says so but their commits.
    """
    shop.land("a.csv", range(100))
    with shop.s3.outage(
        lambda method, path: method == "PUT" and "/spark/commits/0" in path
    ) as begun:
        broken = shop.call("run")
    assert begun.is_set()
    assert broken.returncode == ExitCode.TRANSIENT, broken.stdout + broken.stderr
    shop.land("b.csv", range(50, 150))
    mended = shop.call("run")
    assert mended.returncode == ExitCode.DONE, mended.stderr
    assert shop.ids() == orders(range(150), negative=False) and shop.refused() == orders(
        range(150), negative=True
    )
    verified = shop.call("verify", "--json")
    assert verified.returncode == ExitCode.DONE, verified.stdout + verified.stderr
    found = [json.loads(line) for line in verified.stdout.splitlines()]
    assert [(one["table"], one["rows"], one["missing"], one["surplus"]) for one in found] == [
        ("target", 135, 0, 0),
        ("quarantine", 15, 0, 0),
    ]
    assert not [at for at in shop.s3.addresses(f"{shop.paths.root}/verify/") if "lease" not in at]
    [report] = [one for one in list_reports(shop.paths.reports()) if one.status == "done"]
    assert (
        report.counts.read
        == report.counts.written + report.counts.quarantined + report.counts.duplicate
        == 200
    )


@further
def test_a_batch_on_s3_that_did_not_end_is_planned_anew_under_a_lower_bound(shop):
    """The store refuses the target's commit, when the batch is planned and its refused rows lie in
    their table."""
    for number in range(3):
        shop.land(f"{number}.csv", range(number * 50, number * 50 + 100))
    with shop.s3.outage(
        lambda method, path: (
            method == "PUT" and path.endswith("/orders/_delta_log/" + f"{0:020}.json")
        )
    ) as begun:
        broken = shop.call("run")
    assert begun.is_set()
    assert broken.returncode == ExitCode.TRANSIENT, broken.stdout + broken.stderr
    bounded = shop.spec.read_text().replace("format: csv", "format: csv, max_files_per_batch: 1")
    shop.spec.write_text(bounded)
    mended = shop.call("run")
    assert mended.returncode == ExitCode.DONE, mended.stderr
    report = next(one for one in list_reports(shop.paths.reports()) if one.status == "done")
    assert [batch.counts.read for batch in report.steps[0].batches] == [100] * 3
    assert any("planned anew" in told for told in report.steps[0].warnings)
    assert shop.ids() == orders(range(200), negative=False)
    assert shop.refused() == orders(range(200), negative=True)
    assert shop.call("run").returncode == ExitCode.NOTHING_NEW


def test_each_file_on_s3_is_read_once_although_spark_s_log_of_them_is_cut_down(shop):
    """Names are so long, and blanks in them longer once they are escaped, that the log of 200 of
    them is one that is cut down."""
    for number in range(200):
        shop.land(f"{number}{' ' * 900}.csv", range(number, number + 1))
    assert shop.call("run").returncode == ExitCode.DONE
    for more in (200, 201):
        shop.land(f"{more} ü.csv", range(more, more + 1))
        run = shop.call("run")
        assert run.returncode == ExitCode.DONE, run.stdout + run.stderr
    log = shop.s3.addresses(f"{shop.paths.checkpoint('orders')}/spark/sources/0/")
    assert sum(len(shop.s3.get(note)) for note in log) < 2_000
    counts = [one.counts for one in list_reports(shop.paths.reports()) if one.status == "done"]
    assert sorted((one.read, one.duplicate) for one in counts) == [(1, 0), (1, 0), (200, 0)]
    assert shop.ids() == orders(range(202), negative=False)
    assert shop.call("plan").returncode == ExitCode.NOTHING_NEW


FAILED_READ = (
    "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
    "s3a://lake/landing/a.csv.  SQLSTATE: KD001\n"
)


@pytest.mark.parametrize(
    ("cause", "verdict"),
    [
        (
            "java.io.IOException: Server error accessing s3a://lake/landing/a.csv\n"
            "Caused by: software.amazon.awssdk.services.s3.model.S3Exception: "
            "Please reduce your request rate. "
            "(Service: S3, Status Code: 503, Request ID: null) (SDK Attempt Count: 4)",
            TransientError,
        ),
        (
            "org.apache.hadoop.fs.s3a.AWSClientIOException: read on s3a://lake/landing/a.csv: "
            "software.amazon.awssdk.core.exception.SdkClientException: Data read has a "
            "different length than the expected",
            TransientError,
        ),
        (
            "java.nio.file.AccessDeniedException: s3a://lake/landing/a.csv: getFileStatus on s3a://lake/landing/a.csv",
            SourceError,
        ),
        (
            "java.io.FileNotFoundException: No such file or directory: s3a://lake/landing/a.csv",
            UnreadableFile,
        ),
        ("java.util.zip.ZipException: invalid stored block lengths", UnreadableFile),
    ],
)
def test_a_file_is_given_up_for_what_it_is_and_never_for_what_its_store_does(cause, verdict):
    assert type(explain(PySparkException(f"{FAILED_READ}Caused by: {cause}"))) is verdict
