"""The figures of the README are those that were measured."""

import json
from pathlib import Path

import pytest

from tests.benchmarks.bench import GROUPS, USUAL, choose
from tests.benchmarks.comparison import Comparison, Cost, measure, to_json, to_table

PROJECT = Path(__file__).parents[2]
MEASURED = PROJECT / "tests" / "benchmarks" / "figures.json"


def test_the_readme_shows_every_figure_as_it_was_measured():
    table = to_table(json.loads(MEASURED.read_text(encoding="utf-8")))
    assert table in (PROJECT / "README.md").read_text(encoding="utf-8")


def test_a_ratio_is_the_median_of_interleaved_pairs():
    order, costs = [], {"ours": iter([1.0, 9.0, 3.0]), "other": iter([2.0, 3.0, 2.0])}

    def job(name):
        def run() -> Cost:
            order.append(name)
            return Cost(next(costs[name]), 0.0, 10**9)

        return run

    figure = measure(Comparison("P0", "this ÷ that", 1.0, job("ours"), job("other")), 3)
    assert order == ["ours", "other", "other", "ours", "ours", "other"]
    assert (figure.ratio, figure.low, figure.high) == (1.5, 0.5, 3.0)
    assert (figure.ours, figure.other, figure.pairs) == (3.0, 2.0, 3)
    row = to_table(to_json([figure], {})).splitlines()[-1]
    assert row == "| P0: this ÷ that | 3.0 | 2.0 | 1.50 (0.50 to 3.00) | 1.0 ÷ 1.0 GB |"
    assert "MISSED" in figure.line


def test_what_is_measured_is_chosen_by_group_or_by_name():
    everything, names = choose("", "")
    assert everything == ["small", "load", "topic", "cluster"] and "P13" in names
    assert choose("", "P4,P13") == (["load", "cluster"], {"P4", "P13"})
    assert choose("", "P10") == (["days"], {"P10"})
    assert choose("growth", "") == (["growth"], {*GROUPS["growth"]})
    assert choose("load", "P7") == (["load"], {"P7"})


@pytest.mark.parametrize(("groups", "only"), [("lod", ""), ("", "P44")])
def test_a_name_that_is_not_there_is_said_with_those_that_are(groups, only):
    with pytest.raises(SystemExit, match="there are .*small.*growth"):
        choose(groups, only)


def test_every_measured_figure_is_one_that_can_be_asked_for():
    measured = {figure["name"] for figure in json.loads(MEASURED.read_text())["figures"]}
    assert measured == {name for group in USUAL for name in GROUPS[group]}
