"""Law 2 by property: however a backlog is cut, tables and counts are those of a plain computation.

An example is the history of a few keys, cut over the files of a backlog in its own way. One backlog
holds one of them, or many that share nothing but the files. `SLUICE_EXAMPLES` says how many are
drawn.
"""

import json
import math
import os
import shutil
from collections import Counter
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sluice.report import Counts
from sluice.sources import intake
from sluice.spark import tables
from sluice.streaming import apart

from .histories import (
    KEYS,
    ORDERS,
    SCHEMA,
    count_differing,
    encode,
    find_reason,
    group_rows,
    identify,
    make_history,
    rank,
    say,
    write_time,
)
from .shop import RULES, Shop

pytestmark = pytest.mark.usefixtures("two_partitions")

TOGETHER = 50
"""Histories in a backlog that holds many."""
KINDS = 2
"""Kinds of steps: with `order_by` and without."""
EXAMPLES = int(os.environ.get("SLUICE_EXAMPLES", "102"))
BACKLOGS = math.ceil(EXAMPLES / (KINDS * (1 + TOGETHER)))
FATES = ("read", "malformed", "written", "quarantined", "duplicate", "late")


@st.composite
def backlogs(draw, histories: int) -> list[tuple[list[str], bool]]:
    """Files of lines, each with whether a run comes after it."""
    files = draw(st.sampled_from([3, 2, 1]))  # what is drawn first cuts the most
    rng = draw(
        st.randoms(use_true_random=histories > 1)
    )  # more draws than hypothesis keeps account of
    lines = [make_history(rng, history, files) for history in range(histories)]
    return [
        (
            [line for history in lines for line in history[file]],
            draw(st.sampled_from([True, False])),
        )
        for file in range(files)
    ]


def read_target(shop: Shop, spark) -> Counter:
    """The target as a multiset of (key, what the row says), written as in the landing files."""
    found: Counter = Counter()
    for row in shop.rows(spark, columns=tuple(SCHEMA)).elements():
        named = dict(zip(SCHEMA, row, strict=True))
        named |= {name: write_time(named[name]) for name in ("moment", "at")}
        day: date = named["day"]
        named |= {"day": day.isoformat(), "price": float(named["price"])}
        named |= {"code": encode(bytes(named["code"]))}
        found[identify(named), say(named)] += 1
    return found


@pytest.mark.timeout(86400)
@pytest.mark.parametrize("ordered", [True, False], ids=["order_by", "the first stays"])
@pytest.mark.parametrize("histories", [1, TOGETHER])
def test_law_2_the_result_is_that_of_one_batch_however_the_backlog_is_cut(
    spark, tmp_path_factory, histories, ordered
):
    @settings(
        max_examples=BACKLOGS,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )  # a backlog takes seconds, and shrinking one hundreds of backlogs
    @given(
        backlog=backlogs(histories),
        bound=st.sampled_from([1, None]),
        order_by=st.sampled_from(ORDERS if ordered else [[]]),
        large=st.booleans(),
    )
    def check(backlog, bound, order_by, large):
        folder = tmp_path_factory.mktemp("cut")
        try:
            with pytest.MonkeyPatch.context() as patch:
                if large:  # whose rows are kept on disk, and sorted only where keys are shared
                    patch.setattr(intake, "CROWDING_BYTES", 0)
                    patch.setattr(apart, "FEW", 0.0)
                    patch.setattr(tables, "FEW_ROWS", 0)
                check_cut(spark, folder, backlog, bound, order_by)
        finally:
            shutil.rmtree(folder)

    check()


def open_shop(folder: Path, order_by: list[str], bound: int | None) -> Shop:
    return Shop(
        folder,
        dedup={"keys": list(KEYS), "order_by": order_by},
        source={"schema": SCHEMA, "max_files_per_batch": bound},
        rules=[rule for rule in RULES if rule["on_fail"] == "quarantine"],
    )


def check_cut(
    spark,
    folder: Path,
    backlog: list[tuple[list[str], bool]],
    bound: int | None,
    order_by: list[str],
) -> None:
    """Land, run where the example says so and at the end; compare all with the computation."""
    shop, reports = open_shop(folder / "cut", order_by, bound), []
    for number, (lines, runs_after) in enumerate(backlog, 1):
        shop.land(*lines)
        if runs_after or number == len(backlog):
            reports.append(shop.run())
            assert (reports[-1].error, reports[-1].status) == (None, "done")
    lines = [line for part, _ in backlog for line in part]
    reasons = {line: find_reason(line) for line in lines}
    good = [json.loads(line) for line in lines if reasons[line] is None]
    groups = group_rows(good, apart=not order_by)
    target = read_target(shop, spark)
    check_winners(target, groups, order_by)
    refused = Counter((reason,) for reason in reasons.values() if reason)
    assert shop.reasons(spark) == refused
    total = sum((report.counts for report in reports), Counts())
    broken = lines.count("{broken")
    left = len(lines) - len(groups) - refused.total()
    counted = tuple(getattr(total, fate) for fate in FATES)
    assert counted == (len(lines), broken, len(groups), refused.total(), left, 0)
    conflicts = [batch.conflicts for report in reports for batch in report.steps[0].batches]
    least, most = (count_differing(groups, exact) for exact in (False, True))
    assert max(conflicts) <= most, "a key is counted once a batch at most"
    assert least <= sum(conflicts), "each key whose rows differ is reported"
    if order_by and len(backlog) > 1:
        whole = open_shop(folder / "whole", order_by, None)
        whole.land(*lines)
        whole.run()
        assert read_target(whole, spark) == target, "ties are broken alike"


def check_winners(target: Counter, groups: list[list[dict]], order_by: list[str]) -> None:
    """One row of each group is there, and it is one that no other ranks before."""
    left = Counter(target)
    for group in groups:
        best = min(rank(row, order_by) for row in group)
        allowed = {say(row) for row in group if rank(row, order_by) == best}
        key = identify(group[0])
        found = [said for said in allowed if left[key, said]]
        assert len(found) == 1, f"{key}: {len(found)} of {sorted(allowed, key=str)}"
        left[key, found[0]] -= 1
    assert not +left, "no row is there that should not be"
