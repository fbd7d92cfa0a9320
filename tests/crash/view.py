"""What tables, sink and reports of a pipeline hold, for whoever has to compare them."""

from collections import Counter
from pathlib import Path

from delta.tables import DeltaTable
from sluice.report import RunReport, list_reports

from tests.crash.tuesday import Fates, Seen
from tests.spark.shop import Shop


class View:
    """A look at a shop. `sink`: its table in PostgreSQL."""

    def __init__(self, spark: object, shop: Shop, postgres: object, sink: str) -> None:
        self.spark, self.shop, self.postgres, self.sink = spark, shop, postgres, sink

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
            Counter({(row, reason): n for (row, (reason,)), n in refused.items()}),
            sum((Fates(c.read, c.written, c.quarantined, c.duplicate) for c in counts), Fates()),
            self._sink_rows(),
        )

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
