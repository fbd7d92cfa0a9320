"""Refresh by group, by property: whatever befalls the inputs, whatever people write to the table
and wherever runs die, it is the batch query over its inputs, and only groups that changed are
written again.

`SLUICE_REFRESHES` says how many histories are drawn for each query, from `SLUICE_SEED` on; without
it a few queries of different kinds have one each. `make chaos REFRESHES=3` draws three for all.
"""

import os
import random
from collections import Counter

import pytest
from sluice.errors import ExitCode
from sluice.report import RunReport

from tests.long_runs import leave
from tests.spark.gold import DEATHS, Gold, Groups
from tests.spark.gold_commits import Lake, Tape
from tests.spark.gold_joins import JOINS
from tests.spark.gold_queries import QUERIES

HISTORIES = int(os.environ.get("SLUICE_REFRESHES") or "0")
FIRST = int(os.environ.get("SLUICE_SEED", "20260101"))
CATALOGUE = QUERIES | JOINS
FEW = ("rows_out_of_a_list", "top_two", "full_join")
NAMES = [*CATALOGUE] if HISTORIES else FEW
RUNS = 4 if HISTORIES else 2
"""Of a history, that find news; those that die are not among them."""


@pytest.fixture(scope="module")
def tapes(spark, tmp_path_factory):
    """Seed -> the tables and what befalls them, made once."""
    made: dict[int, Tape] = {}

    def tape(seed: int) -> Tape:
        if seed not in made:
            made[seed] = Tape(spark, tmp_path_factory.mktemp(f"tape{seed}"), seed)
        return made[seed]

    return tape


@pytest.mark.parametrize("name", NAMES if HISTORIES else leave(NAMES, "top_two"))
@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(1, HISTORIES)))
def test_after_every_run_the_table_is_the_query_over_the_inputs_and_the_report_tells_what_changed(
    spark, tmp_path, tapes, seed, name
):
    gold, chance = Gold(spark, tmp_path, CATALOGUE[name]), random.Random(f"{seed} {name}")
    lake = Lake(tapes(seed), gold.tables, gold.query.tables.values(), chance)
    held: Groups = {}
    for left in range(RUNS, 0, -1):
        lake.advance(left)
        if chance.random() < 0.25:
            gold.meddle(chance)
            held = gold.groups()
        elif chance.random() < 0.25:
            gold.die(chance.choice(DEATHS))
            if left > 1 and chance.random() < 0.5:
                lake.advance(left)
        report = gold.run()
        assert report.error is None
        before, held = held, gold.groups()
        gold.check(held)
        check_effect(before, held, report)
    before = held
    lake.move(spark)
    report, held = gold.run(), gold.groups()
    gold.check(held)
    check_effect(before, held, report)
    files = gold.files
    assert {gold.run().exit_code for _ in range(2)} == {ExitCode.NOTHING_NEW}
    assert gold.files == files


def check_effect(before: Groups, after: Groups, report: RunReport) -> None:
    """A group that is as it was, was not written; the numbers of a run with one batch are those of
    groups that came, changed and went."""
    batches = report.steps[0].batches if report.steps else []
    if len(batches) > 1:  # a group may have gone and come back
        return
    old, new = contents(before), contents(after)
    for group in (group for group in new if old.get(group) == new[group]):
        assert before[group] == after[group], f"{group} was written again"
    changed = sum(old[group] != new[group] for group in old.keys() & new.keys())
    expected = (len(new.keys() - old.keys()), changed, len(old.keys() - new.keys()))
    refreshes = [batch.refresh for batch in batches]
    found = [(one.inserted, one.updated, one.deleted) for one in refreshes]
    assert (found or [(0, 0, 0)]) == [expected], refreshes


def contents(groups: Groups) -> Groups:
    """The rows of each group, whoever wrote them."""
    said: Groups = {}
    for group, rows in groups.items():
        said[group] = Counter()
        for (row, _), times in rows.items():
            said[group][row] += times
    return said
