"""Law 2 by property: whatever the times, the copies, the lateness and the cuts, the tables and the counts are those of a plain batch computation.

An example is the history of a few keys, cut over the files of a backlog in its own way. One backlog holds one of them, or many that share nothing but the files.
`SLUICE_EXAMPLES` says how many are drawn.
"""

import json
import math
import os
import random
import shutil
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sluice.report import Counts

from .shop import Shop

TOGETHER = 50
"""Histories in a backlog that holds many."""
BACKLOGS = math.ceil(int(os.environ.get("SLUICE_EXAMPLES", "153")) / (1 + TOGETHER))
START = datetime(2026, 1, 1, tzinfo=UTC)
POISON = {"order_id": "k0", "amount": 1.0, "at": "2099-01-01T00:00:00Z"}
UNTIMED = {"order_id": "k0", "amount": 1.0, "at": None}
KEYLESS = {"order_id": None, "amount": 1.0, "at": "2026-01-03T00:00:00Z"}
REFUSED = [
    (POISON, "future_time"),
    (UNTIMED, "null_time"),
    (KEYLESS, "null_key"),
    ("{broken", "malformed"),
]


def make_order(rng: random.Random, history: int, keys: int) -> dict:
    """One order; copies of a key lie within a day of its own day; its number is used again a month later, for another order; amounts below 0 break a rule."""
    key = rng.randrange(keys)
    moment = START + timedelta(
        days=(key * 7) % 21 + rng.choice([0, 0, 0, 30]), minutes=rng.randrange(1440)
    )
    return {
        "order_id": f"{history}k{key}",
        "amount": float(rng.randint(-1, 2)),
        "at": f"{moment:%Y-%m-%dT%H:%M:00Z}",
    }


def make_history(rng: random.Random, history: int, files: int) -> list[list[dict | str]]:
    """The rows of one history, file by file: orders, some of them again, some that must be refused."""
    keys = rng.randint(1, 8)
    rows = [make_order(rng, history, keys) for _ in range(rng.randint(1, 24))]
    rows += rng.choices(rows, k=rng.randint(0, 12))  # full copies
    rows += rng.choices([row for row, _ in REFUSED], k=rng.randint(0, 4))
    rng.shuffle(rows)
    cuts = sorted(rng.randint(0, len(rows)) for _ in range(files - 1))
    return [rows[a:b] for a, b in pairwise([0, *cuts, len(rows)])]


@st.composite
def backlogs(draw, histories: int) -> list[tuple[list[dict | str], bool]]:
    """Files of rows, each with whether a run comes after it."""
    files = draw(st.integers(1, 3))
    rng = draw(
        st.randoms(use_true_random=histories > 1)
    )  # more draws than hypothesis keeps account of
    rows = [make_history(rng, history, files) for history in range(histories)]
    return [
        ([row for history in rows for row in history[file]], draw(st.booleans()))
        for file in range(files)
    ]


def compute_batch(rows: list[dict | str]) -> tuple[Counter, Counter, Counts, int]:
    """The oracle: target and reasons in quarantine as multisets, the counts, and of how many rows of the target a copy said something else."""
    kinds = {json.dumps(row): reason for row, reason in REFUSED}
    refused = {
        json.dumps(row): kinds.get(json.dumps(row), "amount_not_negative")
        for row in rows
        if json.dumps(row) in kinds or row["amount"] < 0
    }
    winners, contents = {}, defaultdict(set)
    for row in rows:
        if json.dumps(row) not in refused:
            order = row["order_id"], row["at"] >= "2026-01-25"
            best = winners.get(order, row)
            winners[order] = min(
                best, row, key=lambda r: (-r["amount"], r["at"])
            )  # order_by: amount desc, at
            contents[order].add(json.dumps(row))
    target = Counter(
        (r["order_id"], r["amount"], datetime.strptime(r["at"], "%Y-%m-%dT%H:%M:%SZ"))
        for r in winners.values()
    )
    malformed = rows.count("{broken")
    counts = Counts(
        read=len(rows),
        malformed=malformed,
        parsed=len(rows) - malformed,
        entered=len(rows) - malformed,
        written=len(winners),
        quarantined=len(refused),
        duplicate=len(rows) - len(winners) - len(refused),
    )
    return (
        target,
        Counter((reason,) for reason in refused.values()),
        counts,
        sum(len(said) > 1 for said in contents.values()),
    )


@pytest.mark.timeout(86400)
@pytest.mark.parametrize("histories", [1, TOGETHER])
def test_law_2_the_result_is_that_of_one_batch_however_the_backlog_is_cut(
    spark, tmp_path_factory, histories
):
    @settings(
        max_examples=BACKLOGS,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )  # a backlog takes seconds, and shrinking one hundreds of backlogs
    @given(backlog=backlogs(histories), bound=st.sampled_from([None, 1]))
    def check(backlog, bound):
        folder = tmp_path_factory.mktemp("cut")
        try:
            check_cut(spark, folder, backlog, bound)
        finally:
            shutil.rmtree(folder)

    check()


def check_cut(
    spark, folder: Path, backlog: list[tuple[list[dict | str], bool]], bound: int | None
) -> None:
    """Land, run where the example says so and at the end, and compare everything with the oracle."""
    shop = Shop(
        folder, dedup={"order_by": ["amount desc", "at"]}, source={"max_files_per_batch": bound}
    )
    reports = []
    for number, (rows, runs_after) in enumerate(backlog, 1):
        shop.land(*rows)
        if runs_after or number == len(backlog):
            reports.append(shop.run())
    target, reasons, counts, differing = compute_batch([row for rows, _ in backlog for row in rows])
    total = sum((report.counts for report in reports), Counts())
    assert shop.rows(spark) == target
    assert shop.reasons(spark) == reasons
    assert total.model_copy(update={"late_merged": 0, "replaced": 0}) == counts
    conflicts = [batch.conflicts for report in reports for batch in report.steps[0].batches]
    assert max(conflicts) <= differing <= sum(conflicts), (
        "each is reported, and once a batch at most"
    )
