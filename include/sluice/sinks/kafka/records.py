"""Rows as records of a topic, so that a reader can tell a record that was sent again from one that
is equal to it.

Each record has two headers of ours: `sluice.batch` names its batch for ever, `sluice.position` its
place among the batch's rows. The place does not depend on how the rows lie in partitions or on
their order, nor on what the sink makes of them: it is a hash of the row's columns and a running
number among those of the same hash, in order of what they say. So a batch that is sent again sends
the same pairs, also when the sink's `value` was changed meanwhile or a column came in, and no two
records of a batch share one.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from ...spark.columns import col
from ...spec import KafkaSink
from ..delivery import Delivery
from ..rows import JSON, comparable

BATCH, POSITION = "sluice.batch", "sluice.position"


def build_records(rows: DataFrame, sink: KafkaSink, delivery: Delivery) -> DataFrame:
    """Columns topic, key, value and headers, as Spark's Kafka sink takes them."""
    own = {
        f"header{number}": _as_bytes(rows, name)
        for number, name in enumerate(sink.headers.values())
    }
    said = {
        f"column{number}": comparable(rows, name)
        for number, name in enumerate(sorted(delivery.columns))
    }
    sent = rows.select(
        *_record(rows, sink, delivery.columns),
        *(c.alias(name) for name, c in {**own, **said}.items()),
        # It passes over NULLs, so a column that comes in changes no hash, and rows may share one:
        # what they say decides their order, and rows that say the same may change places.
        F.xxhash64(*said.values()).alias("hash"),
    )
    order = [*said, *own, "topic", "key", "value"]
    number = F.row_number().over(Window.partitionBy("hash").orderBy(*order))
    position = F.concat_ws("-", F.lpad(F.lower(F.hex("hash")), 16, "0"), number)
    headers = [
        *zip(sink.headers, map(F.col, own), strict=True),
        (BATCH, F.lit(delivery.token).cast("binary")),
        (POSITION, position.cast("binary")),
    ]
    return sent.select("topic", "key", "value", _pairs(headers))


def build_tombstones(gone: DataFrame, sink: KafkaSink, delivery: Delivery) -> DataFrame:
    """Keys of which no row is left, as records without a value: those that a compacted topic
    forgets. Out: columns as of `build_records`."""
    topic, key = _topic(sink), _as_bytes(gone, sink.key or "")
    sent = gone.select(topic.alias("topic"), key.alias("key"))
    position = F.concat(F.lit("gone-"), F.sha2(F.concat("key", F.col("topic").cast("binary")), 256))
    headers = [
        (BATCH, F.lit(delivery.token).cast("binary")),
        (POSITION, position.cast("binary")),
    ]
    nothing = F.lit(None).cast("binary").alias("value")
    return sent.select("topic", "key", nothing, _pairs(headers))


def records_without_batch(rows: DataFrame, sink: KafkaSink, columns: list[str]) -> DataFrame:
    """The same, row by row and without the headers of a batch: nothing then tells a record that was
    sent again. Args: columns: the user's."""
    headers = [(header, _as_bytes(rows, name)) for header, name in sink.headers.items()]
    return rows.select(*_record(rows, sink, columns), *([_pairs(headers)] if headers else []))


def _record(rows: DataFrame, sink: KafkaSink, columns: list[str]) -> list[Column]:
    key = F.lit(None).cast("binary") if sink.key is None else _as_bytes(rows, sink.key)
    return [
        _topic(sink).alias("topic"),
        key.alias("key"),
        _value(rows, sink, columns).alias("value"),
    ]


def _topic(sink: KafkaSink) -> Column:
    return F.lit(sink.topic) if sink.topic is not None else col(sink.place).cast("string")


def _pairs(headers: list[tuple[str, Column]]) -> Column:
    pairs = F.array(
        *(F.struct(F.lit(name).alias("key"), value.alias("value")) for name, value in headers)
    )
    return pairs.cast("array<struct<key:string,value:binary>>").alias("headers")


def _as_bytes(rows: DataFrame, name: str) -> Column:
    """A column as bytes; what is neither text nor bytes as Spark writes it in text."""
    return (
        col(name)
        if isinstance(rows.select(col(name)).schema[0].dataType, BinaryType)
        else col(name).cast("string").cast("binary")
    )


def _value(rows: DataFrame, sink: KafkaSink, columns: list[str]) -> Column:
    if isinstance(sink.value, str):
        return _as_bytes(rows, sink.value)
    return F.to_json(F.struct(*map(col, sink.value or columns)), JSON).cast("binary")
