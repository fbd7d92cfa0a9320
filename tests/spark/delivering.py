"""One sink at a time, without a pipeline around it."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from sluice.sinks import Delivery, Preparation, writer_of
from sluice.spec import SinkKind


def prepare(sink: SinkKind, schema: StructType | None = None, folder: Path = Path(".")) -> None:
    """Prepare a sink for rows of a schema; columns that begin with `_` are the system's."""
    schema = StructType() if schema is None else schema
    own = [name for name in schema.names if not name.startswith("_")]
    session = SparkSession.getActiveSession()
    writer_of(sink).prepare(Preparation(session, schema, own, folder, "shop.paid.sink"))


def deliver(rows: DataFrame, sink: SinkKind, delivery: Delivery) -> int:
    """Deliver a batch to a sink; returns how many rows it has."""
    return writer_of(sink).deliver(rows, delivery)
