"""Daily retail files, and what plain Python counts in them.

They are the real ones where these are given, else seeded ones in their shape.
"""

import csv
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.shared_data import find_shared

HEADER = "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country"


def find_real_files() -> list[Path]:
    """The real files by day; none where they are not there."""
    folder = find_shared("retail")
    return sorted(folder.glob("*.csv")) if folder else []


def generate_files(folder: Path, days: int, rows: int) -> list[Path]:
    """Seeded files, a day each.

    1 % of line items are repeated, a quarter have no customer, every third day has a negative price
    and its copy, and each day has copies of the day before.
    """
    folder.mkdir(parents=True)
    rng, before = random.Random(11), []
    for day in range(days):
        date = f"2011-{1 + day // 28:02d}-{1 + day % 28:02d}"
        lines = [
            f"{536000 + day * 50 + n // 30},{rng.randrange(10000, 99999)},"
            f"THING {rng.randrange(3000)},{rng.randrange(1, 50)},"
            f"{date} {n % 10 + 8:02d}:{n % 60:02d}:00,{rng.randrange(1, 2000) / 100},"
            f"{'' if rng.random() < 0.25 else f'{rng.randrange(12000, 18000)}.0'},United Kingdom"
            for n in range(rows)
        ]
        lines += rng.sample(lines, max(1, rows // 100)) + before[:3]
        if day % 3 == 0:
            lines += [
                f"A{563185 + day},B,Adjust bad debt,1,{date} 14:51:00,-11062.06,,United Kingdom"
            ] * 2
        before = lines
        (folder / f"{date}.csv").write_text("\n".join([HEADER, *lines]) + "\n")
    return sorted(folder.glob("*.csv"))


@dataclass(frozen=True)
class Expected:
    """What a few lines of Python find: rows by fate, and the kept items as a multiset of values."""

    read: int
    written: int
    quarantined: int
    duplicate: int
    without_customer: int
    items: Counter


def count_by_hand(files: list[Path]) -> Expected:
    """Every line item once; a negative price is refused, its copies are duplicates."""
    kept: set[tuple] = set()
    refused: set[tuple] = set()
    read = without_customer = 0
    for file in files:
        with file.open(encoding="utf-8", newline="") as handle:
            for row in csv.DictReader(handle):
                read += 1
                without_customer += not row["CustomerID"]
                (refused if float(row["UnitPrice"]) < 0 else kept).add(tuple(row.values()))
    return Expected(
        read,
        len(kept),
        len(refused),
        read - len(kept) - len(refused),
        without_customer,
        Counter(kept),
    )
