"""Spark's log of files is cut down behind each run, and every file is read exactly once all the
same: the step remembers no keys, so a file that is read twice doubles its rows."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from sluice.backlog import shortening
from sluice.checkpoint import Checkpoint, shorten
from sluice.spec import load_pipeline
from sluice.streaming import step
from sluice.streaming.replay import verify_by_replay

from tests.spark.factories import Project
from tests.spark.several import Ads, moment

NAMES = ["a b.json", "ü%20.json", "day=1/x+y.json", "{c}[d].json", "#e?.json", "plain-1.json"]


@pytest.fixture(autouse=True)
def short(monkeypatch) -> None:
    """Every log is long enough to be cut down."""
    monkeypatch.setattr(shorten, "_LONG", 1)


@pytest.fixture
def project(spark, tmp_path) -> Project:
    """A step that takes two files a batch."""
    source = {"kind": "files", "format": "json", "schema": {"n": "bigint"}}
    return Project(spark, tmp_path, {**source, "max_files_per_batch": 2})


def land(project: Project, run: int, names: list[str] = NAMES) -> Counter:
    """Files of a row each; the rows."""
    rows = [run * 10_000 + number for number in range(len(names))]
    for row, name in zip(rows, names, strict=True):
        project.land(f"{run:03}/{name}", json.dumps({"n": row}) + "\n")
    return Counter((row,) for row in rows)


def checkpoint(project: Project) -> Checkpoint:
    return Checkpoint.below(project.paths.checkpoint("s"))


def read(project: Project) -> int:
    report = project.run()
    assert report.error is None
    return report.counts.read


def known(project: Project) -> int:
    """How many files Spark's log knows."""
    return len(checkpoint(project).noted_files())


def kill_at(patch: pytest.MonkeyPatch, number: int) -> list[str]:
    """Kill the run before a durable step of the cutting down; the steps that it came to."""
    cut_down, came = shorten.shorten_log, []

    def act(real, path, *more, **how):
        if not (real.__name__ == "unlink" and str(path).endswith(".tmp")):
            target = Path(more[0] if more else path)
            came.append(f"{real.__name__} in {target.parent.name}")
            if len(came) == number:
                raise RuntimeError("killed")
        return real(path, *more, **how)

    def shorten_and_die(*asked: object) -> None:
        with patch.context() as inside:
            for owner, name in ((os, "replace"), (Path, "unlink")):
                real = getattr(owner, name)
                inside.setattr(owner, name, lambda *a, real=real, **h: act(real, *a, **h))
            cut_down(*asked)

    patch.setattr(shortening, "shorten_log", shorten_and_die)
    return came


@pytest.mark.parametrize("ordered_by", [None, "name"])
def test_each_file_is_read_once_over_many_runs_whichever_step_of_the_cutting_down_a_kill_meets(
    project, monkeypatch, ordered_by
):
    project.source["ordered_by"] = ordered_by
    expected, met = Counter(), Counter()
    for run in range(9):  # of three batches: Spark packs its notes twice meanwhile
        expected += land(project, run)
        with monkeypatch.context() as patch:
            came = kill_at(patch, run + 1)
            report = project.run()
        assert report.counts.read == len(NAMES)
        assert ("killed" in (report.error or "")) == (run < len(came))
        met.update(came[run : run + 1])
    assert read(project) == 0 and project.rows("n") == expected
    assert {*met} >= {"replace in s", "replace in seen", "unlink in 0", "replace in 0"}
    assert known(project) < 2 * len(NAMES) and checkpoint(project).archive.segments
    assert sum(path.suffix == ".compact" for path in checkpoint(project).all_notes()) == 2


def test_more_new_files_than_are_few_are_told_by_name_as_well(project):
    project.source["max_files_per_batch"] = 700
    expected = land(project, 0)
    assert read(project) == len(NAMES)
    expected += land(project, 1)
    assert read(project) == len(NAMES) and known(project) == len(NAMES)
    expected += land(project, 2, [f"{number:05}.json" for number in range(1_500)])
    assert read(project) == 1_500
    assert read(project) == 0 and project.rows("n") == expected


def test_an_open_batch_over_a_log_that_was_cut_down_is_finished(project, monkeypatch):
    expected = land(project, 0) + land(project, 1)
    assert read(project) == 2 * len(NAMES) and known(project) == 2
    expected += land(project, 2)

    def die(*_: object, **__: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(step, "process", die)
        assert "killed" in project.run().error
    assert checkpoint(project).open_batch is not None
    expected += land(project, 3)
    assert read(project) == 2 * len(NAMES)
    assert read(project) == 0 and project.rows("n") == expected


def test_what_was_moved_out_of_the_log_is_read_again_where_all_is_verified(spark, project):
    expected = land(project, 0) + land(project, 1)
    assert read(project) == len(expected) and known(project) == 2
    pipeline = load_pipeline(project.write())
    (found,) = (
        one
        for one in verify_by_replay(spark, pipeline, pipeline.steps[0], project.paths)
        if one.table == "target"
    )
    assert found.equal and found.rows == len(expected)
    assert read(project) == 0 and project.rows("n") == expected


def test_files_are_cleaned_that_were_moved_out_of_the_log_before(project):
    land(project, 0)
    assert read(project) == len(NAMES)
    project.source["clean_source"] = "delete"
    land(project, 1)
    assert read(project) == len(NAMES)
    assert [path for path in project.landing.rglob("*") if path.is_file()] == []


def test_of_several_inputs_each_log_is_cut_down(spark, tmp_path):
    schema = {"n": "bigint", "at": "timestamp"}
    union = "SELECT n, at FROM first UNION ALL SELECT n, at FROM second"
    ads = Ads(tmp_path, union, schemas={"first": schema, "second": schema})
    expected = Counter()
    for run in range(4):
        new = ["first"] if run == 2 else ["first", "second"]
        for side, name in enumerate(new):
            ads.land(name, {"n": 10 * run + side, "at": moment(run)})
            expected[10 * run + side] += 1
        assert ads.run().counts.read == len(new)
    assert ads.run().status == "nothing new"
    rows = spark.read.format("delta").load(str(tmp_path / "root" / "tables" / "ads" / "rates"))
    assert Counter(row.n for row in rows.collect()) == expected
    folder = str(tmp_path / "root" / "checkpoints" / "ads" / "rates")
    assert [len(Checkpoint.below(folder, n).archive.read()) for n in (0, 1)] == [3, 2]


def test_a_list_of_read_files_that_is_damaged_stops_the_run_before_it_reads(project):
    expected = land(project, 0)
    assert read(project) == len(NAMES)
    for segment in checkpoint(project).archive.segments.values():
        segment.write_text("")
    land(project, 1)
    report = project.run()
    assert (report.status, int(report.exit_code)) == ("failed", 6)
    assert "is damaged" in report.error and project.rows("n") == expected
