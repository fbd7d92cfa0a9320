"""Law 2 by property: however a backlog is cut, tables and counts are those of a plain computation.

An example is the history of a few keys, cut over the files of a backlog in its own way. One backlog
holds one of them, or many that share nothing but the files. Keys have a column of every type. Rows
of a key lie just under, exactly and just over `within` apart, tie in `order_by`, and have NULLs.
`SLUICE_EXAMPLES` says how many histories are drawn.
"""

import json
import math
import os
import random
import shutil
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sluice.report import Counts

from .shop import RULES, Shop

TOGETHER = 50
"""Histories in a backlog that holds many."""
KINDS = 2
"""Kinds of steps: with `order_by` and without."""
EXAMPLES = int(os.environ.get("SLUICE_EXAMPLES", "306"))
BACKLOGS = math.ceil(EXAMPLES / (KINDS * (1 + TOGETHER)))
START = datetime(2026, 1, 1, tzinfo=UTC)
WITHIN, TICK = timedelta(days=2), timedelta(microseconds=1)
KEYS = {
    "text": "string",
    "small": "int",
    "big": "bigint",
    "ratio": "double",
    "price": "decimal(20,2)",
    "day": "date",
    "moment": "timestamp",
    "flag": "boolean",
    "code": "binary",
}
VALUES = {"amount": "double", "note": "string", "number": "bigint"}
SCHEMA = {**KEYS, **VALUES, "at": "timestamp"}
ORDERS = [["amount desc", "at"], ["note", "number desc"], ["at desc"], ["number"]]
"""What `order_by` may be; each of them leaves ties."""
FATES = ("read", "malformed", "written", "quarantined", "duplicate", "late")


def encode(data: bytes) -> str:
    return b64encode(data).decode()


BASE = {
    "text": "k",
    "small": 0,
    "big": 2**53,
    "ratio": 0.0,
    "price": 1.5,
    "day": "2026-01-01",
    "moment": "2026-01-01T00:00:00.000000Z",
    "flag": False,
    "code": encode(b"\x00"),
}
OTHERS = {
    "text": ["", "k ", "K", "k\u0301"],
    "small": [-1, 2**31 - 1],
    "big": [2**53 + 1, -(2**63)],
    "ratio": [math.nan, 5e-324],
    "price": [1.51, -1.5],
    "day": ["2026-01-02", "1969-12-31"],
    "moment": ["2026-01-01T00:00:00.000001Z", "1969-12-31T23:59:59.999999Z"],
    "flag": [True],
    "code": [encode(b""), encode(b"\x00\x00"), encode(b"\xff")],
}
"""Values that make another key than BASE does, each in one column alone."""


def write_time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}"


def make_key(rng: random.Random, history: int) -> dict:
    """A key that differs from the history's first one in one column, or in none."""
    column = rng.choice([None, *KEYS])
    key = {**BASE, **({column: rng.choice(OTHERS[column])} if column else {})}
    return {**key, "text": f"{history}{key['text']}"}


def make_times(rng: random.Random) -> list[list[datetime]]:
    """Times of a key in groups: those of one span `within` at most; groups lie farther apart."""
    moment, groups = START + timedelta(minutes=rng.randrange(30_000)), []
    for _ in range(rng.randint(1, 3)):
        span = rng.choice([WITHIN, WITHIN - TICK, timedelta(hours=3)])
        inside = [moment + span * rng.random() for _ in range(rng.randint(0, 3))]
        groups.append([moment, *rng.choices([moment, moment + span, *inside], k=3)])
        moment = max(groups[-1]) + WITHIN + rng.choice([TICK, TICK, timedelta(days=9)])
    return groups


def make_rows(rng: random.Random, history: int) -> list[dict]:
    """All rows of one key: values from few, so that they tie; an amount below 0 breaks a rule."""
    key, rows = make_key(rng, history), []
    for group in make_times(rng):
        for moment in group:
            values = {
                "amount": rng.choice([None, -1.0, 0.0, 1.0, 1.0, 2.0]),
                "note": rng.choice([None, "a", "b"]),
                "number": rng.choice([None, 1, 2]),
            }
            zero = {"ratio": rng.choice([0.0, -0.0])} if key["ratio"] == 0 else {}
            rows.append({**key, **zero, **values, "at": write_time(moment)})
    return rows


def make_refused(rng: random.Random, history: int) -> dict | str:
    """A record that must be refused: broken, or without a key, a time or a time that can be."""
    row = {**make_key(rng, history), "amount": 1.0, "at": write_time(START)}
    return rng.choice(
        [
            "{broken",
            {**row, "at": None},
            {**row, "at": "2099-01-01T00:00:00Z"},
            {**row, rng.choice(list(KEYS)): None},
        ]
    )


def make_history(rng: random.Random, history: int, files: int) -> list[list[str]]:
    """The lines of one history, file by file: orders, some of them again, and refused ones."""
    keys = {}
    for _ in range(rng.randint(1, 4)):
        rows = make_rows(rng, history)
        keys.setdefault(identify(rows[0]), rows)
    rows = [row for group in keys.values() for row in group]
    rows += rng.choices(rows, k=rng.randint(0, 12))  # full copies
    rows += [make_refused(rng, history) for _ in range(rng.randint(0, 4))]
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    rng.shuffle(lines)
    cuts = sorted(rng.randint(0, len(lines)) for _ in range(files - 1))
    return [lines[a:b] for a, b in pairwise([0, *cuts, len(lines)])]


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


def identify(row: dict) -> tuple:
    """A key as a value that can be compared: NaN is NaN, and zero has no sign."""
    return tuple("nan" if row[name] != row[name] else row[name] for name in KEYS)


def find_reason(line: str) -> str | None:
    """Why a line is refused; None for one that is not."""
    if line == "{broken":
        return "malformed"
    row = json.loads(line)
    if any(row[name] is None for name in KEYS):
        return "null_key"
    if row["at"] is None:
        return "null_time"
    if row["at"] > "2099":
        return "future_time"
    return "amount_not_negative" if (row["amount"] or 0) < 0 else None


def rank(row: dict, order_by: list[str]) -> tuple:
    """Where a row stands: NULL is the first of what ascends and the last of what descends."""
    ranks = []
    for term in order_by:
        name, _, descending = term.partition(" ")
        value = row[name]
        if name == "at" and value is not None:
            value = (datetime.fromisoformat(value) - START) // TICK
        if descending:
            ranks.append((value is None, 0 if value is None else -value))
        else:
            ranks.append((value is not None, "" if value is None else value))
    return tuple(ranks)


def group_rows(rows: Iterable[dict], apart: bool) -> list[list[dict]]:
    """Rows of which one stays. `apart`: a gap of more than `within` begins another such group."""
    by_key = defaultdict(list)
    for row in rows:
        by_key[identify(row)].append(row)
    groups = []
    for copies in by_key.values():
        copies.sort(key=lambda row: row["at"])
        groups.append([copies[0]])
        for earlier, row in pairwise(copies):
            gap = datetime.fromisoformat(row["at"]) - datetime.fromisoformat(earlier["at"])
            if apart and gap > WITHIN:
                groups.append([])
            groups[-1].append(row)
    return groups


def say(row: dict) -> tuple:
    """What a row says beside its key."""
    return *(row[name] for name in VALUES), row["at"]


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
    )
    def check(backlog, bound, order_by):
        folder = tmp_path_factory.mktemp("cut")
        try:
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


def count_differing(groups: list[list[dict]], exact: bool) -> int:
    """Of how many groups the rows differ. `exact`: also where only the sign of a zero does."""
    texts = (
        {(say(row), str(row["ratio"]) if exact else None) for row in group} for group in groups
    )
    return sum(len(said) > 1 for said in texts)
