"""Seeded orders: the same seed gives the same bytes.

A day is a folder of JSON-lines files, some of them gzipped. What real landing folders hold is in
them: copies within a file, in another file and on the next day; rows out of order and days late;
lines that are not JSON; rows that break rules, have no key or no time; a field nobody declared; and
one order from the year 2099.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from .landing import pack

ROWS = 100_000
DAYS = 3
FIRST_DAY = datetime(2025, 6, 1, tzinfo=UTC)
FILES_A_DAY = 6
LATE_BY = timedelta(days=4)
_COUNTRIES = ("DE", "FR", "GB", "US", "NL", "AT")
_STATUSES = ("new", "paid", "shipped", "returned")


@dataclass(frozen=True)
class LandingFile:
    """One file to land. `lines`: JSON texts without line ends."""

    name: str
    lines: list[str]

    def encode(self) -> bytes:
        """The bytes on disk."""
        return pack(self.name, "\n".join(self.lines) + "\n")


def generate_days(seed: int = 7, rows: int = ROWS) -> Iterator[tuple[str, list[LandingFile]]]:
    """Yield (day, files) for each day; all files together hold exactly `rows` lines."""
    rng = random.Random(seed)  # noqa: S311 (made to be repeatable, not secret)
    yesterday: list[str] = []
    for day in range(DAYS):
        share = rows // DAYS + (rows % DAYS if day == DAYS - 1 else 0)
        slots = _make_day(rng, day, share, yesterday)
        yesterday = [line for lines in slots for line in lines]
        start = FIRST_DAY + timedelta(days=day)
        yield (
            f"{start:%Y-%m-%d}",
            [
                LandingFile(
                    f"orders-{24 // FILES_A_DAY * i:02}.jsonl{'.gz' if i % 3 == 2 else ''}", lines
                )
                for i, lines in enumerate(slots)
            ],
        )


def _make_day(rng: random.Random, day: int, rows: int, yesterday: list[str]) -> list[list[str]]:
    """The lines of each file of a day, shuffled."""
    copies = max(rows // 100, 1)
    odd = _odd_lines(rng, day)
    late = [_order(rng, f"o-{day}-late-{n}", day, -LATE_BY) for n in range(max(rows // 1000, 1))]
    fresh_rows = rows - len(odd) - len(late) - copies * (3 if yesterday else 2)
    orders = [_order(rng, f"o-{day}-{n:06}", day) for n in range(fresh_rows)]
    slots: list[list[str]] = [[] for _ in range(FILES_A_DAY)]
    for order in orders:
        hour = int(order["ordered_at"][11:13])
        delayed = rng.random() < 0.02  # the till was offline: its rows come with the next file
        slots[min(hour * FILES_A_DAY // 24 + delayed, FILES_A_DAY - 1)].append(json.dumps(order))
    for line in (
        [json.dumps(order) for order in late]
        + odd
        + (rng.sample(yesterday, copies) if yesterday else [])
    ):
        rng.choice(slots).append(line)
    within = [(slot, line) for slot, line in _sample(rng, slots, copies)]
    across = [
        ((slot + 1 + rng.randrange(FILES_A_DAY - 1)) % FILES_A_DAY, line)
        for slot, line in _sample(rng, slots, copies)
    ]
    for slot, line in within + across:
        slots[slot].append(line)
    for lines in slots:
        rng.shuffle(lines)
    return slots


def _sample(rng: random.Random, slots: list[list[str]], count: int) -> list[tuple[int, str]]:
    """Lines to copy, each with the file it is in."""
    return rng.sample(
        [(number, line) for number, lines in enumerate(slots) for line in lines], count
    )


def _order(rng: random.Random, order_id: str, day: int, shift: timedelta = timedelta(0)) -> dict:
    """One order; a few in a thousand break a rule or carry a field nobody declared."""
    at = FIRST_DAY + timedelta(days=day, milliseconds=rng.randrange(86_400_000)) + shift
    items: list[dict[str, Any]] = [
        {
            "sku": f"sku-{rng.randrange(500):03}",
            "quantity": rng.randint(1, 4),
            "price": rng.randint(100, 9000) / 100,
        }
        for _ in range(rng.randint(1, 3))
    ]
    customer = rng.randrange(20_000)
    order = {
        "order_id": order_id,
        "ordered_at": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "status": rng.choice(_STATUSES),
        "currency": rng.choice(("EUR", "EUR", "GBP", "USD")),
        "amount": round(sum(item["quantity"] * item["price"] for item in items), 2),
        "customer": {
            "id": f"c-{customer:05}",
            "country": rng.choice(_COUNTRIES),
            "email": f"c{customer}@example.com",
        },
        "items": items,
    }
    return _spoil(rng, order)


def _spoil(rng: random.Random, order: dict) -> dict:
    chance = rng.random()
    if chance < 0.004:
        order["amount"] = -order["amount"]
    elif chance < 0.005:
        order["items"] = []
    elif chance < 0.006:
        order["status"] = "lost"
    elif chance < 0.009:
        order["currency"] = "XXX"
    elif chance < 0.012:
        order["customer"]["email"] = "unknown"
    elif chance < 0.03:
        order["coupon"] = f"SPRING-{rng.randrange(100)}"
    return order


def _odd_lines(rng: random.Random, day: int) -> list[str]:
    """Lines that no rule can judge: not JSON, of the wrong type, without key or time; on the second
    day one from 2099."""
    whole = [_order(rng, f"o-{day}-odd-{n}", day) for n in range(16)]
    lines = [
        json.dumps(order)[: 40 + n] for n, order in enumerate(whole[:6])
    ]  # the connection broke
    lines += [f"# exported by till {day}-{n}" for n in range(2)]
    lines += [json.dumps(order | {"amount": "a lot"}) for order in whole[6:8]]
    lines += [json.dumps(order | {"order_id": None}) for order in whole[8:11]]
    lines += [json.dumps(order | {"ordered_at": None}) for order in whole[11:14]]
    if day == 1:
        lines.append(json.dumps(whole[14] | {"ordered_at": "2099-12-31T23:59:59.000Z"}))
    return lines


def land_day(landing: Path, day: str, files: list[LandingFile]) -> None:
    """Put a day's files into `landing/<day>` in one step, so that no run sees half a day."""
    unfinished = landing / f".{day}"
    unfinished.mkdir(parents=True)
    for file in files:
        (unfinished / file.name).write_bytes(file.encode())
    unfinished.rename(landing / day)
