"""Sinks to look at rows while a pipeline is tried out: the console, and a view in memory."""

from weakref import WeakKeyDictionary

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ..spark.columns import col
from ..spark.failure import SPARK_FAILED, explain_delivery
from ..spec import ConsoleSink, MemorySink
from .delivery import Delivery

HIDDEN_VALUE = "(hidden)"

_views: WeakKeyDictionary[SparkSession, dict[str, dict[tuple[str, int], DataFrame]]] = (
    WeakKeyDictionary()
)
"""Session -> view -> (key, batch) -> the rows of that batch, held in memory."""


def deliver(rows: DataFrame, sink: ConsoleSink | MemorySink, delivery: Delivery) -> int:
    """Print or remember a batch; returns how many rows it has. Raises TransientError when its rows cannot be read."""
    return (
        print_rows(rows, sink, delivery)
        if isinstance(sink, ConsoleSink)
        else remember_rows(rows, sink, delivery)
    )


def print_rows(rows: DataFrame, sink: ConsoleSink, delivery: Delivery) -> int:
    """Print the first rows of a batch as Spark shows them, hidden columns masked; returns how many rows the batch has. A batch that comes again is printed again."""
    try:
        count = rows.count()
        shown = (
            rows.select(*[mask(name, delivery.hidden) for name in delivery.columns])._show_string(
                sink.rows, True
            )
            if count
            else ""
        )
    except SPARK_FAILED as error:
        raise explain_delivery(error, "console") from error
    print(
        f"Batch {delivery.batch}: {count:,} row(s)\n{shown}",
        end="\n" if not shown else "",
        flush=True,
    )
    return count


def mask(name: str, hidden: frozenset[str]) -> Column:
    """A column, its values hidden where they may not be shown."""
    return (
        F.when(col(name).isNotNull(), F.lit(HIDDEN_VALUE)).alias(name)
        if name in hidden
        else col(name)
    )


def remember_rows(rows: DataFrame, sink: MemorySink, delivery: Delivery) -> int:
    """Add the user's columns of a batch to a temporary view of the process's own session; returns how many rows the batch has.

    The view holds the batches of one key, each once: another key (another run of a trial, a new checkpoint) starts it anew.
    """
    home = (
        SparkSession.builder.getOrCreate()
    )  # a stream's batches come with a session of their own, whose views nobody else sees
    try:
        frame = rows.select(*[col(c) for c in delivery.columns])
        held = (
            frame._jdf.collectAsList()
        )  # in the JVM: the values never become Python's, so every type stays as it is
        part = DataFrame(home._jsparkSession.createDataFrame(held, frame._jdf.schema()), home)
        batches = {
            known: old
            for known, old in _views.setdefault(home, {}).get(sink.name, {}).items()
            if known[0] == delivery.key
        }
        batches[delivery.key, delivery.batch] = part
        _views[home][sink.name] = batches
        whole = None
        for batch in sorted(batches):
            whole = (
                batches[batch]
                if whole is None
                else whole.unionByName(batches[batch], allowMissingColumns=True)
            )
        whole.createOrReplaceTempView(sink.name)
    except SPARK_FAILED as error:
        raise explain_delivery(error, f"memory {sink.name}") from error
    return len(held)
