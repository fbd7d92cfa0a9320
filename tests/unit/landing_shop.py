"""A landing folder, and whatever may bring a file into it."""

import json
import os
import random
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from sluice.backlog import measure_pipeline, note_idle_audits, unchanged
from sluice.backlog.waiting import waiting_files
from sluice.checkpoint import Checkpoint
from sluice.spec import FileSource, load_pipeline
from sluice.storage import Paths

TICK = timedelta(milliseconds=30)
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

    @property
    def asked(self) -> tuple[FileSource, Checkpoint]:
        """What a look is told."""
        return self.pipeline.steps[0].source, Checkpoint(self.spark)

    def waiting(self) -> set[str]:
        """What a look at every file finds: the oracle."""
        return {file.path for file in waiting_files(*self.asked)[0]}

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


def open_shop(tmp_path: Path, monkeypatch) -> Shop:
    """A shop on a file system whose folders tell of each change, after a rest of milliseconds."""
    monkeypatch.setattr(unchanged, "_TICK", TICK)
    here = os.stat(tmp_path).st_dev
    monkeypatch.setattr(unchanged, "_file_systems", lambda: {here: "ext4"})
    return Shop(tmp_path)


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


ACTS: dict[str, Callable[[Shop], object]] = {
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


def draw_act(shop: Shop, draw: random.Random, number: int) -> str:
    """Do something to the folder or the checkpoint, or nothing; returns what."""
    act = draw.choice(["land", "read", "nothing", "nothing", "remove", "overwrite", "empty"])
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
    return act
