"""One sink at a time, without a pipeline around it."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from sluice.sinks import Delivery, Preparation, writer_of
from sluice.spec import SinkKind


def prepare(
    sink: SinkKind,
    schema: StructType | None = None,
    where: str = "shop.paid.sink",
    folder: Path = Path("."),
) -> None:
    """Prepare a sink for rows of a schema; columns that begin with `_` are the system's."""
    schema = StructType() if schema is None else schema
    own = [name for name in schema.names if not name.startswith("_")]
    session = SparkSession.builder.getOrCreate()  # a test may do this in a thread of its own
    writer_of(sink).prepare(Preparation(session, schema, own, folder, where))


def deliver(rows: DataFrame, sink: SinkKind, delivery: Delivery) -> int:
    """Deliver a batch to a sink; returns how many rows it has."""
    return writer_of(sink).deliver(rows, delivery)
