"""Spark's log of files is cut down, and nobody sees another thing than before: a stream whose log
is cut down again and again, killed on the way, reads each file once, as its twin does whose log is
whole."""

import json
import os
import random
import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from sluice.backlog import files, list_files, shortening, waiting
from sluice.backlog.waiting import find_altered, look_for_files
from sluice.checkpoint import Checkpoint, plan_again, seen, shorten, shorten_log, take_back
from sluice.checkpoint.manifest import Manifest, note_step, open_manifest
from sluice.errors import PreflightError
from sluice.spec import FileSource, load_pipeline
from sluice.storage import open_path, replace_file

HISTORIES = int(os.environ.get("SLUICE_HISTORIES", "12"))
ACTS = 40
EVERY = 3
"""Notes after which Spark packs them."""
NAMES = ["{:04}.csv", "{:04} ü%20+.csv", "{:04}\t#.csv", "{:04}\n[x].csv"]


class Killed(BaseException):
    """The run is gone."""


class Stream:
    """A file stream as Spark 4.2 keeps it in its checkpoint, and what it has read."""

    def __init__(self, home: Path) -> None:
        self.home, self.folder, self.read = home, home / "spark", Counter()
        for name in ("offsets", "commits", "sources/0"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "metadata").write_text('{"id": "x"}')
        note_step(str(home), Manifest("g", "2026-01-01"), target="")

    @property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self.folder)

    def notes(self) -> list[dict]:
        """What Spark reads as it starts."""
        return [
            json.loads(line)
            for note in self.checkpoint.notes()
            for line in note.read_text().split("\n")[1:]
            if line
        ]

    def plan(self, told: list[files.LandedFile], most: int) -> None:
        """Plan a batch of what Spark is told and does not know, and of what it knows and no batch
        has read."""
        batch = max(self.checkpoint.offsets, default=-1) + 1
        known = {entry["path"] for entry in self.notes()}
        new = [file for file in told if uri(file.path) not in known][:most]
        position = max((int(p.name.split(".")[0]) for p in self.checkpoint.all_notes()), default=-1)
        if new:
            position += 1
            self._note(position, new)
        self._write(f"offsets/{batch}", '{"batchWatermarkMs":0}', f'{{"logOffset":{position}}}')

    def _note(self, position: int, new: list[files.LandedFile]) -> None:
        lines = [
            {"path": uri(f.path), "timestamp": int(f.modified * 1000), "batchId": position}
            for f in new
        ]
        packed = (position + 1) % EVERY == 0
        lines = [*(self.notes() if packed else []), *lines]
        name = f"sources/0/{position}" + (".compact" if packed else "")
        self._write(name, *map(json.dumps, lines))

    def finish(self) -> None:
        """Read the planned batch, as Spark does: what lies between two positions."""
        checkpoint = self.checkpoint
        batch = checkpoint.open_batch
        low, high = (checkpoint.log_offset(one) for one in (batch - 1, batch))
        taken = [entry["path"] for entry in self.notes() if low < entry["batchId"] <= high]
        assert Counter(map(seen.normalize_uri, taken)) == Counter(
            file.path for file in checkpoint.batch_files(batch)
        )
        self.read.update(taken)
        self._write(f"commits/{batch}", '{"nextBatchWatermarkMs":0}')

    def _write(self, path: str, *lines: str) -> None:
        (self.folder / path).write_text("\n".join(["v1", *lines]))


def uri(path: str) -> str:
    """As Java writes it, nearly."""
    for sign in "% \t\n#[]":
        path = path.replace(sign, f"%{ord(sign):02X}")
    return f"file://{path}"


class Twins:
    """Two streams of one folder: the log of the first is whole, that of the second is cut down."""

    def __init__(self, folder: Path, draw: random.Random, ordered_by: str | None) -> None:
        self.landing, self.draw, self.landed = folder / "landing", draw, 0
        self.landing.mkdir(parents=True)
        self.whole, self.short = Stream(folder / "whole"), Stream(folder / "short")
        told = {"format": "csv", "schema": {"a": "int"}, "ordered_by": ordered_by}
        self.source = FileSource(path=str(self.landing), **told)

    @property
    def both(self) -> tuple[Stream, Stream]:
        return self.whole, self.short

    def land(self) -> None:
        """A few files; of them one may be a little late."""
        for _ in range(self.draw.randint(1, 4)):
            self.landed += 1
            number = self.landed - (self.draw.random() < 0.2)
            name = f"d{number // 9:03}/" + self.draw.choice(NAMES).format(number)
            path = self.landing / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("a")
            os.utime(path, (self.landed, self.landed))

    def run(self) -> None:
        """A run of a few batches, of which the last may be left open."""
        for stream in self.both:
            if stream.checkpoint.open_batch is not None:
                stream.finish()
        told = [look_for_files(self.source, one.checkpoint).waiting for one in self.both]
        most, batches = self.draw.randint(1, 3), self.draw.randint(1, 3)
        leave = self.draw.random() < 0.3
        for number in range(batches):
            for stream, files_told in zip(self.both, told, strict=True):
                unread = [f for f in files_told if not stream.read[uri(f.path)]]
                if unread:
                    stream.plan(files_told, most)
                    if not leave or number < batches - 1:
                        stream.finish()

    def run_often(self, runs: int) -> None:
        """Runs over new files, behind each of which the second's log is cut down."""
        for _ in range(runs):
            self.land()
            self.run()
            shorten_log(self.short.checkpoint)

    def take_back(self) -> None:
        """Take back the plan of an open batch."""
        for stream in self.both:
            number = stream.checkpoint.open_batch
            if number is not None:
                take_back(stream.checkpoint, number, 1)

    def save(self) -> None:
        """Make a copy of both, to which they may be set back."""
        for stream in self.both:
            shutil.rmtree(saved := stream.home.with_suffix(".saved"), ignore_errors=True)
            shutil.copytree(stream.home, saved)
            stream.saved = Counter(stream.read)

    def set_back(self) -> None:
        """Set both back to their older copy: what was read since is read again."""
        for stream in self.both:
            if (saved := stream.home.with_suffix(".saved")).exists():
                shutil.rmtree(stream.home)
                shutil.copytree(saved, stream.home)
                stream.read = Counter(stream.saved)

    def change(self) -> None:
        """Write a file anew, or remove one."""
        path = self.draw.choice([p for p in self.landing.rglob("*") if p.is_file()])
        if self.draw.random() < 0.5:
            os.utime(path, (10**9, 10**9))
        elif not any(s.checkpoint.open_batch for s in self.both):
            path.unlink()

    def shorten(self, monkeypatch) -> None:
        """Cut down the second's log; the run may be killed at each durable step."""
        with monkeypatch.context() as patch:
            if self.draw.random() < 0.6:
                kill_at(patch, self.draw.randint(1, 6))
            with suppress(Killed):
                shorten_log(self.short.checkpoint)

    def compare(self) -> None:
        """Both say the same of every file."""
        told = [
            (
                [f.path for f in look.waiting],
                look.told,
                sorted((f.path, f.modified_ms, f.log_id) for f in one.checkpoint.seen_files()),
                [sorted(f.path for f in one.checkpoint.batch_files(n)) for n in batches(one)],
                [find_altered(self.source, one.checkpoint, n) for n in batches(one)],
                sorted(one.read.items()),
            )
            for one in self.both
            for look in [look_for_files(self.source, one.checkpoint)]
        ]
        assert told[0] == told[1]

    def compare_plan_again(self) -> None:
        """Who reads all once more gets the same from both."""
        found = []
        for one in self.both:
            other = one.home.with_suffix(".again")
            shutil.rmtree(other, ignore_errors=True)
            plan_again(str(one.home), str(other), 0, "v1\n{}\n{}")
            found.append(
                {
                    note.name: sorted(note.read_text().replace('": ', '":').split("\n"))
                    for note in (other / "spark" / "sources" / "0").iterdir()
                }
            )
        for name, lines in found[0].items():
            assert [json.loads(x) for x in lines if x[0] == "{"] == [
                json.loads(x) for x in found[1][name] if x[0] == "{"
            ]


def batches(stream: Stream) -> list[int]:
    return sorted(stream.checkpoint.offsets)


def kill_at(patch, step: int) -> None:
    """Kill the run before one of its durable steps."""
    left = [step]
    for owner, name in ((os, "replace"), (Path, "unlink")):
        real = getattr(owner, name)

        def act(*asked, real=real, **how):
            if not str(asked[0]).endswith(".tmp") or real.__name__ == "replace":
                left[0] -= 1
                if left[0] == 0:
                    raise Killed
            return real(*asked, **how)

        patch.setattr(owner, name, act)


@pytest.fixture(autouse=True)
def small(monkeypatch) -> None:
    """Every log is long, a segment's end is short, and few files are listed again."""
    monkeypatch.setattr(shorten, "_LONG", 1)
    monkeypatch.setattr(seen, "_TAIL", 700)
    monkeypatch.setitem(waiting._LISTED_AGAIN, "name", 5)


@pytest.mark.parametrize("ordered_by", [None, "name", "folder"])
def test_in_no_drawn_history_does_a_stream_read_other_files_because_its_log_is_cut_down(
    tmp_path, monkeypatch, ordered_by
):
    cut = packed = 0
    for seed in range(HISTORIES):
        draw = random.Random(seed)
        twins = Twins(tmp_path / str(seed), draw, ordered_by)
        acts = {
            twins.land: 5,
            twins.run: 5,
            lambda twins=twins: twins.shorten(monkeypatch): 4,
            twins.take_back: 1,
            twins.save: 0.5,
            twins.set_back: 0.3,
            twins.change: 0.5,
        }
        twins.land()
        for act in draw.choices([*acts], [*acts.values()], k=ACTS):
            act()
            twins.compare()
        twins.compare_plan_again()
        cut += len(twins.short.checkpoint.archive.read())
        packed += any(p.suffix for p in twins.short.checkpoint.all_notes())
        assert all(count == 1 for count in twins.short.read.values())
    assert cut > HISTORIES and packed > HISTORIES / 2


@pytest.fixture
def twins(tmp_path) -> Twins:
    """Three batches, and the second's log cut down."""
    twins = Twins(tmp_path, random.Random(1), "name")
    for _ in range(3):
        twins.land()
        for stream in twins.both:
            stream.plan(list_files(twins.source), 10)
            stream.finish()
    shorten_log(twins.short.checkpoint)
    return twins


def test_the_newest_finished_batch_stays_in_sparks_log_because_spark_asks_for_it(twins):
    assert {entry["batchId"] for entry in twins.short.notes()} == {2}
    assert twins.short.checkpoint.archive.newest == 1


def test_beside_an_open_batch_and_while_it_is_short_a_log_stays_as_it_is(twins, monkeypatch):
    twins.land()
    twins.short.plan(list_files(twins.source), 10)
    before = twins.short.notes()
    shorten_log(twins.short.checkpoint)
    assert twins.short.notes() == before
    twins.short.finish()
    monkeypatch.setattr(shorten, "_LONG", 10**6)
    shorten_log(twins.short.checkpoint)
    assert twins.short.notes() == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: text.replace("\t", " "),
        lambda text: text.partition("\n")[2],
    ],
)
def test_a_list_of_read_files_that_is_damaged_is_an_error_and_never_passed_over(twins, damage):
    (segment,) = twins.short.checkpoint.archive.segments.values()
    segment.write_text(damage(segment.read_text()))
    for ask in (twins.short.checkpoint.seen_files, twins.short.checkpoint.archive.read_entries):
        with pytest.raises(PreflightError, match="is damaged"):
            ask()


def test_an_older_version_refuses_a_checkpoint_whose_log_is_cut_down_and_no_other(twins):
    told = [json.loads((one.home / "manifest.json").read_text()) for one in twins.both]
    assert [one.get("shortened") for one in told] == [None, {"0": 1}]
    assert open_manifest(str(twins.short.home)).shortened
    note_step(str(twins.short.home), open_manifest(str(twins.short.home)), target="t")
    assert open_manifest(str(twins.short.home)).shortened


def test_many_small_cuts_leave_few_segments(twins):
    for _ in range(40):
        twins.land()
        twins.short.plan(look_for_files(twins.source, twins.short.checkpoint).waiting, 10)
        twins.short.finish()
        shorten_log(twins.short.checkpoint)
    assert len(twins.short.checkpoint.archive.segments) <= 8


def test_names_that_sort_are_found_without_a_look_at_those_before(twins, monkeypatch):
    for _ in range(9):
        twins.land()
        twins.short.plan(look_for_files(twins.source, twins.short.checkpoint).waiting, 10)
        twins.short.finish()
    shorten_log(twins.short.checkpoint)
    twins.land()
    asked = []
    find = files.find_file
    monkeypatch.setattr(files, "find_file", lambda path: asked.append(path) or find(path))
    monkeypatch.setattr(seen.SeenArchive, "read", None)
    look = look_for_files(twins.source, twins.short.checkpoint)
    assert look.is_named and look.waiting and len(asked) <= 5 + 4 < twins.landed
    landed, read = list_files(twins.source), twins.short.read
    assert look.waiting == [file for file in landed if not read[uri(file.path)]]


def test_a_list_of_read_files_of_another_moment_is_an_error(twins, tmp_path):
    older = shutil.copytree(twins.short.folder, tmp_path / "older")
    twins.run_often(2)
    newer = shutil.copytree(twins.short.folder / "seen", tmp_path / "newer")
    for name in ("offsets", "commits", "sources"):
        shutil.rmtree(twins.short.folder / name)
        shutil.copytree(older / name, twins.short.folder / name)
    with pytest.raises(PreflightError, match="not of one moment"):
        look_for_files(twins.source, twins.short.checkpoint)
    shutil.rmtree(twins.short.folder)
    shutil.copytree(older, twins.short.folder)
    with pytest.raises(PreflightError, match="not of one moment"):  # by the manifest
        look_for_files(twins.source, twins.short.checkpoint)
    shutil.copytree(newer, twins.short.folder / "seen", dirs_exist_ok=True)
    shutil.rmtree(twins.short.folder / "seen")
    with pytest.raises(PreflightError, match="not of one moment"):
        look_for_files(twins.source, twins.short.checkpoint)


def test_in_a_bucket_a_log_is_cut_down_as_on_a_disk(s3, twins):
    stream, home = twins.whole, f"{s3.create_bucket('log')}/checkpoint"
    for file in (path for path in stream.home.rglob("*") if path.is_file()):
        replace_file(open_path(f"{home}/{file.relative_to(stream.home)}"), file.read_text())
    before = sorted(stream.checkpoint.seen_files())
    assert sorted(Checkpoint.below(home).seen_files()) == before
    shorten_log(Checkpoint.below(home))
    there = Checkpoint.below(home)
    assert sorted(there.seen_files()) == before and len(there.noted_files()) < len(before)
    look = look_for_files(twins.source, there)
    assert look.is_named and look.waiting == []
    assert there.archive.read_end()[0] == there.archive.read()


QUEUE = ", notifications: {queue: https://sqs.example.com/1/q}"
STEPS = """
name: p
steps:
  - name: s
    source: {{kind: files, path: "{path}", format: json, schema: {{a: int}}{more}}}
    trigger: {trigger}
    sink: {{mode: append}}
"""


@pytest.mark.parametrize(
    ("path", "more", "trigger", "cut"),
    [
        ("/landing", "", "available_now", True),
        ("s3a://bucket/landing", "", "available_now", True),
        ("s3a://bucket/in", QUEUE, "available_now", False),
        ("hdfs://server/landing", "", "available_now", False),
        ("/landing", "", "once", False),
        ("/landing", "", "default", False),
    ],
)
def test_a_log_is_cut_down_only_where_spark_can_be_told_what_is_new(
    tmp_path, monkeypatch, path, more, trigger, cut
):
    (tmp_path / "p.yaml").write_text(STEPS.format(path=path, more=more, trigger=trigger))
    (step,) = load_pipeline(tmp_path / "p.yaml").steps
    asked = []
    monkeypatch.setattr(shortening, "shorten_log", asked.append)
    assert shortening.shorten_logs(step, str(tmp_path), lambda name: None) == []
    assert bool(asked) == cut
