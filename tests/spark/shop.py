"""A small shop whose orders the law tests land, run and compare.

YAML, JSON lines, and tables as multisets.
"""

import json
import os
import time
from collections import Counter
from pathlib import Path

import yaml
from sluice.report import RunReport
from sluice.runner import run_pipeline
from sluice.spec import RunRequest

from tests.delta_rows import read_rows

RULES = [
    {
        "type": "expect_column_values_to_not_be_null",
        "kwargs": {"column": "order_id"},
        "on_fail": "warn",
    },
    {
        "type": "expect_column_values_to_be_between",
        "kwargs": {"column": "amount", "min_value": 0},
        "on_fail": "quarantine",
        "name": "amount_not_negative",
    },
]

WINDOWS = """
from pyspark.sql import functions as F
def sums(rows):
    timed = rows.withWatermark("at", "0 seconds").groupBy(F.window("at", "1 hour"))
    sums = timed.agg(F.sum("amount").alias("amount"), F.first("_row").alias("_row"))
    return sums.select(F.col("window.start").alias("at"), "amount", "_row")
"""
"""A transform that gathers rows: sums of an hour, given when the watermark has passed."""


def order(number: int, day: int = 1, amount: float = 1.0, **more: object) -> dict:
    """One order; `day` counts days of January 2026."""
    return {
        "order_id": f"o{number}",
        "amount": amount,
        "at": f"2026-01-{day:02d}T{number % 24:02d}:00:00Z",
        **more,
    }


class Shop:
    """A pipeline `orders` with its landing folder and root below one folder."""

    def __init__(
        self,
        folder: Path,
        *,
        dedup: dict | None = None,
        rules: list[dict] | None = None,
        source: dict | None = None,
        **step: object,
    ) -> None:
        self.folder, self.landing, self.root, self.landed = (
            folder,
            folder / "landing",
            folder / "root",
            0,
        )
        self.clock = 0.0
        self.landing.mkdir(parents=True)
        fields = {"order_id": "string", "amount": "double", "at": "timestamp"}
        self.step = {
            "name": "paid",
            "source": {
                "kind": "files",
                "path": str(self.landing),
                "format": "json",
                "schema": fields,
                **(source or {}),
            },
            "event_time": {"column": "at"},
            "dedup": {"keys": ["order_id"], "within": "2 days", **(dedup or {})},
            "rules": RULES if rules is None else rules,
            **step,
        }
        self.behind: list[dict] = []
        self.yaml = folder / "orders.yaml"
        self.write()

    def write(self, **pipeline: object) -> None:
        """Write the YAML (again)."""
        self.yaml.write_text(
            yaml.safe_dump(
                {
                    "name": "orders",
                    **pipeline,
                    "steps": [
                        {k: v for k, v in self.step.items() if v is not None},
                        *self.behind,
                    ],
                }
            )
        )

    def land(self, *orders: dict | str) -> Path:
        """Land one file of orders (or raw lines); files are read in the order they landed."""
        self.landed += 1
        path = self.landing / f"{self.landed:04d}.json"
        path.write_text(
            "".join((o if isinstance(o, str) else json.dumps(o)) + "\n" for o in orders)
        )
        # Spark sorts by the millisecond: files that land within one have no order.
        self.clock = max(time.time(), self.clock + 0.01)
        os.utime(path, (self.clock, self.clock))
        return path

    def run(self, run_id: str | None = None, **request: object) -> RunReport:
        """Run once; every report of a law test balances."""
        report = run_pipeline(
            RunRequest(
                pipeline=str(self.yaml),
                root=str(self.root),
                **({"run_id": run_id} if run_id else {}),
                **request,
            )
        )
        report.check()
        return report

    def rows(
        self, spark, table: str = "paid", columns: tuple[str, ...] = ("order_id", "amount", "at")
    ) -> Counter:
        """A table as a multiset."""
        path = self.root / "tables" / "orders" / table
        rows = read_rows(path, *columns) if path.exists() else []
        return Counter(tuple(tuple(v) if isinstance(v, list) else v for v in r) for r in rows)

    def ids(self, spark, table: str = "paid") -> list[str]:
        """Sorted order ids of a table."""
        return sorted(r[0] for r in self.rows(spark, table, ("order_id",)).elements())

    def reasons(self, spark) -> Counter:
        """The quarantine table as a multiset of reasons."""
        return Counter(
            tuple(r[0]) for r in self.rows(spark, "paid__quarantine", ("reasons",)).elements()
        )
