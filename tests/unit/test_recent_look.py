"""What a run's probe has just found in a crowded folder is what its step reads, unless something
may have changed meanwhile."""

import os
import random
from collections.abc import Callable

import pytest
from sluice.backlog import recent, waiting

from tests.unit.landing_shop import ACTS, Shop, draw_act, open_shop

STATES = int(os.environ.get("SLUICE_STATES", "200"))


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Shop:
    """One file more than were read, in a folder that counts as crowded."""
    monkeypatch.setattr(waiting, "_MANY", 2)
    shop = open_shop(tmp_path, monkeypatch)
    (shop.landing / "day=1" / "new.csv").write_text("id")
    (shop.landing / "day=1" / ".b.csv").write_text("id")
    shop.rest()
    return shop


@pytest.fixture
def looks(monkeypatch) -> Callable[[], int]:
    """How often a folder was looked at since it was asked last."""
    look, count = waiting.look_for_files, []

    def look_and_count(*asked):
        count.append(asked)
        return look(*asked)

    def told() -> int:
        number = len(count)
        count.clear()
        return number

    monkeypatch.setattr(recent, "look_for_files", look_and_count)
    return told


def recall(shop: Shop) -> set[str]:
    return {file.path for file in recent.look_or_recall(*shop.asked).waiting}


def test_a_step_does_not_look_again_at_what_the_probe_has_just_seen(shop, looks):
    assert shop.probe() == 1
    path = shop.landing / "day=1" / "new.csv"
    path.write_text("id\n1\n2")  # still being written as the probe looked
    (found,) = recent.look_or_recall(*shop.asked).waiting
    assert (looks(), found.path, found.size) == (1, str(path), path.stat().st_size)
    assert recall(shop) == shop.waiting() and looks() == 1  # once, and not for the next run


@pytest.mark.parametrize("act", ACTS)
def test_what_came_after_the_probe_is_read(shop, looks, act):
    assert shop.probe() == 1
    ACTS[act](shop)
    assert recall(shop) == shop.waiting()
    assert looks() == 2


@pytest.mark.parametrize("many", [3, 1_000_000])
def test_a_folder_that_is_quickly_listed_is_listed_again(shop, looks, monkeypatch, many):
    monkeypatch.setattr(waiting, "_MANY", many)
    assert shop.probe() == 1
    assert recall(shop) == shop.waiting()
    assert looks() == 2


def test_a_look_of_long_ago_is_not_trusted(shop, looks, monkeypatch):
    assert shop.probe() == 1
    monkeypatch.setattr(recent, "_TRUSTED", 0.0)
    assert recall(shop) == shop.waiting()
    assert looks() == 2


def test_a_folder_that_changed_as_the_probe_looked_is_looked_at_again(shop, looks, monkeypatch):
    (shop.landing / "b.csv").write_text("id")  # in this moment: another may have the same time
    assert shop.probe() == 2
    (shop.landing / "c.csv").write_text("id")
    assert recall(shop) == shop.waiting()
    assert looks() == 2


def test_in_no_drawn_state_does_a_step_read_other_files_than_a_look_would_find(shop, looks):
    draw = random.Random(20261127)
    recalled = 0
    for number in range(STATES):
        shop.probe()
        looks()
        act = draw_act(shop, draw, number)
        assert recall(shop) == shop.waiting(), (number, act)
        recalled += not looks()
    assert recalled > STATES / 20
