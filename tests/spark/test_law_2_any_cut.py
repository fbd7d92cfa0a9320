"""Law 2 by property: whatever the times, the copies, the lateness and the cuts, the tables and the counts are those of a plain batch computation.

`SLUICE_EXAMPLES` says how many examples are drawn.
"""

import json
import os
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sluice.report import Counts

from .shop import Shop

EXAMPLES = int(os.environ.get("SLUICE_EXAMPLES", "8"))
START = datetime(2026, 1, 1, tzinfo=UTC)
WITHIN = timedelta(days=2)
POISON = {"order_id": "k0", "amount": 1.0, "at": "2099-01-01T00:00:00Z"}
UNTIMED = {"order_id": "k0", "amount": 1.0, "at": None}
KEYLESS = {"order_id": None, "amount": 1.0, "at": "2026-01-03T00:00:00Z"}
REFUSED = [(POISON, "future_time"), (UNTIMED, "null_time"), (KEYLESS, "null_key"), ("{broken", "malformed")]


@st.composite
def order_rows(draw, keys: int) -> dict:
    """One order: copies of a key lie within a day of its own day; its number is used again a month later, for another order; amounts below 0 break a rule."""
    key = draw(st.integers(0, keys - 1))
    moment = START + timedelta(days=(key * 7) % 21 + draw(st.sampled_from([0, 0, 0, 30])), minutes=draw(st.integers(0, 1439)))
    return {"order_id": f"k{key}", "amount": float(draw(st.integers(-1, 2))), "at": f"{moment:%Y-%m-%dT%H:%M:00Z}"}


@st.composite
def backlogs(draw) -> list[tuple[list[dict | str], bool]]:
    """Files of rows, each with whether a run comes after it."""
    rows = draw(st.lists(order_rows(draw(st.integers(1, 8))), min_size=1, max_size=24))
    rows += draw(st.lists(st.sampled_from(rows), max_size=12))  # full copies
    rows += draw(st.lists(st.sampled_from([row for row, _ in REFUSED]), max_size=4))
    rows = draw(st.permutations(rows))
    cuts = sorted(draw(st.sets(st.integers(1, len(rows)), max_size=2)) | {0, len(rows)})
    return [(rows[a:b], draw(st.booleans())) for a, b in zip(cuts, cuts[1:], strict=False)]


def compute_batch(rows: list[dict | str]) -> tuple[Counter, Counter, Counts]:
    """The oracle: target and reasons in quarantine as multisets, and the counts."""
    kinds = {json.dumps(row): reason for row, reason in REFUSED}
    refused = {json.dumps(row): kinds.get(json.dumps(row), "amount_not_negative") for row in rows
               if json.dumps(row) in kinds or row["amount"] < 0}
    winners: dict[tuple[str, bool], dict] = {}
    for row in rows:
        if json.dumps(row) not in refused:
            order = row["order_id"], row["at"] >= "2026-01-25"
            best = winners.get(order, row)
            winners[order] = min(best, row, key=lambda r: (-r["amount"], r["at"]))  # order_by: amount desc, at
    target = Counter((r["order_id"], r["amount"], datetime.strptime(r["at"], "%Y-%m-%dT%H:%M:%SZ")) for r in winners.values())
    malformed = rows.count("{broken")
    counts = Counts(read=len(rows), malformed=malformed, parsed=len(rows) - malformed, entered=len(rows) - malformed, written=len(winners), quarantined=len(refused),
                    duplicate=len(rows) - len(winners) - len(refused))
    return target, Counter((reason,) for reason in refused.values()), counts


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck),
          phases=[Phase.explicit, Phase.generate])  # an example takes seconds, and shrinking one hundreds of examples
@given(backlog=backlogs(), bound=st.sampled_from([None, 1]))
def test_law_2_the_result_is_that_of_one_batch_however_the_backlog_is_cut(spark, tmp_path_factory, backlog, bound):
    folder = tmp_path_factory.mktemp("cut")
    try:
        check_cut(spark, folder, backlog, bound)
    finally:
        shutil.rmtree(folder)


def check_cut(spark, folder: Path, backlog: list[tuple[list[dict | str], bool]], bound: int | None) -> None:
    """Land, run where the example says so and at the end, and compare everything with the oracle."""
    shop = Shop(folder, dedup={"order_by": ["amount desc", "at"]}, source={"max_files_per_batch": bound})
    reports = []
    for number, (rows, runs_after) in enumerate(backlog, 1):
        shop.land(*rows)
        if runs_after or number == len(backlog):
            reports.append(shop.run())
    target, reasons, counts = compute_batch([row for rows, _ in backlog for row in rows])
    total = sum((report.counts for report in reports), Counts())
    assert shop.rows(spark) == target
    assert shop.reasons(spark) == reasons
    assert total.model_copy(update={"late_merged": 0, "replaced": 0}) == counts
    conflicting = len({key for key, *_ in target} & {r["order_id"] for rows, _ in backlog for r in rows if isinstance(r, dict)})
    assert all(report.steps[0].conflicts <= conflicting * len(report.steps[0].batches) for report in reports)
