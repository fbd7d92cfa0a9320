"""Reports in a folder: whole or not there, newest first, and no run id leaves the folder."""

import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from sluice.errors import TerminalError
from sluice.report import (
    RunReport,
    kept_reports,
    latest_report,
    list_reports,
    read_report,
    report_path,
    store,
    write_report,
)
from sluice.report.model import BatchReport, Counts, StepReport

START = datetime(2026, 1, 1, tzinfo=UTC)


def make_report(run_id: str, hours: int = 0, **fields) -> RunReport:
    started = START + timedelta(hours=hours)
    return RunReport(
        **(
            {
                "pipeline": "orders",
                "run_id": run_id,
                "started": started,
                "ended": started,
                "status": "done",
            }
            | fields
        )
    )


def write_many(folder: Path, amount: int) -> None:
    for hours in range(amount):
        path = Path(write_report(make_report(f"run-{hours}", hours), folder))
        os.utime(path, (hours, hours))


def test_a_report_comes_back_as_it_was_written(tmp_path):
    counts = Counts(read=3, entered=3, made=3, written=2, duplicate=1)
    report = make_report(
        "r1", steps=[StepReport(name="s", target="t", quarantine="q", counts=counts)]
    )
    path = write_report(report, tmp_path / "new" / "folder")
    assert path.endswith("r1.json")
    assert read_report(tmp_path / "new" / "folder", "r1") == report
    assert '2</b> <span class="written">written' in report_path(
        tmp_path / "new" / "folder", "r1", "html"
    ).read_text(encoding="utf-8")


def test_a_bucket_keeps_reports_like_a_folder():
    folder = f"memory://reports-{uuid4().hex}/orders"
    assert list_reports(folder) == [] and latest_report(folder) is None
    for hours in (1, 2):
        write_report(make_report(f"manual__{hours}:00+00:00", hours), folder)
    assert [report.run_id for report in list_reports(folder)] == [
        "manual__2:00+00:00",
        "manual__1:00+00:00",
    ]
    assert read_report(folder, "manual__1:00+00:00").started == START + timedelta(hours=1)


@pytest.mark.parametrize(
    "run_id",
    ["scheduled__2026-01-03T00:00:00+00:00", "manual/with/slashes", "späte Lieferung", "x" * 250],
)
def test_every_run_id_is_a_safe_file_name(tmp_path, run_id):
    written = Path(write_report(make_report(run_id), tmp_path))
    assert written.parent == tmp_path and not set(written.name) & set("+:/ ä")
    assert read_report(tmp_path, run_id).run_id == run_id


@pytest.mark.parametrize(
    "run_id",
    [
        "../secret",
        "..",
        "../../etc/passwd",
        "/etc/passwd",
        "a/../../secret",
        ".",
        "a\x00b",
        "..\\secret",
    ],
)
def test_a_run_id_cannot_leave_the_folder(tmp_path, run_id):
    folder = tmp_path / "reports" / "orders"
    written = Path(write_report(make_report(run_id), folder))
    assert written.resolve().parent == folder.resolve()
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.parent != folder] == []
    (tmp_path / "reports" / "secret.json").write_text(make_report("../secret").model_dump_json())
    with pytest.raises(FileNotFoundError):
        read_report(tmp_path / "reports" / "retail", run_id)


def test_a_run_that_was_never_reported_is_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_report(tmp_path, "r1")
    write_report(make_report("a:b"), tmp_path)
    with pytest.raises(FileNotFoundError, match="a:b"):
        read_report(tmp_path, "a+b")


def test_a_report_is_also_found_by_the_name_of_its_file(tmp_path):
    write_report(make_report("a:b"), tmp_path)
    assert read_report(tmp_path, "a_b").run_id == "a:b"


def test_reports_come_newest_first(tmp_path):
    write_many(tmp_path, 4)
    assert [report.run_id for report in list_reports(tmp_path)] == [
        "run-3",
        "run-2",
        "run-1",
        "run-0",
    ]
    assert [report.run_id for report in list_reports(tmp_path, limit=2)] == ["run-3", "run-2"]
    assert latest_report(tmp_path).run_id == "run-3"


def test_a_long_backfill_that_ended_last_is_not_the_latest_run(tmp_path):
    write_many(tmp_path, 3)
    os.utime(write_report(make_report("backfill", hours=-5), tmp_path), (100, 100))
    assert latest_report(tmp_path).run_id == "run-2"


def test_listing_a_few_reports_of_many_reads_only_a_few_files(tmp_path, monkeypatch):
    write_many(tmp_path, 60)
    read: list[Path] = []
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or read_bytes(path))
    assert len(list_reports(tmp_path, limit=2)) == 2
    assert len(read) <= 2 + store._OVERLAPPING_RUNS


@pytest.mark.parametrize("foreign", ["{torn", "", "[]", '{"some": "thing"}', "\xff\xfe"])
def test_a_foreign_or_torn_file_is_skipped_with_a_warning(tmp_path, caplog, foreign):
    write_report(make_report("r1"), tmp_path)
    (tmp_path / "odd.json").write_bytes(foreign.encode("latin-1"))
    (tmp_path / "folder.json").mkdir()
    with caplog.at_level(logging.WARNING, logger="sluice.report.store"):
        assert [report.run_id for report in list_reports(tmp_path)] == ["r1"]
    assert "odd.json" in caplog.text
    with pytest.raises(TerminalError, match="not a run report"):
        read_report(tmp_path, "odd")


def test_a_torn_temporary_file_is_ignored(tmp_path, caplog):
    write_report(make_report("r1"), tmp_path)
    (tmp_path / ".r2.json.1234abcd.tmp").write_text('{"pipeline": "ord')
    assert [report.run_id for report in list_reports(tmp_path)] == ["r1"]
    assert not caplog.records


def test_a_write_that_dies_leaves_the_old_report_whole_and_nothing_behind(tmp_path, monkeypatch):
    old = make_report("r1")
    write_report(old, tmp_path)

    def refuse(*_):
        raise OSError("disk is gone")

    monkeypatch.setattr(store.os, "replace", refuse)
    with pytest.raises(OSError, match="disk is gone"):
        write_report(make_report("r1", hours=5), tmp_path)
    assert read_report(tmp_path, "r1") == old
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r1.html", "r1.json"]


def test_a_listed_report_always_has_its_page(tmp_path, monkeypatch):
    order: list[str] = []
    replace = os.replace
    monkeypatch.setattr(
        store.os,
        "replace",
        lambda source, target: order.append(Path(target).suffix) or replace(source, target),
    )
    write_report(make_report("r1"), tmp_path)
    assert order == [".html", ".json"]


def test_a_rewritten_report_replaces_the_first(tmp_path):
    write_report(make_report("r1", status="failed"), tmp_path)
    write_report(make_report("r1", status="done"), tmp_path)
    assert [report.status for report in list_reports(tmp_path)] == ["done"]


def tell(run_id: str, hours: int = 0, **steps: dict[int, int]) -> RunReport:
    """A report of a run: of each step the rows of each of its batches."""
    told = []
    for name, rows in steps.items():
        batches = [
            BatchReport(
                batch_id=number,
                key=f"orders/{name}/g1/{number}",
                counts=Counts(read=n, entered=n, made=n, written=n),
            )
            for number, n in rows.items()
        ]
        counts = sum((batch.counts for batch in batches), Counts())
        told.append(
            StepReport(name=name, target="t", quarantine="q", batches=batches, counts=counts)
        )
    return make_report(run_id, hours, steps=told)


def count_all(folder) -> int:
    return sum(report.counts.written for report in list_reports(folder))


@pytest.fixture(params=["disk", "bucket"])
def folder(request, tmp_path):
    return tmp_path if request.param == "disk" else f"memory://reports-{uuid4().hex}/orders"


def test_a_run_that_is_cleared_while_newer_ones_ran_keeps_every_counted_row(folder):
    write_report(tell("a:1", s={0: 5, 1: 7}), folder)
    write_report(tell("b", hours=1, s={2: 11}), folder)
    write_report(tell("a:1", hours=2, s={3: 13}), folder)
    write_report(tell("a:1", hours=3, s={4: 17}), folder)
    found = [(report.run_id, report.counts.written) for report in list_reports(folder)]
    assert found == [("a:1", 17), ("a:1", 13), ("b", 11), ("a:1", 12)]
    assert read_report(folder, "a:1").counts.written == 17
    assert [report.counts.written for report in kept_reports(folder, "a:1")] == [12, 13]
    assert read_report(folder, "a_1.1").counts.written == 12
    assert "12</b>" in report_path(folder, "a_1.1", "html").read_text(encoding="utf-8")


def test_a_report_that_tells_all_of_the_one_before_replaces_it(folder):
    write_report(tell("a", s={0: 5}), folder)
    write_report(tell("a", hours=1, s={0: 5, 1: 7}), folder)
    assert [report.counts.written for report in list_reports(folder)] == [12]


def test_of_what_an_earlier_try_told_only_what_is_told_nowhere_else_is_kept(folder):
    write_report(tell("a", s={0: 5}, t={0: 7}), folder)
    write_report(tell("a", hours=1, s={1: 11}, t={0: 7, 1: 13}), folder)
    [kept] = kept_reports(folder, "a")
    assert [(step.name, len(step.batches), step.counts.written) for step in kept.steps] == [
        ("s", 1, 5),
        ("t", 0, 0),
    ]
    assert count_all(folder) == 5 + 7 + 11 + 13


def test_a_run_that_died_between_its_two_files_counts_no_row_twice_once_it_runs_again(
    folder, monkeypatch
):
    write_report(tell("a", s={0: 5}), folder)

    def die(texts, path, put=store._put):
        if path.name == "a.json":
            raise OSError("power is out")
        put(texts, path)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="power"):
        patch.setattr(store, "_put", die)
        write_report(tell("a", hours=1, s={1: 7}), folder)
    write_report(tell("a", hours=1, s={1: 7}), folder)
    assert len(kept_reports(folder, "a")) == 1 and count_all(folder) == 12


def test_batches_of_another_checkpoint_generation_are_other_batches(folder):
    first, second = tell("a", s={0: 5}), tell("a", hours=1, s={0: 0})
    second.steps[0].batches[0].key = "orders/s/g2/0"
    for report in (first, second):
        write_report(report, folder)
    assert count_all(folder) == 5 and len(list_reports(folder)) == 2


def test_batches_of_a_report_of_before_they_had_keys_are_known_by_their_numbers(folder):
    reports = [tell("a", s={0: 5}), tell("a", hours=1, s={0: 5, 1: 7})]
    for report in reports:
        for batch in report.steps[0].batches:
            batch.key = ""
        write_report(report, folder)
    assert [report.counts.written for report in list_reports(folder)] == [12]


def test_a_run_whose_id_makes_the_same_file_name_does_not_take_the_others_rows(folder):
    write_report(tell("a:1", s={0: 5}), folder)
    write_report(tell("a+1", hours=1, s={1: 7}), folder)
    assert count_all(folder) == 12


def test_a_file_that_is_no_report_is_replaced(tmp_path):
    (tmp_path / "a.json").write_text("{torn")
    write_report(tell("a", s={0: 5}), tmp_path)
    assert count_all(tmp_path) == 5 and kept_reports(tmp_path, "a") == []


def test_the_last_run_with_something_to_do_is_found_behind_idle_ones(tmp_path):
    assert store.latest_worked(tmp_path) is None
    write_report(make_report("worked"), tmp_path)
    os.utime(tmp_path / "worked.json", (1, 1))
    for n in range(3):
        write_report(make_report(f"idle{n}", status="nothing new", steps=[]), tmp_path)
    (tmp_path / "odd.json").write_text("{torn")
    assert store.latest_worked(tmp_path).run_id == "worked"


def test_an_idle_report_links_the_last_one_that_was_not(tmp_path):
    write_report(make_report("a:worked"), tmp_path)
    write_report(make_report("idle", status="nothing new", steps=[]), tmp_path)
    page = (tmp_path / "idle.html").read_text()
    assert f'href="{store.report_path(tmp_path, "a:worked", "html").name}"' in page
