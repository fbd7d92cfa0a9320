"""A shop whose orders go to a table of PostgreSQL as well, for tests of what people do to it."""

import json
from collections import Counter

from sluice.report import RunReport

from tests.spark.factories import Project

ORDER = {"id": "string", "n": "bigint", "at": "timestamp"}
STEP = {"event_time": {"column": "at"}, "dedup": {"keys": ["id"], "within": "2 days"}}


def order(number: int, n: int | None = None, day: int = 1) -> str:
    n = number if n is None else n
    return json.dumps({"id": f"o{number}", "n": n, "at": f"2026-01-{day:02}T00:00:00Z"}) + "\n"


class Store:
    """A table of PostgreSQL that a step's rows go to, and that can be made to refuse rows."""

    def __init__(self, postgres, name: str) -> None:
        self.postgres, self.name = postgres, name
        self.sink = postgres.as_sink(name)

    def run(self, sql: str) -> None:
        with self.postgres.connect() as connection:
            connection.execute(sql)

    def refuse_above(self, limit: int) -> None:
        self.run(f"ALTER TABLE {self.name} ADD CONSTRAINT small CHECK (n <= {limit}) NOT VALID")

    def accept(self) -> None:
        self.run(f"ALTER TABLE {self.name} DROP CONSTRAINT small")

    @property
    def rows(self) -> Counter:
        with self.postgres.connect() as connection:
            return Counter(connection.execute(f"SELECT id, n FROM {self.name}").fetchall())


def write_to(shop: Project, *sinks: dict) -> None:
    shop.step["sink"] = [{"kind": "delta"}, *sinks]


def lack(report: RunReport) -> tuple[int, int]:
    """Batches and rows that the one sink lacks."""
    (found,) = report.steps[0].undelivered
    return found.batches, found.rows


def assert_followed(shop: Project, store: Store, *rows: tuple[str, int]) -> None:
    held, wanted = store.rows, Counter(rows)
    assert (held, shop.rows("id", "n")) == (wanted, wanted)
