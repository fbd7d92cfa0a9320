"""Reading checkpoint files that Spark writes, without Spark.

Plain and compact logs, open batches, and damage.
"""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from sluice.backlog import measure_pipeline
from sluice.checkpoint import Checkpoint, normalize_uri
from sluice.checkpoint.manifest import Manifest, note_step
from sluice.errors import SourceError
from sluice.spec import load_pipeline
from sluice.storage import Paths


class Log:
    """Writes a checkpoint as Spark 4.2 does."""

    def __init__(self, folder) -> None:
        self.folder = folder
        for name in ("offsets", "commits", "sources/0"):
            (folder / name).mkdir(parents=True)

    def _write(self, path: str, *lines: dict) -> None:
        (self.folder / path).write_text("v1\n" + "\n".join(json.dumps(line) for line in lines))

    def seen(self, log_id: int, *paths, compact: bool = False) -> None:
        entries = [
            {
                "path": p,
                "timestamp": int(os.path.getmtime(p.removeprefix("file://")) * 1000),
                "batchId": n,
            }
            for n, p in paths
        ]
        self._write(f"sources/0/{log_id}" + (".compact" if compact else ""), *entries)

    def plan(self, batch: int, log_offset: int, watermark: int = 0) -> None:
        self._write(
            f"offsets/{batch}",
            {"batchWatermarkMs": watermark, "batchTimestampMs": 1, "conf": {}},
            {"logOffset": log_offset},
        )

    def commit(self, batch: int, watermark: int = 0) -> None:
        self._write(f"commits/{batch}", {"nextBatchWatermarkMs": watermark})


@pytest.fixture
def place(tmp_path):
    """A pipeline, its landing folder with three files, and its checkpoint's log."""
    landing = tmp_path / "landing"
    landing.mkdir()
    for name in "abc":
        (landing / f"{name}.json").write_text("{}")
    step = {
        "name": "s",
        "source": {"path": str(landing), "format": "json", "schema": {"a": "int"}},
        "sink": {"mode": "append"},
    }
    (tmp_path / "p.yaml").write_text(yaml.safe_dump({"name": "p", "steps": [step]}))
    paths = Paths.under(tmp_path / "root", "p")
    log = Log(tmp_path / "root" / "checkpoints" / "p" / "s" / "spark")
    return load_pipeline(tmp_path / "p.yaml"), paths, log, landing


def measure(place):
    return measure_pipeline(place[0], place[1])[0]


def uri(landing, name: str) -> str:
    return f"file://{landing}/{name}.json"


def test_with_an_empty_checkpoint_every_file_is_waiting(place):
    found = measure(place)
    assert (found.files, found.bytes, found.must_run, found.open_batch, found.last_run) == (
        3,
        6,
        True,
        False,
        None,
    )


def test_files_of_committed_batches_are_not_waiting(place):
    _, _, log, landing = place
    log.seen(0, (0, uri(landing, "a")), (0, uri(landing, "b")))
    log.plan(0, 0)
    log.commit(0)
    found = measure(place)
    assert (found.files, found.must_run, found.open_batch) == (1, True, False)
    assert found.oldest == datetime.fromtimestamp((landing / "c.json").stat().st_mtime, UTC)


def test_nothing_is_new_when_every_file_was_committed(place):
    _, _, log, landing = place
    log.seen(0, *((0, uri(landing, n)) for n in "abc"))
    log.plan(0, 0)
    log.commit(0)
    found = measure(place)
    assert (found.files, found.must_run, found.reason) == (0, False, "nothing is new")


def test_files_of_a_planned_batch_are_waiting_and_the_batch_is_open(place):
    _, _, log, landing = place
    log.seen(0, (0, uri(landing, "a")))
    log.plan(0, 0)
    log.commit(0)
    log.seen(1, (1, uri(landing, "b")), (1, uri(landing, "c")))
    log.plan(1, 1)
    found = measure(place)
    assert (found.files, found.must_run, found.open_batch) == (2, True, True)
    checkpoint = Checkpoint(log.folder)
    assert [f.path for f in checkpoint.batch_files(1)] == [f"{landing}/b.json", f"{landing}/c.json"]


def test_files_logged_before_their_batch_was_planned_are_waiting(place):
    """Spark writes the source's log first: a kill then leaves known files that are in no batch."""
    _, _, log, landing = place
    log.seen(0, (0, uri(landing, "a")))
    log.plan(0, 0)
    log.commit(0)
    log.seen(1, (1, uri(landing, "b")), (1, uri(landing, "c")))
    found = measure(place)
    assert (found.files, found.must_run) == (2, True)


def test_a_compact_log_stands_for_all_before_it(place):
    _, _, log, landing = place
    log.seen(9, (3, uri(landing, "a")), (9, uri(landing, "b")), compact=True)
    log.seen(8, (8, uri(landing, "a")))
    log.plan(8, 8)
    log.commit(8)
    log.plan(9, 9)
    log.commit(9)
    log.seen(10, (10, uri(landing, "c")))
    log.plan(10, 10)
    log.commit(10)
    assert measure(place).must_run is False
    assert [f.path for f in Checkpoint(log.folder).batch_files(9)] == [f"{landing}/b.json"]


def test_names_with_spaces_percent_signs_and_umlauts_are_recognised(place):
    _, _, log, landing = place
    odd = landing / "a b%20ü.json"
    odd.write_text("{}")
    assert normalize_uri(f"file://{landing}/a%20b%2520ü.json") == str(odd)
    assert normalize_uri("s3a://bucket/a%20b.json") == "s3a://bucket/a b.json"


def test_the_watermark_is_the_newest_commits(place):
    log = place[2]
    log.plan(0, 0, watermark=5)
    log.commit(0, watermark=77)
    checkpoint = Checkpoint(log.folder)
    assert (checkpoint.watermark_ms, checkpoint.batch_watermark_ms(0)) == (77, 5)


def test_an_overwritten_file_is_not_read_again_and_says_so(place):
    _, _, log, landing = place
    log.seen(0, *((0, uri(landing, n)) for n in "abc"))
    log.plan(0, 0)
    log.commit(0)
    os.utime(landing / "b.json", (5, 5))
    found = measure(place)
    assert not found.must_run
    assert "b.json; land a correction under a new name" in found.warnings[0]


def test_after_a_long_time_a_run_is_due_though_nothing_is_new(place):
    _, _, log, landing = place
    log.seen(0, *((0, uri(landing, n)) for n in "abc"))
    log.plan(0, 0)
    log.commit(0)
    old = (datetime.now(UTC) - timedelta(days=8)).timestamp()
    os.utime(log.folder / "commits" / "0", (old, old))
    found = measure(place)
    assert found.must_run
    assert "8 days ago" in found.reason
    Checkpoint(log.folder).note_look()
    assert not measure(place).must_run


def test_a_run_by_a_clock_that_was_set_back_since_is_not_taken_for_a_fresh_one(place):
    _, _, log, landing = place
    log.seen(0, *((0, uri(landing, n)) for n in "abc"))
    log.plan(0, 0)
    log.commit(0)
    ahead = (datetime.now(UTC) + timedelta(days=300)).timestamp()
    os.utime(log.folder / "commits" / "0", (ahead, ahead))
    found = measure(place)
    assert found.must_run and "set back" in found.reason
    Checkpoint(log.folder).note_look()
    assert not measure(place).must_run


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("sources/0/0", b'v1\n{"path": "file:/x", "timest'),
        ("sources/0/0", b""),
        ("sources/0/0", b"\xff\xfe\x00garbage"),
        ("sources/0/0", b'v1\n{"other": 1}'),
        ("offsets/0", b"v1\nnot json"),
        ("offsets/0", b""),
    ],
)
def test_a_damaged_checkpoint_means_run(place, file, content):
    _, _, log, landing = place
    log.seen(0, *((0, uri(landing, n)) for n in "abc"))
    log.plan(0, 0)
    log.commit(0)
    (log.folder / file).write_bytes(content)
    found = measure(place)
    assert found.must_run
    assert found.reason.startswith("the backlog could not be measured")


def test_an_absent_landing_folder_is_an_error_and_no_reason_to_start_spark(place):
    pipeline, paths, _, landing = place
    landing.rename(landing.with_name("moved"))
    with pytest.raises(SourceError, match="the landing folder does not exist"):
        measure_pipeline(pipeline, paths)


@pytest.mark.parametrize(
    ("after", "found"),
    [(-1, {"a", "b", "c", "d"}), (0, {"b", "c", "d"}), (1, {"c", "d"}), (2, {"d"}), (3, set())],
)
def test_files_seen_after_a_position_are_found_before_and_after_a_compaction(
    tmp_path, after, found
):
    log = tmp_path / "sources" / "0"
    log.mkdir(parents=True)
    entries = [
        f'{{"path":"s3a://lake/{name}","timestamp":1,"batchId":{number}}}'
        for number, name in enumerate("abcd")
    ]
    (log / "1.compact").write_text("\n".join(["v1", *entries[:2]]))
    (log / "2").write_text("\n".join(["v1", entries[2]]))
    (log / "3").write_text("\n".join(["v1", entries[3]]))
    assert {
        f.path.removeprefix("s3a://lake/") for f in Checkpoint(tmp_path).seen_files(after)
    } == found


def test_a_lost_table_wakes_a_run_because_the_memory_is_gone_with_it(place):
    _, paths, log, landing = place
    log.seen(0, *[(0, uri(landing, name)) for name in "abc"])
    log.plan(0, 0)
    log.commit(0)
    folder, table = paths.checkpoint("s"), paths.table("s")
    note_step(folder, Manifest("g", "2026-01-01T00:00:00+00:00"), target=table, judged_by={})
    (Path(table) / "_delta_log").mkdir(parents=True)
    assert not measure(place).must_run
    (Path(table) / "_delta_log").rmdir()
    found = measure(place)
    assert (found.must_run, found.reason) == (True, f"the step's table {table} is gone")
