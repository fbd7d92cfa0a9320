"""The power fails before and after every durable operation, and each of them fails.

The runs after it end in the tables and counts of a run without a fault. In `make test` the power
fails once between each operation and the next, and each fault is met once by Spark and once by
Python; SLUICE_LONG=1 has every fault everywhere.
"""

import json

import pytest
from sluice.checkpoint import shorten

from tests.crash.fault_points import OPERATIONS, FaultyShop, make_chain
from tests.long_runs import LONG

KINDS = {
    "running": "in_a_shop_that_has_run_before",
    "late": "in_a_shop_that_keeps_late_rows",
    "new": "in_a_new_shop",
    "rows": "in_a_new_shop_whose_rows_make_its_tables",
    "state": "in_a_shop_with_a_state_store",
    "archive": "in_a_shop_that_archives_what_it_has_read",
    "delete": "in_a_shop_that_deletes_what_it_has_read",
    "long": "in_a_shop_whose_log_of_files_is_cut_down",
}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS, ids=KINDS.get)
def test_no_fault_loses_or_doubles_or_miscounts_a_row(
    power, spark, tmp_path, record_property, monkeypatch, kind
):
    if kind == "long":
        monkeypatch.setattr(shorten, "_LONG", 1)
    outcomes, wrong = FaultyShop(tmp_path, kind, power, spark).play(make_chain(kind, LONG))
    record_property("outcomes", json.dumps([[o.operation, o.moment, o.ended] for o in outcomes]))
    assert wrong == []


def test_a_first_batch_whose_plan_breaks_off_half_way_is_planned_again(power, spark, tmp_path):
    offsets = next(operation for operation in OPERATIONS if operation.name == "offsets")
    _, wrong = FaultyShop(tmp_path, "new", power, spark).play([(offsets, "partial write")])
    assert wrong == []
