"""Histories of a few keys, made at random, and what plain Python says they come to.

Keys have a column of every type. Rows of a key lie just under, exactly and just over `within`
apart, tie in `order_by`, and have NULLs; full copies and rows that must be refused are among them.
"""

import json
import math
import random
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

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


def count_differing(groups: list[list[dict]], exact: bool) -> int:
    """Of how many groups the rows differ. `exact`: also where only the sign of a zero does."""
    texts = (
        {(say(row), str(row["ratio"]) if exact else None) for row in group} for group in groups
    )
    return sum(len(said) > 1 for said in texts)
