"""What tables, sink and reports of a pipeline hold, for whoever has to compare them."""

from collections import Counter
from pathlib import Path

from delta.tables import DeltaTable
from sluice.report import RunReport, list_reports

from tests.crash.ends import TableSink, TopicSink, Upstream
from tests.crash.tuesday import Fates, Seen
from tests.spark.shop import Shop


class View:
    """A look at a shop."""

    def __init__(self, spark: object, shop: Shop) -> None:
        self.spark, self.shop = spark, shop

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

    def look(self, sink: TableSink | TopicSink, upstream: Upstream | None) -> Seen:
        """What tables, sink and reports hold; a refused row as it was landed."""
        find = str if upstream is None else upstream.line_of
        rows, refused = (
            self._rows("paid", "order_id", "amount"),
            self._rows("paid__quarantine", "row", "reasons"),
        )
        counts = [report.counts for report in self.reports()]
        return Seen(
            rows,
            Counter({(find(row), reason): n for (row, (reason,)), n in refused.items()}),
            sum((Fates(c.read, c.written, c.quarantined, c.duplicate) for c in counts), Fates()),
            sink.rows(),
        )

    def restore(self, table: str, version: int) -> bool:
        """Put a table back to a version; False where its log was cleaned since, or where it is at
        that version: Delta then commits nothing."""
        first = self.table(table).history().agg({"version": "min"}).collect()[0][0]
        if version < first or version == self.version(table):
            return False
        self.table(table).restoreToVersion(version)
        return True

    def forget(self) -> None:
        """Have Spark read the tables' logs anew."""
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def _rows(self, table: str, *columns: str) -> Counter:
        return self.shop.rows(self.spark, table, columns) if self.has(table) else Counter()
