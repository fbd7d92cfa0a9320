"""A step with `groups`: what it computes is its choice, by `refresh` and `on_lost_history`, and the
report says what was chosen and why."""

from dataclasses import replace

import pytest
from sluice.errors import ExitCode

from tests.spark.gold import Gold
from tests.spark.test_refresh_history import SUMS, WATCH, add, fates, open_gold, order

DAYS = 150
"""More groups than are told one by one."""


@pytest.fixture(scope="module")
def started(spark, tmp_path_factory):
    """A first run over many days."""
    gold = open_gold(spark, tmp_path_factory.mktemp("started"), SUMS)
    add_days(gold)
    gold.refresh()
    return gold


@pytest.fixture
def gold(tmp_path, started):
    return started.copied(tmp_path)


def add_days(gold: Gold) -> None:
    """An order for each of many days."""
    at = "TIMESTAMP '2026-03-01 12:00:00' + make_interval(0, 0, 0, CAST(id AS INT))"
    gold.sql(f"INSERT INTO {{table}} SELECT CAST(id AS INT), {at}, 1, 'bob' FROM range({DAYS})")


def lose(gold: Gold) -> None:
    """A change that no feed tells."""
    gold.sql(WATCH % "false")
    gold.sql("UPDATE {table} SET amount = 7 WHERE id = 1 AND customer = 'ann'")
    gold.sql(WATCH % "true")


def test_refresh_never_computes_all_of_it_and_still_writes_only_the_groups_that_differ(gold):
    never = replace(gold, step={"refresh": "never"})
    add(never, order(9, 1))
    found = never.refresh()
    assert found.whole == "the step says `refresh: never`"
    assert (found.touched, fates(found)) == (DAYS + 3, (0, 1, 0, DAYS + 2))
    assert found.bytes_read == found.bytes_of_all


def test_many_groups_in_most_of_the_bytes_are_computed_with_all_others_and_in_fewer_alone(gold):
    add_days(gold)
    found = gold.refresh()
    assert found.bytes_read < 0.8 * found.bytes_of_all
    assert (found.whole, found.touched, fates(found)) == ("", DAYS, (0, DAYS, 0, 0))
    add_days(gold)
    found = gold.refresh()
    assert f"the {DAYS} groups that were touched lie in" in found.whole
    assert found.whole.endswith("so it costs less to compute all")
    assert (found.touched, fates(found)) == (DAYS + 3, (0, DAYS, 0, 3))


def test_refresh_always_computes_no_group_that_was_not_touched(gold):
    always = replace(gold, step={"refresh": "always"})
    add_days(always)
    add_days(always)
    found = always.refresh()
    assert found.bytes_read > 0.8 * found.bytes_of_all
    assert (found.whole, found.touched, fates(found)) == ("", DAYS, (0, DAYS, 0, 0))


def test_lost_history_stops_a_step_that_asks_for_it_each_time_until_its_file_says_otherwise(gold):
    careful = replace(gold, step={"on_lost_history": "stop"})
    lose(careful)
    held = careful.groups()
    for _ in range(2):
        report = careful.run()
        assert report.exit_code is ExitCode.TERMINAL
        assert "what changed in the inputs cannot be read" in report.error
        assert "change feed was off" in report.error
        assert "Write `on_lost_history: recompute`" in report.error
        assert careful.groups() == held
    found = gold.refresh()
    assert "change feed was off" in found.whole and fates(found) == (0, 1, 0, DAYS + 2)
