"""What happens to files, folders and the disk around a run.

It ends with one clear sentence, and the next run takes what waits, once.
"""

import os
import resource
import subprocess
import sys
from collections import Counter

import pytest
from sluice.errors import ExitCode
from sluice.report.html import render_html

from tests.long_runs import LONG
from tests.spark.factories import Project

TINY = 100_000 if LONG else 300


def read_lines(spark, folder, **step) -> Project:
    """A project that reads lines of text."""
    return Project(spark, folder, {"format": "text", "schema": {"value": "string"}}, **step)


def values(project: Project) -> list[str]:
    return sorted(value for (value,) in project.rows("value").elements())


def test_a_file_overwritten_after_it_was_read_is_not_read_again_and_the_report_says_so(
    spark, tmp_path
):
    project = read_lines(spark, tmp_path)
    project.land("a.txt", "old\n")
    project.run()
    project.land("a.txt", "new\n")
    os.utime(project.landing / "a.txt")  # now: long after it was read
    project.land("b.txt", "b\n")
    report = project.run()
    assert values(project) == ["b", "old"]
    assert (
        "1 file(s) changed after they were read and are not read again: a.txt; "
        "land a correction under a new name" in report.steps[0].warnings
    )


def test_a_file_overwritten_before_it_was_read_is_read_once_with_its_newest_content(
    spark, tmp_path
):
    project = read_lines(spark, tmp_path)
    project.land("a.txt", "old\n")
    project.land("a.txt", "new\n")
    project.run()
    assert values(project) == ["new"]


def test_a_file_deleted_after_it_was_read_keeps_its_rows(spark, tmp_path):
    project = read_lines(spark, tmp_path)
    path = project.land("a.txt", "a\n")
    project.run()
    path.unlink()
    project.land("b.txt", "b\n")
    assert project.run().counts.written == 1
    assert values(project) == ["a", "b"]


def test_modification_times_of_any_year_lose_no_file(spark, tmp_path):
    project = read_lines(spark, tmp_path)
    for name, moment in (("epoch", 0), ("future", 4_000_000_000), ("now", None)):
        path = project.land(f"{name}.txt", f"{name}\n")
        os.utime(path, None if moment is None else (moment, moment))
    project.run()
    for name, moment in (("older", 1_000_000_000), ("epoch-again", 0)):
        os.utime(project.land(f"{name}.txt", f"{name}\n"), (moment, moment))
    assert project.run().counts.written == 2
    assert values(project) == ["epoch", "epoch-again", "future", "now", "older"]
    assert project.run().status == "nothing new"


@pytest.mark.timeout(3600)
def test_very_many_tiny_files_are_read_once_each(spark, tmp_path):
    project = read_lines(spark, tmp_path)
    for number in range(TINY):
        (project.landing / f"{number:06d}.txt").write_text(f"{number}\n")
    report = project.run()
    assert (report.counts.read, report.counts.written) == (TINY, TINY)
    assert project.rows("value") == Counter((str(number),) for number in range(TINY))
    assert project.run().status == "nothing new"


def test_links_are_followed_and_broken_ones_are_no_files(spark, tmp_path):
    project, outside = read_lines(spark, tmp_path), tmp_path / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "o.txt").write_text("outside\n")
    (outside / "folder" / "f.txt").write_text("in a folder\n")
    real = project.land("real.txt", "real\n")
    for name, target in {
        "file.txt": outside / "o.txt",
        "folder": outside / "folder",
        "again.txt": real,
        "dangling.txt": tmp_path / "none",
        "loop.txt": "loop.txt",
    }.items():
        (project.landing / name).symlink_to(target)
    report = project.run()
    assert (report.status, report.error) == ("done", None)
    assert values(project) == ["in a folder", "outside", "real", "real"]
    assert not project.quarantine()
    assert project.run().status == "nothing new"


def test_a_file_where_the_table_belongs_is_an_error_that_names_it(spark, tmp_path):
    """What a read-only folder is to others, and for root as well: nothing can be written there."""
    project = read_lines(spark, tmp_path)
    project.land("a.txt", "a\n")
    in_the_way = tmp_path / "root" / "tables"
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("no folder")
    report = project.run()
    assert (report.status, report.counts.read) == ("failed", 0)
    assert str(in_the_way) in report.error
    assert "\n" not in report.error
    in_the_way.unlink()
    assert project.run().counts.written == 1


def test_a_disk_that_takes_no_more_ends_the_run_and_the_next_one_writes_every_row(spark, tmp_path):
    """A limit on a file's size stands in for the full disk, which only root can make."""
    project = read_lines(spark, tmp_path)
    lines = [os.urandom(500).hex() for _ in range(4000)]
    project.land("a.txt", "".join(f"{line}\n" for line in lines))
    command = [
        sys.executable,
        "-m",
        "sluice.cli",
        "run",
        "--spec",
        str(project.write()),
        "--root",
        str(tmp_path / "root"),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)),
    )
    assert done.returncode == ExitCode.TRANSIENT, done.stdout + done.stderr
    assert "File too large" in done.stdout + done.stderr
    report = project.run()
    assert (report.status, report.counts.read, report.counts.written) == ("done", 4000, 4000)
    assert project.rows("value") == Counter((line,) for line in lines)


SCRIPT = "<script>alert(1)</script>"


def test_script_in_values_and_names_is_text_in_the_report(spark, tmp_path):
    rule = {
        "type": "expect_column_values_to_match_regex",
        "kwargs": {"column": "name", "regex": "^[a-z]+$"},
        "on_fail": "warn",
        "name": SCRIPT,
    }
    project = Project(
        spark,
        tmp_path,
        {"format": "csv", "schema": {"id": "int", "name": "string"}},
        {"sink": {"mode": "append"}, "rules": [rule]},
    )
    name = "<img src=x onerror=alert(1)>.csv"
    project.land(name, f"id,name,{SCRIPT.replace('/', '')}\n1,<b>bold</b>,x\n2,{SCRIPT},y\n")
    report = project.run()
    assert project.rows("name") == Counter([("<b>bold</b>",), (SCRIPT,)])
    page = render_html(report)
    assert "&lt;img src=x onerror=alert(1)&gt;.csv" in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    for raw in ("<script", "<img", "<b>bold"):
        assert raw not in page


@pytest.mark.slow
def test_an_object_of_a_million_fields_is_a_row(spark, tmp_path):
    project = Project(
        spark, tmp_path, {"format": "json", "schema": {"id": "int", "f999999": "int"}}
    )
    project.land(
        "a.json", '{"id":1,' + ",".join(f'"f{n}":{n}' for n in range(1_000_000)) + '}\n{"id":2}\n'
    )
    report = project.run()
    assert (report.status, report.error, report.counts.written) == ("done", None, 2)
    (kept,) = (
        project._table(project.paths.table("s"))
        .where("id = 1")
        .selectExpr("length(_rescued) AS length")
        .collect()
    )
    assert kept.length > 10_000_000
    assert project.rows("id", "f999999") == Counter([(1, 999_999), (2, None)])
