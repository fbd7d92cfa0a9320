"""A folder that is as it was is not looked at file by file; whatever may have brought a file is."""

import json
import os
import random
from datetime import UTC, datetime, timedelta

import pytest
from sluice.backlog import unchanged, waiting

from tests.unit.landing_shop import ACTS, Shop, draw_act, open_shop

STATES = int(os.environ.get("SLUICE_STATES", "200"))


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Shop:
    return open_shop(tmp_path, monkeypatch)


@pytest.fixture
def noted(shop):
    """A shop in which nothing is new, which was noted."""
    shop.rest()
    assert shop.probe() == 0 and shop.note.exists()
    return shop


def test_an_idle_probe_looks_at_no_file_while_no_folder_has_changed(noted, monkeypatch):
    def look(*_):
        raise AssertionError("the files were looked at")

    monkeypatch.setattr(waiting, "walk_files", look)
    assert noted.probe() == 0


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
    assert not unchanged.is_unchanged(*noted.asked)


def test_a_note_that_holds_gets_no_younger_where_nobody_looked(noted):
    """As of an input beside another one that was looked at."""
    before = noted.note.read_text()
    unchanged.note_unchanged(*noted.asked, datetime.now(UTC))
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


def test_in_no_drawn_state_is_a_file_passed_over(shop):
    draw = random.Random(20261126)
    hits = 0
    for number in range(STATES):
        act = draw_act(shop, draw, number)
        hits += unchanged.is_unchanged(*shop.asked)
        assert shop.probe() == len(shop.waiting()), (number, act)
    assert hits > STATES / 20
