"""Sinks to look at rows while a pipeline is tried out: the console, and a view in memory."""

from functools import partial, reduce
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamWriter

from ..spark.columns import col
from ..spark.failure import SPARK_FAILED, explain_delivery
from ..spec import ConsoleSink, MemorySink
from .delivery import Delivery
from .writer import Writer

HIDDEN_VALUE = "(hidden)"

_views: WeakKeyDictionary[SparkSession, dict[str, dict[tuple[str, int], DataFrame]]] = (
    WeakKeyDictionary()
)
"""Session -> view -> (key, batch) -> the rows of that batch, held in memory."""


def mask(name: str, hidden: frozenset[str]) -> Column:
    """A column, its values hidden where they may not be shown."""
    return (
        F.when(col(name).isNotNull(), F.lit(HIDDEN_VALUE)).alias(name)
        if name in hidden
        else col(name)
    )


class ConsoleWriter(Writer[ConsoleSink]):
    """Prints."""

    def deliver(self, rows: DataFrame, delivery: Delivery) -> int:
        """Print the first rows of a batch as Spark shows them, hidden columns masked.

        A batch that comes again is printed again. Raises TransientError when its rows cannot be
        read.
        """
        try:
            count = rows.count()
            shown = rows.select(*[mask(name, delivery.hidden) for name in delivery.columns])
            text = _show(shown, self.sink.rows) if count else ""
        except SPARK_FAILED as error:
            raise explain_delivery(error, "console") from error
        end = "" if text else "\n"
        print(f"Batch {delivery.batch}: {count:,} row(s)\n{text}", end=end, flush=True)
        return count

    def open_stream(
        self, rows: DataFrame, columns: list[str], hidden: frozenset[str]
    ) -> DataStreamWriter:
        """Spark's own console, hidden columns masked."""
        shown = rows.select(*[mask(name, hidden) for name in columns])
        return shown.writeStream.format("console").option("numRows", self.sink.rows)


class MemoryWriter(Writer[MemorySink]):
    """Remembers rows in a temporary view of the process's own session."""

    def deliver(self, rows: DataFrame, delivery: Delivery) -> int:
        """Add the user's columns of a batch to the view.

        The view holds the batches of one key, each once: another key (another run of a trial, a new
        checkpoint) starts it anew. Raises TransientError when its rows cannot be read.
        """
        # A stream's batches come with a session of their own, whose views nobody else sees.
        home = SparkSession.builder.getOrCreate()
        try:
            frame = rows.select(*[col(c) for c in delivery.columns])
            # In the JVM: the values never become Python's, so every type stays as it is.
            held = frame._jdf.collectAsList()
            part = DataFrame(home._jsparkSession.createDataFrame(held, frame._jdf.schema()), home)
            views = _views.setdefault(home, {})
            known = views.get(self.sink.name, {})
            kept = {} if delivery.whole else known
            batches = {place: old for place, old in kept.items() if place[0] == delivery.key}
            batches[delivery.key, delivery.batch] = part
            views[self.sink.name] = batches
            _union(batches).createOrReplaceTempView(self.sink.name)
        except SPARK_FAILED as error:
            raise explain_delivery(error, f"memory {self.sink.name}") from error
        return len(held)


def _union(batches: dict[tuple[str, int], DataFrame]) -> DataFrame:
    """All rows, in order of their batches; a column that came later is NULL in those before."""
    ordered = [batches[place] for place in sorted(batches)]
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), ordered)


def _show(frame: Any, rows: int) -> str:
    """What `DataFrame.show` prints; pyspark has no public name for its text."""
    return frame._show_string(rows, True)
