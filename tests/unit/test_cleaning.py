"""Files that were read leave the landing folder: those of committed batches alone, and never over
another file.

Without Spark: the checkpoint is written as Spark writes it.
"""

import errno
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sluice.backlog import clean_step, keep_unreadable, waiting_files
from sluice.backlog.probes import probe_of
from sluice.checkpoint import Checkpoint
from sluice.errors import LeaseLost, SpecError
from sluice.spec import Step, Window, load_neighbours, load_pipeline
from sluice.spec.review import review_pipeline

from tests.unit.test_backlog_checkpoint import Log

DAY = Window(start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime(2026, 1, 2, tzinfo=UTC))


class Landing:
    """A folder whose files lie in batches of a checkpoint; the last batch is not committed."""

    def __init__(self, folder: Path, **source: object) -> None:
        self.folder, self.home = folder, folder / "checkpoint"
        self.log, self.batches = Log(self.home / "spark"), 0
        archive = {"clean_source": "archive", "archive": str(folder / "archive")}
        fields = {"path": str(folder / "in"), "format": "text", "schema": {"value": "string"}}
        self.step = Step.model_validate({"name": "s", "source": {**fields, **archive, **source}})

    @property
    def source(self):
        return self.step.source

    @property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint.below(str(self.home))

    def land(self, *names: str) -> None:
        for name in names:
            path = self.folder / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)

    def read(self, *names: str, commit: bool = True) -> None:
        """One more batch."""
        number, self.batches = self.batches, self.batches + 1
        self.log.seen(number, *[(number, f"file://{self.folder}/in/{name}") for name in names])
        self.log.plan(number, number)
        if commit:
            self.log.commit(number)

    def clean(self, may_go_on=lambda: True, others=()) -> list[str]:
        return clean_step(self.step, str(self.home), others, may_go_on)

    def holds(self, name: str) -> list[str]:
        root = self.folder / name
        return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


@pytest.fixture
def landing(tmp_path):
    landing = Landing(tmp_path)
    landing.land("a", "day=1/b", "day=1/d", "e")
    return landing


def test_files_of_committed_batches_go_to_the_archive_and_keep_their_paths(landing):
    landing.read("a", "day=1/b")
    landing.read("day=1/d", commit=False)
    assert landing.clean() == [] == landing.clean()
    assert landing.holds("archive") == ["a", "day=1/b"]
    waiting, warnings = waiting_files(landing.source, landing.checkpoint)
    assert ([f.name for f in waiting], warnings) == (["d", "e"], [])
    landing.log.commit(1)
    assert landing.clean() == []
    assert landing.holds("in") == ["e"]


def test_files_are_deleted_where_the_pipeline_says_so(tmp_path):
    landing = Landing(tmp_path, clean_source="delete", archive=None)
    landing.land("a", "b")
    landing.read("a")
    assert landing.clean() == []
    assert landing.holds("in") == ["b"]


def test_a_file_whose_rows_are_in_no_table_stays(landing):
    """It could not be read, was written anew since, or is a link that would lead nowhere."""
    (landing.folder / "in" / "link").symlink_to("e")
    landing.read("a", "day=1/d", "link")
    keep_unreadable(landing.source, landing.checkpoint, [f"{landing.folder}/in/a"])
    os.utime(landing.folder / "in" / "day=1" / "d", (1, 1))
    assert landing.clean() == []
    assert landing.holds("archive") == []
    assert "changed after they were read" in waiting_files(landing.source, landing.checkpoint)[1][0]


def test_another_file_in_the_archive_is_never_replaced_and_each_run_says_so(landing):
    landing.read("a", "e")
    (landing.folder / "archive").mkdir()
    (landing.folder / "archive" / "a").write_text("older")
    for _ in range(2):
        (told,) = landing.clean()
        assert "1 file(s)" in told and "the archive holds another file of this name" in told
    assert (landing.folder / "archive" / "a").read_text() == "older"
    assert landing.holds("in") == ["a", "day=1/b", "day=1/d"]


def test_a_move_that_was_killed_half_way_is_completed(landing, monkeypatch):
    """The archive lies on another disk: copied, then removed."""

    def refuse(path: Path, to: Path) -> Path:
        if not path.name.startswith("."):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        os.replace(path, to)
        raise InterruptedError("killed")

    landing.read("a", "e")
    monkeypatch.setattr(Path, "rename", refuse)
    (told,) = landing.clean()
    assert "2 file(s)" in told
    assert landing.holds("archive") == ["a", "e"] and "a" in landing.holds("in")
    monkeypatch.undo()
    assert landing.clean() == []
    assert landing.holds("in") == ["day=1/b", "day=1/d"]


def test_cleaning_ends_with_the_time_of_the_run_and_with_its_lease(landing):
    landing.read("a")
    landing.read("e")
    asked = iter([True, False])
    assert landing.clean(lambda: next(asked)) == []
    assert landing.holds("archive") == ["a"]

    def lose() -> bool:
        raise LeaseLost("taken over")

    with pytest.raises(LeaseLost):
        landing.clean(lose)
    assert landing.clean() == []
    assert landing.holds("archive") == ["a", "e"]


def test_a_checkpoint_that_was_set_back_is_cleaned_from_its_beginning(landing):
    landing.read("a")
    landing.read("e")
    landing.clean()
    (landing.home / "spark" / "commits" / "1").unlink()
    landing.land("a")
    seen = landing.checkpoint.seen_files()[0]
    os.utime(seen.path, (seen.modified_ms / 1000,) * 2)
    assert landing.clean() == []
    assert "a" not in landing.holds("in")


def test_a_backfill_finds_what_was_archived_once(tmp_path):
    landing = Landing(tmp_path, file_date="%Y-%m-%d")
    landing.land("2026-01-01/a", "2026-01-01/b", "2026-01-02/c")
    landing.read("2026-01-01/a", "2026-01-01/b")
    landing.clean()
    landing.land("2026-01-01/a")  # put back
    found = probe_of(landing.source).select("s", None, DAY).files
    assert [f.path.removeprefix(str(tmp_path)) for f in found] == [
        "/in/2026-01-01/a",
        "/archive/2026-01-01/b",
    ]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ({"clean_source": "archive"}, "needs `archive: <folder>`"),
        ({"archive": "old"}, "needs `archive: <folder>`"),
        ({"clean_source": "archive", "archive": "in/old"}, "lie within each other"),
        ({"clean_source": "archive", "archive": "."}, "lie within each other"),
        ({"clean_source": "archive", "archive": "in/x/../../in"}, "lie within each other"),
        ({"path": "*/in", "clean_source": "archive", "archive": "old"}, "lie within each other"),
        ({"clean_source": "archive", "archive": "s3a://b/old"}, "in the same bucket"),
        ({"path": "hdfs://x/in", "clean_source": "delete"}, "works on disks and in S3"),
        ({"clean_source": "remove"}, "'archive' or 'delete'"),
        ({"options": {"cleanSource": "delete"}}, "write `clean_source: delete`"),
        ({"options": {"sourceArchiveDir": "old"}}, "write `archive: <folder>`"),
    ],
)
def test_a_source_that_cannot_be_cleaned_safely_is_refused(tmp_path, source, says):
    assert says in refuse(tmp_path, {"path": "in", **source})


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        ({"clean_source": "delete"}, {}, True),
        ({}, {"clean_source": "delete", "path": "in/a"}, True),
        ({"clean_source": "delete", "pattern": "*.a"}, {"pattern": "*.b"}, False),
        ({"clean_source": "delete"}, {"path": "in2"}, False),
        ({}, {}, False),
    ],
)
def test_a_folder_that_one_source_cleans_is_no_others(tmp_path, first, second, refused):
    said = refuse(tmp_path, {"path": "in", **first}, {"path": "in", **second})
    assert ("the first to read one takes it from the other" in said) is refused


def refuse(folder: Path, *sources: dict) -> str:
    """What is said of a pipeline with a step for each source; empty where it is right."""
    import yaml

    told = {"format": "text", "schema": {"value": "string"}}
    steps = [
        {"name": f"s{n}", "source": {**told, **one}, "sink": {"mode": "append"}}
        for n, one in enumerate(sources)
    ]
    file = folder / "p.yaml"
    file.write_text(yaml.safe_dump({"name": "p", "steps": steps}))
    try:
        load_pipeline(file)
    except SpecError as error:
        return str(error)
    return ""


OTHER = """
name: {name}
steps:
  - name: s
    source: {{kind: files, path: {folder}/in, format: text, schema: {{value: string}}{more}}}
    sink: {{mode: append}}
"""


def write_beside(landing, name: str, more: str = "") -> None:
    text = OTHER.format(name=name, folder=landing.folder, more=more)
    (landing.folder / f"{name}.yaml").write_text(text)


def test_what_another_pipeline_reads_stays_and_is_told_until_each_has_files_of_its_own(landing):
    write_beside(landing, "mine")
    (landing.folder / "broken.yaml").write_text("steps: {")
    mine = load_pipeline(landing.folder / "mine.yaml")
    landing.read("a", "day=1/b")
    write_beside(landing, "other")
    (told,) = landing.clean(others=load_neighbours(mine))
    assert "pipeline other reads them as well" in told and "`pattern`" in told
    assert landing.holds("archive") == []
    write_beside(landing, "other", ", pattern: '*.other'")
    landing.step = landing.step.model_copy(
        update={"source": landing.source.model_copy(update={"pattern": "[!.]*"})}
    )
    assert landing.clean(others=load_neighbours(mine)) == []
    assert landing.holds("archive") == ["a", "day=1/b"]


def test_validate_warns_of_another_pipeline_that_reads_what_is_cleaned(landing):
    write_beside(landing, "mine", f", clean_source: archive, archive: {landing.folder}/archive")
    mine = load_pipeline(landing.folder / "mine.yaml")
    assert review_pipeline(mine, landing.folder / "mine.yaml") == []
    write_beside(landing, "other")
    (found,) = review_pipeline(mine, landing.folder / "mine.yaml")
    assert found.warns and found.at == ("steps", 0, "source", "clean_source")
    assert "pipeline other may read the same files" in found.what
