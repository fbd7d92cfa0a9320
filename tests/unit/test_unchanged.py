"""A folder that is as it was is not looked at file by file; whatever may have brought a file is."""

import json
import os
import random
import time
from datetime import UTC, datetime, timedelta

import pytest
from sluice.backlog import measure_pipeline, note_idle_audits, unchanged, waiting
from sluice.backlog.waiting import waiting_files
from sluice.checkpoint import Checkpoint
from sluice.spec import load_pipeline
from sluice.storage import Paths

TICK = timedelta(milliseconds=30)
STATES = int(os.environ.get("SLUICE_STATES", "200"))
YAML = """
name: shop
owner: tests
steps:
  - name: orders
    source: {{kind: files, path: {landing}, pattern: "{pattern}", format: csv, schema: {{id: int}}}}
    sink: {{kind: delta}}
"""


class Shop:
    """A landing folder, and the checkpoint of a step that reads it, as Spark writes one."""

    def __init__(self, folder) -> None:
        self.folder, self.landing, self.pattern = folder, folder / "landing", "*"
        (self.landing / "day=1").mkdir(parents=True)
        (self.landing / "day=1" / "a.csv").write_text("id")
        self.batches = 0
        self.spark.mkdir(parents=True)
        (self.spark / "metadata").write_text('{"id": "first"}')
        self.read_all()

    @property
    def pipeline(self):
        spec = self.folder / "shop.yaml"
        spec.write_text(YAML.format(landing=self.landing, pattern=self.pattern))
        return load_pipeline(spec)

    @property
    def paths(self) -> Paths:
        return Paths.under(self.folder / "root", "shop")

    @property
    def spark(self):
        return self.folder / "root" / "checkpoints" / "shop" / "orders" / "spark"

    @property
    def note(self):
        return self.spark.parent / "unchanged.json"

    def waiting(self) -> set[str]:
        """What a look at every file finds: the oracle."""
        source = self.pipeline.steps[0].source
        return {file.path for file in waiting_files(source, Checkpoint(self.spark))[0]}

    def read_all(self) -> None:
        """A batch of all that waits."""
        new, number = sorted(self.waiting()), self.batches
        entries = [
            {"path": f"file://{path}", "timestamp": os.stat(path).st_mtime_ns // 10**6}
            for path in new
        ]
        parts = {
            "sources/0": [json.dumps({**entry, "batchId": number}) for entry in entries],
            "offsets": ['{"batchWatermarkMs": 0}', json.dumps({"logOffset": number})],
            "commits": ["{}"],
        }
        for part, lines in parts.items():
            (self.spark / part).mkdir(parents=True, exist_ok=True)
            (self.spark / part / str(number)).write_text("\n".join(["v1", *lines]))
        self.batches += 1

    def probe(self) -> int:
        """How many files Airflow's probe finds; an idle one is noted."""
        (found,) = backlog = measure_pipeline(self.pipeline, self.paths)
        note_idle_audits(self.pipeline, self.paths, backlog)
        return found.files

    def rest(self) -> None:
        """Let the clock go on until the last change is not one of this moment."""
        time.sleep(1.5 * TICK.total_seconds())


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.setattr(unchanged, "_TICK", TICK)
    here = os.stat(tmp_path).st_dev
    monkeypatch.setattr(unchanged, "_file_systems", lambda: {here: "ext4"})
    return Shop(tmp_path)


@pytest.fixture
def noted(shop):
    """A shop in which nothing is new, which was noted."""
    shop.rest()
    assert shop.probe() == 0 and shop.note.exists()
    return shop


def test_an_idle_probe_looks_at_no_file_while_no_folder_has_changed(noted, monkeypatch):
    def look(*_):
        raise AssertionError("the files were looked at")

    monkeypatch.setattr(waiting, "list_files", look)
    assert noted.probe() == 0


def _rename_into_place(shop) -> None:
    (shop.landing / "day=1" / ".b.csv").rename(shop.landing / "day=1" / "b.csv")


def _set_back_times(shop) -> None:
    folder = shop.landing / "day=1"
    before = os.stat(folder)
    (folder / "b.csv").write_text("id")
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))  # as `rsync -a` may


def _swap_folders(shop) -> None:
    other = shop.folder / "other"
    other.mkdir()
    (other / "b.csv").write_text("id")
    shop.landing.rename(shop.folder / "away")
    other.rename(shop.landing)


def _begin_anew(shop) -> None:
    (shop.spark / "metadata").write_text('{"id": "second"}')
    (shop.spark / "sources" / "0" / "0").write_text("v1\n")


def _set_back_checkpoint(shop) -> None:
    (shop.spark / "commits" / "0").unlink()
    (shop.spark / "offsets" / "0").unlink()


ACTS = {
    "a new file": lambda shop: (shop.landing / "b.csv").write_text("id"),
    "in a folder": lambda shop: (shop.landing / "day=1" / "b.csv").write_text("id"),
    "in a new folder": lambda shop: (
        (shop.landing / "x" / "y").mkdir(parents=True),
        (shop.landing / "x" / "y" / "b.csv").write_text("id"),
    ),
    "a link": lambda shop: os.symlink(
        shop.landing / "day=1" / "a.csv", shop.landing / "day=1" / "b.csv"
    ),
    "a name that was hidden": _rename_into_place,
    "the folder's time set back": _set_back_times,
    "another folder in its place": _swap_folders,
    "a checkpoint begun anew": _begin_anew,
    "an older checkpoint": _set_back_checkpoint,
}


@pytest.mark.parametrize("act", ACTS)
def test_a_file_is_found_however_it_came_to_wait(shop, act):
    (shop.landing / "day=1" / ".b.csv").write_text("id")
    shop.rest()
    assert shop.probe() == 0 and shop.note.exists()
    ACTS[act](shop)
    assert shop.probe() == len(shop.waiting()) == 1


def test_names_that_another_pattern_wants_are_found(shop):
    shop.pattern = "*.json"
    (shop.landing / "b.csv").write_text("id")
    shop.rest()
    assert shop.probe() == 0 and shop.note.exists()
    shop.pattern = "*"
    assert shop.probe() == 1


@pytest.mark.parametrize("age", [timedelta(days=1), timedelta(minutes=-5)])
def test_a_note_of_yesterday_or_of_tomorrow_is_not_trusted(noted, age):
    content = json.loads(noted.note.read_text())
    content["at"] = (datetime.now(UTC) - age).isoformat()
    noted.note.write_text(json.dumps(content))
    source, checkpoint = noted.pipeline.steps[0].source, Checkpoint(noted.spark)
    assert not unchanged.is_unchanged(source, checkpoint)


def test_a_note_that_holds_gets_no_younger_where_nobody_looked(noted):
    """As of an input beside another one that was looked at."""
    before = noted.note.read_text()
    source, checkpoint = noted.pipeline.steps[0].source, Checkpoint(noted.spark)
    unchanged.note_unchanged(source, checkpoint, datetime.now(UTC))
    assert noted.note.read_text() == before


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"at": "x"}'])
def test_a_note_that_is_damaged_is_not_trusted(noted, text):
    noted.note.write_text(text)
    (noted.landing / "b.csv").write_text("id")
    assert noted.probe() == 1


def test_nothing_is_noted_of_a_folder_that_changed_this_moment(shop, monkeypatch):
    monkeypatch.setattr(unchanged, "_TICK", timedelta(hours=1))
    assert shop.probe() == 0 and not shop.note.exists()


def test_nothing_is_noted_below_a_link_which_may_lead_elsewhere_tomorrow(shop):
    os.symlink(shop.folder / "nowhere.csv", shop.landing / "b.csv")
    shop.rest()
    assert shop.probe() == 0 and not shop.note.exists()


def test_nothing_is_noted_where_folders_may_be_shown_with_old_times(shop, monkeypatch):
    here = os.stat(shop.landing).st_dev
    for kinds in ({here: "nfs4"}, {here: "fuse.s3fs"}, {}):
        monkeypatch.setattr(unchanged, "_file_systems", lambda kinds=kinds: kinds)
        shop.rest()
        assert shop.probe() == 0 and not shop.note.exists()


def test_a_note_that_cannot_be_written_costs_a_look_more_and_nothing_else(shop, monkeypatch):
    def refuse(*_):
        raise OSError("no space left on the device")

    monkeypatch.setattr(unchanged, "replace_file", refuse)
    shop.rest()
    assert [shop.probe(), shop.probe()] == [0, 0] and not shop.note.exists()


@pytest.mark.skipif(not os.path.exists("/proc/self/mountinfo"), reason="Linux alone tells them")
def test_the_kinds_of_file_systems_are_those_that_linux_tells():
    assert unchanged._file_systems()[os.stat("/proc").st_dev] == "proc"


def _land(shop, draw: random.Random, number: int) -> None:
    folder = shop.landing / draw.choice([".", "day=1", f"day={number}", "x/y"])
    folder.mkdir(parents=True, exist_ok=True)
    path, hidden = folder / f"{number}.csv", folder / f".{number}"
    way = draw.choice(["write", "rename", "link", "old"])
    if way == "write":
        path.write_text("id")
    elif way == "link":
        os.link(shop.landing / "day=1" / "a.csv", path)
    else:
        hidden.write_text("id")
        hidden.rename(path)
    if way == "old":
        os.utime(path, (1, 1))
        os.utime(folder, (1, 1))


def test_in_no_drawn_state_is_a_file_passed_over(shop):
    draw = random.Random(20261126)
    hits = 0
    for number in range(STATES):
        act = draw.choice(["land", "read", "probe", "probe", "remove", "overwrite", "empty"])
        files = sorted(path for path in shop.landing.rglob("*.csv") if path.name != "a.csv")
        if act == "land":
            _land(shop, draw, number)
        elif act == "read":
            shop.read_all()
        elif act == "remove" and files:
            draw.choice(files).unlink()
        elif act == "overwrite" and files:
            draw.choice(files).write_text("id\n1")
        elif act == "empty":
            (shop.landing / f"empty={number}").mkdir()
        if draw.random() < 0.5:
            shop.rest()
        source = shop.pipeline.steps[0].source
        hits += unchanged.is_unchanged(source, Checkpoint(shop.spark))
        assert shop.probe() == len(shop.waiting()), (number, act)
    assert hits > STATES / 20
