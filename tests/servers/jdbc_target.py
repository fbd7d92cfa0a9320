"""A JDBC sink under test, and a client that looks at what it wrote."""

import time
from collections import Counter
from pathlib import Path

from sluice.sinks.delivery import Delivery
from sluice.spec import JdbcSink

from tests.spark.delivering import deliver, prepare


class Target:
    """A sink, the table it writes, and a client that looks at it."""

    def __init__(self, spark, postgres, table: str, **sink) -> None:
        self.spark, self.postgres, self.table = spark, postgres, table
        given = (
            {"url": postgres.jdbc_url, "user": postgres.user, "password": postgres.password}
            if "connection" not in sink
            else {}
        )
        self.sink = JdbcSink(**{"kind": "jdbc", "table": table, **given, **sink})

    def prepare(self, rows) -> None:
        prepare(self.sink, rows.schema)

    def deliver(self, rows, batch: int = 0, key: str = "sluice/shop/orders/g1") -> int:
        return deliver(
            rows,
            self.sink,
            Delivery(
                key,
                batch,
                [name for name in rows.columns if not name.startswith("_")],
                Path("."),
                "/nowhere",
            ),
        )

    def write(self, rows, batch: int = 0) -> int:
        self.prepare(rows)
        return self.deliver(rows, batch)

    def ask(self, sql: str, *values) -> list[tuple]:
        with self.postgres.connect() as client:
            return client.execute(sql, values or None).fetchall()

    def run(self, sql: str) -> None:
        with self.postgres.connect() as client:
            client.execute(sql)

    def held(self, columns: str = "id, note") -> Counter:
        return Counter(self.ask(f"SELECT {columns} FROM {self.table}"))

    def staging(self) -> list[str]:
        return [
            name
            for [name] in self.ask(
                "SELECT tablename FROM pg_tables WHERE tablename LIKE 'sluice_stage%'"
            )
        ]

    def wait_until_blocked(self) -> int:
        """The server process of a delivery that waits for another's lock.

        Writers of one staging table wait for each other too, for a moment, as they extend it.
        """
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = self.ask(
                "SELECT pid FROM pg_stat_activity "
                "WHERE application_name = 'sluice' AND wait_event_type = 'Lock' "
                "AND wait_event <> 'extend'"
            )
            if found:
                return found[0][0]
            time.sleep(0.02)
        raise AssertionError("no delivery waits")


def orders(spark, size: int = 3, note: str = "n"):
    """Rows (id bigint, note text)."""
    return spark.range(size).selectExpr("id", f"concat('{note}', id) AS note")


def expected(size: int = 3, note: str = "n") -> Counter:
    return Counter((number, f"{note}{number}") for number in range(size))
