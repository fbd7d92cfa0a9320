"""An operator does what people do on a Tuesday, in any order: after each act the tables, the sink
and the reports are exact, or the run refuses by name, and is exact once its advice is followed.

A history that fails is printed as a script that replays it. `SLUICE_CHAOS` says how many histories
are drawn, `SLUICE_CHAOS_SEED` which.
"""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)
from sluice.sources import intake
from sluice.spark import tables
from sluice.streaming import apart

from tests.crash.ends import FACTORS
from tests.crash.fault_points import OPERATIONS, Operation
from tests.crash.operator import Operator, Servers

HISTORIES = int(os.environ.get("SLUICE_CHAOS", "6"))
SEED = int(os.environ.get("SLUICE_CHAOS_SEED", "20260101"))
ACTS = 10
KINDS = ["new", "copy", "large", "negative", "broken", "bad copy", "renamed", "extra"]
KINDS += ["better", "worse"]
SHOPS = ["files", "ranked", "table", "topic", "large"]
LARGE = {
    (intake, "CROWDING_BYTES"): 0,
    (apart, "FEW"): 0.0,
    (tables, "FEW_ROWS"): 0,
}
"""What makes a batch go the way of a large one, whose rows lie on disk."""
USUAL = {(module, name): getattr(module, name) for module, name in LARGE}
POSITION = Operation("position of a sink", r"/positions/.*\.json$", side="Python")
MET = [POSITION, *(o for o in OPERATIONS if o.shop in ("running", "new"))]
FAULTS = [(operation, moment) for operation in MET for moment in operation.moments]
faults = st.sampled_from(FAULTS)
numbers = st.integers(0, 9)


class Tuesday(RuleBasedStateMachine):
    """One history."""

    begin = None
    """Makes an operator in a new folder."""
    patch = None
    """The test's own monkeypatch."""

    def __init__(self) -> None:
        super().__init__()
        self.he: Operator = type(self).begin()

    @initialize(
        shop=st.sampled_from(SHOPS), kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4)
    )
    def begin_with_a_file(self, shop, kinds):
        for (module, name), value in LARGE.items():
            self.patch.setattr(module, name, value if shop == "large" else USUAL[module, name])
        self.he.choose(shop)
        self.he.land(kinds)

    @rule(kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    def land(self, kinds):
        self.he.land(kinds)

    @rule(again=st.sampled_from([0, 0, 1, 3]))
    def run(self, again):
        self.he.run(again)
        self.he.save()

    @rule(kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=3), fault=faults)
    def fail(self, kinds, fault):
        self.he.land(kinds)
        self.he.fail(*fault)

    @rule(fault=st.none() | faults)
    def backfill(self, fault):
        self.he.backfill(*(fault or ()))

    @rule(limit=st.sampled_from([100.0, 10.0]))
    def edit_rule(self, limit):
        self.he.edit(limit=limit)

    @rule(factor=st.sampled_from(FACTORS))
    def edit_transform(self, factor):
        self.he.edit(factor=factor)

    @rule(order=st.sampled_from([1, -1]))
    def edit_order(self, order):
        if self.he.oracle.definition.order:
            self.he.edit(order=order)

    @rule()
    def edit_schema(self):
        self.he.edit_schema()

    @rule(files=st.sampled_from([1, None]))
    def edit_pace(self, files):
        self.he.edit_pace(files)

    @rule(state=st.sampled_from(["well", "away", "refusing", "out"]))
    def set_sink(self, state):
        self.he.set_sink(state)

    @rule()
    def replace_range(self):
        self.he.replace_range()

    @rule()
    def purge(self):
        self.he.purge()

    @rule()
    def refill(self):
        self.he.refill()

    @rule()
    def optimize(self):
        self.he.optimize()

    @rule(number=numbers)
    def delete(self, number):
        self.he.delete(number)

    @rule(number=numbers)
    def restore(self, number):
        self.he.restore(number)

    @rule(number=numbers)
    def restore_quarantine(self, number):
        self.he.restore_quarantine(number)

    @rule(what=st.sampled_from(["target", "manifest", "checkpoint"]))
    def lose(self, what):
        self.he.lose(what)

    @rule()
    def renew_source(self):
        self.he.renew_source()

    @rule(days=st.sampled_from([-40, -1, 8, 40]))
    def step_clock(self, days):
        self.he.step_clock(days)

    @rule()
    def write_other(self):
        self.he.write_other()

    def teardown(self) -> None:
        try:
            self.he.settle()
        finally:
            shutil.rmtree(self.he.folder, ignore_errors=True)


@pytest.mark.timeout(86400)
def test_whatever_an_operator_does_every_row_has_one_fate(
    spark, power, postgres, kafka_broker, tmp_path, monkeypatch
):
    monkeypatch.setenv("PG_PASSWORD", postgres.password)
    count = iter(range(10**9))

    def begin() -> Operator:
        folder = tmp_path / f"history-{next(count)}"
        return Operator(spark, power, Servers(postgres, kafka_broker), Path(folder))

    Tuesday.begin, Tuesday.patch = staticmethod(begin), monkeypatch
    seed(SEED)(Tuesday)
    run_state_machine_as_test(
        Tuesday,
        settings=settings(
            max_examples=HISTORIES,
            stateful_step_count=ACTS,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
            print_blob=False,
        ),
    )
    print(f"{next(count)} histories of at most {ACTS} acts, seed {SEED}: all exact")
