"""What tables, sink and reports of a pipeline hold, for whoever has to compare them."""

import json
import shutil
from collections import Counter
from pathlib import Path

from delta.tables import DeltaTable
from sluice.report import RunReport, list_reports

from tests.crash.tuesday import Fates, Seen
from tests.spark.shop import Shop

FACTORS = (1, 3)
"""By which the transform may multiply amounts."""


class Upstream:
    """A Delta table of orders that others write and the pipeline reads; a commit is what a file is
    elsewhere."""

    def __init__(self, spark: object, folder: Path) -> None:
        self.spark, self.path, self._lines = spark, str(folder), {}

    def add(self, lines: list[str]) -> None:
        """Commit some orders."""
        rows = [json.loads(line) for line in lines]
        for row, line in zip(rows, lines, strict=True):
            for factor in FACTORS:
                self._lines[row.get("order_id"), row["amount"] * factor] = line
        values = [(row.get("order_id"), row["amount"], row["at"]) for row in rows]
        frame = self.spark.createDataFrame(values, "order_id string, amount double, at string")
        frame = frame.withColumn("at", frame.at.cast("timestamp")).coalesce(1)
        frame.write.format("delta").mode("append").save(self.path)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path)

    def line_of(self, row: str) -> str:
        """The line that a row was landed as: of a table what the transform made of it is kept."""
        found = json.loads(row)
        return self._lines[found.get("order_id"), found["amount"]]


class View:
    """A look at a shop. `sink`: its table in PostgreSQL."""

    def __init__(self, spark: object, shop: Shop, postgres: object, sink: str) -> None:
        self.spark, self.shop, self.postgres, self.sink = spark, shop, postgres, sink
        self.upstream: Upstream | None = None

    @property
    def path(self) -> Path:
        return self.shop.root / "tables" / "orders" / "paid"

    def has(self, table: str) -> bool:
        """Whether there is a table."""
        return any((self.path.with_name(table) / "_delta_log").glob("*.json"))

    def table(self, name: str) -> DeltaTable:
        """A table of the pipeline."""
        return DeltaTable.forPath(self.spark, str(self.path.with_name(name)))

    def version(self, table: str = "paid") -> int:
        log = self.path.with_name(table) / "_delta_log"
        return max(int(p.stem) for p in log.glob("*.json"))

    def reports(self) -> list[RunReport]:
        return list_reports(self.shop.root / "reports" / "orders")

    def look(self) -> Seen:
        rows, refused = (
            self._rows("paid", "order_id", "amount"),
            self._rows("paid__quarantine", "row", "reasons"),
        )
        counts = [report.counts for report in self.reports()]
        return Seen(
            rows,
            Counter({(self._line(row), reason): n for (row, (reason,)), n in refused.items()}),
            sum((Fates(c.read, c.written, c.quarantined, c.duplicate) for c in counts), Fates()),
            self._sink_rows(),
        )

    def _line(self, row: str) -> str:
        """A refused row as it was landed."""
        return row if self.upstream is None else self.upstream.line_of(row)

    def restore(self, table: str, version: int) -> bool:
        """Put a table back to a version; False where its log was cleaned since."""
        first = self.table(table).history().agg({"version": "min"}).collect()[0][0]
        if version < first:
            return False
        self.table(table).restoreToVersion(version)
        return True

    def forget(self) -> None:
        """Have Spark read the tables' logs anew."""
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def _rows(self, table: str, *columns: str) -> Counter:
        return self.shop.rows(self.spark, table, columns) if self.has(table) else Counter()

    def _sink_rows(self) -> Counter:
        return Counter(self.ask("SELECT order_id, amount FROM {sink}") if self.has_sink() else [])

    def has_sink(self) -> bool:
        return self.ask(f"SELECT to_regclass('{self.sink}')")[0][0] is not None

    def ask(self, sql: str) -> list[tuple]:
        with self.postgres.connect() as connection:
            done = connection.execute(sql.format(sink=self.sink))
            return done.fetchall() if done.description else []
