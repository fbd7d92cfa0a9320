"""Paths of a bucket behave as paths of a disk.

A store that cannot be asked is never taken for an empty one.
"""

import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyarrow import parquet
from sluice.backlog import list_files, measure_step, waiting_files
from sluice.backlog import waiting as waiting_module
from sluice.backlog.ranges import select_range
from sluice.checkpoint import (
    Checkpoint,
    begin_anew,
    hold_lease,
    lease_store,
    noted_generation,
    open_manifest,
)
from sluice.checkpoint.journal import read_journal
from sluice.errors import PreflightError, SourceError, TerminalError, TransientError
from sluice.launch import settings as settings_module
from sluice.launch import spark_settings
from sluice.report import RunReport, list_reports, read_report, write_report
from sluice.sources.parse.headers import read_csv_header, read_schema
from sluice.spec import FileSource, Pipeline, Step, Window
from sluice.storage import Paths, open_path, remove_tree, replace_file, s3_client


@pytest.fixture
def bucket(s3):
    return s3.create_bucket(f"b-{uuid.uuid4().hex[:12]}")


def source(path: str, **fields: object) -> FileSource:
    return FileSource.model_validate(
        {"path": path, "format": "csv", "schema": {"id": "string"}, **fields}
    )


def pipeline(path: str, **fields: object) -> Pipeline:
    step = {
        "name": "lines",
        "source": {"path": path, "format": "csv", "schema": {"id": "string"}},
        "sink": {"mode": "append"},
    }
    return Pipeline.model_validate({"name": "shop", "steps": [step], **fields})


def test_what_was_written_is_what_is_read_also_over_an_older_one(bucket):
    path = open_path(f"{bucket}/a b/c%20d.json")
    assert not path.exists() and not path.parent.exists()
    for text in ("one", "another", ""):
        replace_file(path, text)
        assert path.read_text() == text and path.read_bytes() == text.encode()
    assert path.exists() and path.parent.exists() and path.name == "c%20d.json"
    assert (
        abs(datetime.fromtimestamp(path.stat().st_mtime, UTC) - datetime.now(UTC)).total_seconds()
        < 60
    )


def test_a_folder_shows_what_lies_in_it_now(bucket):
    folder = open_path(f"s3://{bucket.removeprefix('s3a://')}/x")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("1", "2", "deep/3"):
        replace_file(folder / name, name)
    replace_file(open_path(f"{bucket}/x-other"), "")
    assert sorted(path.name for path in folder.iterdir()) == ["1", "2", "deep"]
    (folder / "1").unlink()
    (folder / "1").unlink(missing_ok=True)
    assert sorted(path.name for path in folder.iterdir()) == ["2", "deep"]
    assert str(folder / "2") == f"{bucket}/x/2"
    remove_tree(folder)
    remove_tree(folder)
    assert not folder.exists() and open_path(f"{bucket}/x-other").exists()


def test_an_absent_key_and_an_absent_bucket_are_two_things(bucket):
    with pytest.raises(FileNotFoundError):
        open_path(f"{bucket}/none").read_bytes()
    for ask in (
        lambda: open_path("s3a://no-such-bucket/x").exists(),
        lambda: list_files(source("s3a://no-such-bucket/x")),
        lambda: lease_store.open_leases("s3a://no-such-bucket/lease").newest(),
        lambda: replace_file(open_path("s3a://no-such-bucket/x"), ""),
    ):
        with pytest.raises(
            SourceError, match=r"the bucket does not exist.*no-such-bucket.*Create it"
        ):
            ask()


def test_an_address_that_is_none_says_how_one_is_written():
    with pytest.raises(SourceError, match="Write s3a://bucket/folder"):
        list_files(source("s3a://no bucket/x"))


def test_a_store_that_refuses_is_neither_empty_nor_absent(bucket, s3, tmp_path):
    path, shop = open_path(f"{bucket}/x"), pipeline(f"{bucket}/landing")
    step = shop.steps[0]
    asked = [
        path.exists,
        path.read_bytes,
        lambda: list(path.iterdir()),
        lambda: list_files(step.source),
        lambda: open_manifest(f"{bucket}/checkpoint"),
        lambda: lease_store.open_leases(f"{bucket}/lease").newest(),
        lambda: replace_file(path, ""),
        lambda: read_csv_header(f"{bucket}/x", step.source),
        lambda: read_report(f"{bucket}/reports", "r"),
    ]
    with s3.outage(), ThreadPoolExecutor(16) as pool:
        probe = pool.submit(measure_step, shop, step, Paths.under(tmp_path, "shop"))
        errors = [future.exception(60) for future in [pool.submit(ask) for ask in asked]]
        backlog = probe.result(60)
    assert [type(error) for error in errors] == [TransientError] * len(asked)
    assert backlog.must_run and "could not be measured" in backlog.reason


def test_a_store_that_is_not_there_is_worth_another_try(bucket, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(TransientError, match="could not be reached.*AWS_ENDPOINT_URL"):
        open_path(f"{bucket}/x").exists()


def test_refused_access_is_not_worth_another_try(bucket):
    from botocore.exceptions import ClientError
    from sluice.storage import store_errors

    with (
        pytest.raises(TerminalError, match="refused access: AccessDenied.*credentials"),
        store_errors(bucket),
    ):
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetObject")


def test_the_header_of_a_large_file_costs_a_part_of_it(bucket, s3):
    s3.put(f"{bucket}/large.csv", "id,name\n" + "1,x\n" * 1_000_000)
    with s3.counted() as requests:
        assert read_csv_header(f"{bucket}/large.csv", source(bucket))[1] == ("id", "name")
    assert len(requests) == 1
    table = pa.table(
        {
            "id": [str(i) for i in range(200_000)],
            "name": [f"name {i * 7919}" for i in range(200_000)],
        }
    )
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink)
    s3.put(f"{bucket}/large.parquet", sink.getvalue().to_pybytes())
    assert read_schema(f"{bucket}/large.parquet", "parquet")[1] == ("id", "name")
    with open_path(f"{bucket}/large.csv").open("rb") as handle:
        handle.read(300_000)
        s3.put(f"{bucket}/large.csv", "id\n" * 1_000_000)
        with pytest.raises(TransientError):
            handle.read()  # half of one version and half of another is no file


FILES = (
    "a.csv",
    "b.csv.gz",
    ".hidden.csv",
    "_hidden.csv",
    "c.tmp",
    "d._COPYING_",
    "day=1/a.csv",
    "day=1/_temporary/0/a.csv",
    "_spark_metadata/0",
    ".git/a.csv",
    "_k=v/a.csv",
    "2026/01/a.csv",
    "2026/02/b.csv",
    "2027/01/a.csv",
    "a{1}/x.csv",
    "é/ü.csv",
)


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("", "*"),
        ("/", "*"),
        ("", "*.csv"),
        ("", "{a,b}*"),
        ("/*/01", "*"),
        ("/{2026,2027}/0[12]", "*"),
        ("/202?", "a*"),
        ("/a.csv", "*"),
        ("/nothing", "*"),
        ("/*/nothing", "*"),
        (r"/a\{1\}", "*"),
        ("/day=1/", "*"),
    ],
)
def test_a_bucket_is_listed_as_a_folder_is(bucket, s3, tmp_path, path, pattern):
    (tmp_path / "in" / "nothing").mkdir(parents=True)
    for name in FILES:
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text("id\n")
        s3.put(f"{bucket}/in/{name}", "id\n")
    s3.put(f"{bucket}/in/marker/", "")
    s3.put(f"{bucket}/in-other/a.csv", "id\n")
    local = [
        (f.path.removeprefix(str(tmp_path)), f.size)
        for f in list_files(source(f"{tmp_path}/in{path}", pattern=pattern))
    ]
    there = [
        (f.path.removeprefix(bucket), f.size)
        for f in list_files(source(f"{bucket}/in{path}", pattern=pattern))
    ]
    assert sorted(there) == sorted(local)


def checkpoint_of(folder, batches: dict[int, list[str]], committed: int) -> Checkpoint:
    """A checkpoint that has planned these batches."""
    import json

    for name in ("offsets", "commits", "sources/0"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for batch, paths in batches.items():
        entries = [json.dumps({"path": path, "timestamp": 0, "batchId": batch}) for path in paths]
        (folder / "sources" / "0" / str(batch)).write_text("\n".join(["v1", *entries]))
        (folder / "offsets" / str(batch)).write_text(
            "\n".join(["v1", json.dumps({"batchWatermarkMs": 0}), json.dumps({"logOffset": batch})])
        )
        if batch <= committed:
            (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return Checkpoint(folder)


def test_ordered_names_are_listed_from_a_little_before_the_end_by_one_request(
    bucket, s3, tmp_path, monkeypatch
):
    monkeypatch.setitem(waiting_module._LISTED_AGAIN, "name", 3)
    names = [f"{bucket}/in/{n:04}.csv" for n in range(12)]
    for name in names:
        s3.put(name, "id\n")
    checkpoint = checkpoint_of(tmp_path, {0: names[:5], 1: names[5:9]}, committed=1)
    with s3.counted() as requests:
        assert [
            f.path for f in waiting_files(source(f"{bucket}/in", ordered_by="name"), checkpoint)[0]
        ] == names[9:]
    assert len(requests) == 1 and "start-after=in%2F0006.csv" in requests[0][1]
    s3.put(f"{bucket}/in/0006a.csv", "id\n")  # an upload that took long
    assert len(waiting_files(source(f"{bucket}/in", ordered_by="name"), checkpoint)[0]) == 4


def test_a_planned_file_is_listed_whatever_was_read_after_it(bucket, s3, tmp_path, monkeypatch):
    monkeypatch.setitem(waiting_module._LISTED_AGAIN, "name", 1)
    names = [f"{bucket}/in/{n}.csv" for n in range(4)]
    for name in names:
        s3.put(name, "id\n")
    checkpoint = checkpoint_of(tmp_path, {0: [names[0], names[3]], 1: [names[1]]}, committed=0)
    assert {
        f.path for f in waiting_files(source(f"{bucket}/in", ordered_by="name"), checkpoint)[0]
    } == {names[1], names[2]}


def test_ordered_folders_are_listed_from_the_last_but_one(bucket, s3, tmp_path):
    read = [f"{bucket}/in/dt=2026-01-0{day}/{name}.csv" for day in (1, 2, 3) for name in ("m", "z")]
    new = [f"{bucket}/in/dt=2026-01-0{day}/a.csv" for day in (2, 3, 4)]
    for name in read + new:
        s3.put(name, "id\n")
    with s3.counted() as requests:
        found = waiting_files(
            source(f"{bucket}/in", ordered_by="folder"),
            checkpoint_of(tmp_path, {0: read}, committed=0),
        )[0]
    assert sorted(f.path for f in found) == new
    assert [("start-after=in%2Fdt%3D2026-01-02%2F" in path) for _, path in requests] == [True]


def test_without_a_word_of_the_user_everything_is_listed(bucket, s3, tmp_path):
    s3.put(f"{bucket}/in/b.csv", "id\n")
    s3.put(f"{bucket}/in/a.csv", "id\n")
    assert [
        f.name
        for f in waiting_files(
            source(f"{bucket}/in"),
            checkpoint_of(tmp_path, {0: [f"{bucket}/in/b.csv"]}, committed=0),
        )[0]
    ] == ["a.csv"]
    with pytest.raises(ValueError, match="path without globs"):
        source(f"{bucket}/*/in", ordered_by="name")


def test_reports_manifest_and_journal_live_in_a_bucket(bucket):
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    for number in (1, 2):
        report = RunReport(
            pipeline="shop",
            run_id=f"r{number}",
            started=moment.replace(day=number),
            ended=moment,
            status="done",
        )
        write_report(report, f"{bucket}/reports/shop")
    assert [report.run_id for report in list_reports(f"{bucket}/reports/shop")] == ["r2", "r1"]
    assert (
        list_reports(f"{bucket}/reports/other") == [] and read_journal(f"{bucket}/checkpoint") == []
    )
    with pytest.raises(FileNotFoundError):
        read_report(f"{bucket}/reports/shop", "r3")
    assert open_manifest(f"{bucket}/checkpoint") == open_manifest(f"{bucket}/checkpoint")


def test_a_claim_whose_answer_was_lost_is_recognized_as_ones_own(bucket):
    store = lease_store.open_leases(f"{bucket}/lease")
    assert store.create(1, "mine") and store.create(
        1, "mine"
    )  # the second is the client's own second try
    assert not store.create(1, "another's")


def test_a_backfill_names_its_folders_within_the_bucket(bucket, s3):
    window = Window(start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime(2026, 1, 3, tzinfo=UTC))
    for day in (1, 2, 3):
        s3.put(f"{bucket}/in/2026-01-0{day}/x.csv", "id\n")
    chosen = select_range(
        Step(
            name="s", source=source(f"{bucket}/in", file_date="%Y-%m-%d"), sink={"mode": "append"}
        ),
        window,
    )
    assert (chosen.path, chosen.pattern) == (f"{bucket}/{{in/2026-01-01,in/2026-01-02}}", "x.csv")
    assert {f.path for f in list_files(source(chosen.path))} == {f.path for f in chosen.files}


def test_s3_settings_are_there_only_where_something_lies_on_s3(s3, tmp_path, monkeypatch):
    monkeypatch.setattr(
        settings_module, "jar_paths", lambda *sets: [tmp_path / f"{name}.jar" for name in sets]
    )
    manager = "spark.sql.streaming.checkpointFileManagerClass"
    local = spark_settings(pipeline("landing"), 0, root=str(tmp_path))
    assert not [key for key in local if "s3" in key] and "spark.jars" not in local
    assert "AbortableStream" not in local[manager]
    landing = spark_settings(pipeline("s3a://b/landing"), 0, root=str(tmp_path))
    assert (
        landing["spark.hadoop.fs.s3a.endpoint"] == s3.url
        and landing["spark.hadoop.fs.s3a.path.style.access"] == "true"
    )
    # it can write to nothing but an object store
    assert "AbortableStream" not in landing[manager]
    assert (
        landing["spark.jars"] == f"local:{tmp_path}/s3.jar"
        and landing["spark.driver.extraClassPath"] == f"{tmp_path}/core.jar"
    )
    on_s3 = spark_settings(pipeline("landing"), 0, root="s3a://b/root")
    assert "AbortableStream" in on_s3[manager]
    assert not [value for value in landing.values() if "AWS_SECRET" in value or value == "test"]
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    assert "spark.hadoop.fs.s3a.endpoint" not in spark_settings(
        pipeline("s3a://b/landing"), 0, root=str(tmp_path)
    )


def test_missing_jars_name_the_command_that_fetches_them(s3, tmp_path, monkeypatch):
    (tmp_path / "jars").mkdir()
    for path in settings_module.jar_paths("core"):
        (tmp_path / "jars" / path.name).symlink_to(path)
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path))
    with pytest.raises(PreflightError, match="`sluice jars fetch s3`"):
        spark_settings(pipeline("s3a://b/landing"), 0, root=str(tmp_path))


def test_one_client_serves_a_process_until_its_environment_changes(s3, monkeypatch):
    first = s3_client()
    assert s3_client() is first
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    assert s3_client() is not first


def test_a_checkpoint_in_a_bucket_is_begun_anew_under_the_lease_that_is_held(bucket):
    checkpoint = f"{bucket}/checkpoints/p/s"
    with hold_lease(f"{checkpoint}/lease", "r") as lease:
        before = open_manifest(checkpoint).generation
        for name in ("spark/offsets/0", "spark/commits/0", "journal/0.json", "target.json"):
            replace_file(open_path(f"{checkpoint}/{name}"), "{}")
        begin_anew(checkpoint)
        lease.check()
        left = {entry.name for entry in open_path(checkpoint).iterdir()}
        assert left == {"lease", "manifest.json"} and noted_generation(checkpoint) != before
