"""Of a crowded folder Spark is told the few new files by name: which rows come, and under which
names the checkpoint knows their files, is as where it lists them."""

import json
import re
from collections import Counter

import pytest
from sluice.backlog import waiting
from sluice.checkpoint import Checkpoint
from sluice.sources import files

from tests.spark.factories import Project

NAMES = ["a b.json", "ü%20.json", "day=1/x+y.json", "{c}[d].json", "#e?.json", "f_g-1.json"]


@pytest.fixture
def crowd(monkeypatch):
    """Says from how many files on a folder is crowded."""

    def set_many(count: int) -> None:
        monkeypatch.setattr(waiting, "_MANY", count)

    return set_many


@pytest.fixture
def project(spark, tmp_path) -> Project:
    """A step that remembers no keys, so a file that is read twice doubles its rows."""
    source = {"kind": "files", "format": "json", "schema": {"n": "bigint"}}
    return Project(spark, tmp_path, source)


def land(project: Project, start: int) -> None:
    for number, name in enumerate(NAMES):
        project.land(f"{start}/{name}", json.dumps({"n": start + number}) + "\n")


def known(project: Project) -> list[str]:
    """The addresses of the checkpoint's files as Spark itself wrote them, without the folder of
    their run."""
    folder = Checkpoint.below(project.paths.checkpoint("s")).folder / "sources" / "0"
    lines = [
        json.loads(line)
        for file in folder.iterdir()
        if file.name[0].isdigit()
        for line in file.read_text().splitlines()[1:]
    ]
    return sorted(re.sub(r"(/landing)/\d+/", r"\1/", line["path"]) for line in lines)


def test_each_file_is_read_once_whether_it_was_listed_or_named(project, crowd):
    many = [10**6, 1, 10**6, 1]
    for run, count in enumerate(many):
        crowd(count)
        land(project, run)
        report = project.run()
        assert (report.status, report.counts.read) == ("done", len(NAMES)), report.error
    expected = Counter((n + run,) for run in range(len(many)) for n in range(len(NAMES)))
    assert project.rows("n") == expected
    crowd(1)
    assert project.run().status == "nothing new"


def test_the_checkpoint_knows_a_named_file_as_it_knows_a_listed_one(project, crowd):
    paths = []
    for run, count in enumerate([10**6, 1]):
        crowd(count)
        land(project, run)
        project.run()
        paths.append(known(project))
    listed, both = paths
    assert all(path.startswith("file:///") for path in listed)
    assert both == sorted(listed * 2)


def test_a_file_that_lands_after_the_look_waits_for_the_next_run(project, crowd, monkeypatch):
    crowd(1)
    project.land("1.json", '{"n": 1}\n')
    late = ["2.json"]

    def look_then_land(*asked):
        found = waiting.look_for_files(*asked)
        while late:
            project.land(late.pop(), '{"n": 2}\n')
        return found

    monkeypatch.setattr(files, "look_or_recall", look_then_land)
    assert [project.run().counts.read for _ in range(2)] == [1, 1]
    assert project.run().status == "nothing new"
    assert project.rows("n") == Counter([(1,), (2,)])
