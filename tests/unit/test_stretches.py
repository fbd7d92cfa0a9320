"""Which finished batches are read once more as one: what is noted of each as it begins."""

import json
import random
from pathlib import Path

import pytest
from sluice.checkpoint import note_stretch, read_stretches


class Step:
    """A checkpoint whose batches are planned by hand."""

    def __init__(self, folder: Path, *apart: str) -> None:
        self.folder, self.apart = folder, apart

    def plan(self, batch: int, watermark: int = 0) -> None:
        text = f"v1\n{json.dumps({'batchWatermarkMs': watermark})}\n{batch}"
        file = self.folder / "spark" / "offsets" / str(batch)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def begin(self, batch: int, watermark: int = 0, **statics: object) -> None:
        self.plan(batch, watermark)
        note_stretch(str(self.folder), batch, statics, self.apart)

    def told(self, until: int) -> list[tuple[int, int, dict]]:
        found = read_stretches(str(self.folder), until, self.apart)
        assert all(one.plan.endswith(f"\n{one.last}") for one in found)
        return [(one.first, one.last, one.statics) for one in found]


def test_batches_of_one_version_are_one_and_of_another_another(tmp_path):
    step = Step(tmp_path, "statics")
    for batch, version in enumerate([1, 1, 2, 2, 2, 1]):
        step.begin(batch, prices=version)
    assert step.told(5) == [(0, 1, {"prices": 1}), (2, 4, {"prices": 2}), (5, 5, {"prices": 1})]


def test_a_second_try_with_another_version_is_of_that_version(tmp_path):
    step = Step(tmp_path, "statics")
    for batch, version in [(0, 1), (1, 1), (1, 2), (1, 3), (2, 3)]:
        step.begin(batch, prices=version)
    assert step.told(2) == [(0, 0, {"prices": 1}), (1, 2, {"prices": 3})]


def test_a_second_try_with_the_version_before_goes_on_with_its_stretch(tmp_path):
    step = Step(tmp_path, "statics")
    for batch, version in [(0, 1), (1, 2), (1, 1), (2, 1)]:
        step.begin(batch, prices=version)
    assert step.told(2) == [(0, 2, {"prices": 1})]


@pytest.mark.parametrize(
    ("apart", "cuts"),
    [
        (["state"], [0, 1, 2, 3, 4]),
        (["watermark"], [0, 2, 4]),
        (["commits"], [0, 1]),
        (["commits", "watermark"], [0, 1, 2, 4]),
        (["statics"], [0]),
    ],
)
def test_what_keeps_batches_apart_says_where_they_are_cut(tmp_path, apart, cuts):
    step = Step(tmp_path, *apart)
    for batch, watermark in enumerate([0, 0, 7, 7, 9]):
        step.begin(batch, watermark)
    assert [first for first, _, _ in step.told(4)] == cuts


def test_what_nobody_noted_is_a_batch_by_itself_while_spark_has_its_plan(tmp_path):
    step = Step(tmp_path, "watermark")
    for batch in range(3):
        step.plan(batch, batch)
    for batch in (3, 4):
        step.begin(batch, 9)
    assert [one[:2] for one in step.told(4)] == [(0, 0), (1, 1), (2, 2), (3, 4)]
    (tmp_path / "spark" / "offsets" / "1").unlink()
    assert step.told(4) == []
    step.apart = ("statics",)
    step.plan(1)
    assert step.told(4) == []  # at what version nobody knows


def test_a_note_that_the_power_cut_in_two_stops_no_run(tmp_path):
    step = Step(tmp_path, "statics")
    step.begin(0, prices=1)
    (tmp_path / "stretches" / "0.json").write_text('[{"first": 0, "la')
    step.begin(1, prices=1)
    assert step.told(1) == []


@pytest.mark.parametrize("seed", range(20))
def test_hundreds_of_batches_with_second_tries_are_told_without_a_gap(tmp_path, seed):
    draw, versions, apart = random.Random(seed), {}, ("statics",)
    step, version = Step(tmp_path, *(apart if seed % 2 else ("statics", "state"))), 0
    for batch in range(350):
        for _ in range(draw.choice([1, 1, 1, 2, 3])):
            version += draw.random() < (0.9 if seed % 3 else 0.02)
            versions[batch] = version
            step.begin(batch, prices=version)
        (tmp_path / "spark" / "offsets" / str(batch - 100)).unlink(missing_ok=True)
    told = step.told(349)
    read = {batch: one["prices"] for first, last, one in told for batch in range(first, last + 1)}
    assert read == versions
    assert [first for first, _, _ in told[1:]] == [last + 1 for _, last, _ in told[:-1]]
    if seed % 2:
        assert all(a[2] != b[2] for a, b in zip(told, told[1:], strict=False))
    else:
        assert len(told) == 350
