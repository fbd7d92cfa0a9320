"""Rows as records of a Kafka topic: at least once, and so that a reader can tell a record that was sent again from one that is equal to it.

Each record has two headers of ours: `sluice.batch` names its batch for ever, `sluice.position` its place among the batch's records. The place does not
depend on how the rows lie in partitions or on their order: it is a hash of the record and a running number among those of the same hash, in order of what
they say. So a batch that is sent again sends the same pairs, and no two records of a batch share one.
"""

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructType,
    VariantType,
)

from ..errors import SinkError, SpecError, TransientError
from ..spark.columns import col
from ..spec import KafkaSink, spark_options
from .delivery import Delivery

BATCH, POSITION = "sluice.batch", "sluice.position"

_PATIENCE = {
    "kafka.max.block.ms": "20000",
    "kafka.request.timeout.ms": "15000",
    "kafka.delivery.timeout.ms": "45000",
}
"""The producer's own would wait for a minute until it knows a topic, and for two until a record is sent."""

_JSON = {
    "ignoreNullFields": "true",  # Spark's default, whatever the session says
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",  # Spark's default would cut a time to milliseconds
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}

_THROWN = re.compile(
    r"(?:org\.apache\.kafka\.[\w.]*?|kafka010\.)(\w+Exception)(?:: ([^\n]*)|(?=\s|$))"
)
_ADVICE = {
    "UnknownTopicOrPartition": "Create the topic, or mend `topic`",
    "InvalidTopic": "Mend `topic`",
    "KafkaIllegalState": "Give every row a topic: fill `topic_column` in the transform, or filter such rows",
    "TooLarge": "Send fewer columns, or raise `kafka.max.request.size` under `options` and the topic's max.message.bytes",
    "Authorization": "Give the user the right to write to the topic",
    "Authentication": "Mend `security` or the connection",
    "InvalidRecord": "A compacted topic takes no record without a key: write `key`",
    "Config": "Mend `options` or `security`",
    "Construct": "Mend `options` or `security`",
    "PolicyViolation": "Ask who keeps the brokers for what they refuse",
    "Unsupported": "Ask who keeps the brokers for their version",
}
"""Part of the name of an exception that trying again does not mend -> what does."""


def prepare(sink: KafkaSink, schema: StructType, where: str) -> None:
    """Raise SpecError unless rows of a schema can be sent as the sink says. `where`: the step and sink, for the message."""
    found = {field.name.lower(): field.dataType for field in schema.fields}

    def check(field: str, name: str, wanted: str, fits: bool | type) -> None:
        if name.lower() not in found:
            raise SpecError(
                "no such column",
                where=f"{where}: {field}",
                value=name,
                do=f"There are: {', '.join(schema.names)}",
            )
        if not (fits if isinstance(fits, bool) else isinstance(found[name.lower()], fits)):
            raise SpecError(
                f"the column is {found[name.lower()].simpleString()}, not {wanted}",
                where=f"{where}: {field}",
                value=name,
                do="Cast it in the transform",
            )

    def is_flat(name: str) -> bool:
        return not isinstance(
            found.get(name.lower(), DataType()), StructType | ArrayType | MapType | VariantType
        )

    if isinstance(sink.value, str):
        check(
            "value",
            sink.value,
            "text or bytes; a list of columns is sent as JSON",
            (StringType, BinaryType),
        )
    for name in sink.value if isinstance(sink.value, list) else ():
        check("value", name, "", True)
    if sink.key is not None:
        check("key", sink.key, "one value", is_flat(sink.key))
    if sink.topic_column is not None:
        check("topic_column", sink.topic_column, "text", StringType)
    for header, name in sink.headers.items():
        if header in (BATCH, POSITION):
            raise SpecError(
                "every record has this header already",
                where=f"{where}: headers",
                value=header,
                do="Call yours something else",
            )
        check(f"headers: {header}", name, "one value", is_flat(name))
    for name in sink.options:
        if not name.lower().startswith("kafka."):
            raise SpecError(
                "settings of the producer begin with `kafka.`",
                where=f"{where}: options",
                value=name,
                do=f"Write kafka.{name}",
            )


def deliver(rows: DataFrame, sink: KafkaSink, delivery: Delivery) -> int:
    """Send the rows of a batch, one record a row; returns how many. They must be the same rows when the batch is sent again.

    The records of a key go to the partition that Kafka's own partitioner gives it; those of one batch in any
    order, after those of the batch before. Raises SinkError where trying again cannot help, TransientError where it may; part of the batch may then be sent.
    """
    count = rows.count()  # Spark observes no metrics in a write to Kafka
    try:
        if count:
            build_records(rows, sink, delivery).write.format("kafka").options(
                **writer_options(sink)
            ).save()
    except (Py4JJavaError, PySparkException) as error:
        raise explain_refusal(error, sink) from None
    return count


def writer_options(sink: KafkaSink) -> dict[str, str]:
    """Settings of Spark's writer."""
    return spark_options(sink) | _PATIENCE | sink.options


def build_records(rows: DataFrame, sink: KafkaSink, delivery: Delivery) -> DataFrame:
    """Columns topic, key, value and headers, as Spark's Kafka sink takes them."""
    own = {
        f"header{number}": _as_bytes(rows, name)
        for number, name in enumerate(sink.headers.values())
    }
    sent = rows.select(
        *_record(rows, sink, delivery.columns), *(c.alias(name) for name, c in own.items())
    )
    # The hash passes over NULLs, so that records may share it: what they say decides their order, and records that say the same may change places.
    hashed = sent.withColumn("hash", F.xxhash64(*sent.columns))
    number = F.row_number().over(Window.partitionBy("hash").orderBy(*sent.columns))
    position = F.concat_ws("-", F.lpad(F.lower(F.hex("hash")), 16, "0"), number)
    headers = [
        *zip(sink.headers, map(F.col, own), strict=True),
        (BATCH, F.lit(delivery.token).cast("binary")),
        (POSITION, position.cast("binary")),
    ]
    return hashed.select("topic", "key", "value", _pairs(headers))


def records_without_batch(rows: DataFrame, sink: KafkaSink, columns: list[str]) -> DataFrame:
    """The same, row by row and without the headers of a batch: nothing then tells a record that was sent again. Args: columns: the user's."""
    headers = [(header, _as_bytes(rows, name)) for header, name in sink.headers.items()]
    return rows.select(*_record(rows, sink, columns), *([_pairs(headers)] if headers else []))


def _record(rows: DataFrame, sink: KafkaSink, columns: list[str]) -> list[Column]:
    topic = F.lit(sink.topic) if sink.topic is not None else col(sink.topic_column).cast("string")
    key = F.lit(None).cast("binary") if sink.key is None else _as_bytes(rows, sink.key)
    return [topic.alias("topic"), key.alias("key"), _value(rows, sink, columns).alias("value")]


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
    return F.to_json(F.struct(*map(col, sink.value or columns)), _JSON).cast("binary")


def explain_refusal(error: Exception, sink: KafkaSink) -> Exception:
    """Kafka's own complaint as an error of ours; any other error as it is."""
    thrown = [
        ("Construct" if "Failed to construct" in said else name, said)
        for name, said in _THROWN.findall(str(error).partition("Driver stacktrace")[0])
    ]
    place = f"topic {sink.topic}" if sink.topic else f"topics of column {sink.topic_column}"
    where = f"sink kafka: {place} on brokers {writer_options(sink)['kafka.bootstrap.servers']}"
    for part, advice in _ADVICE.items():
        if any(part in name for name, _ in thrown):
            # The last cause says most of a setting that is wrong, the first says which topic is not there.
            said = thrown[-1 if part in ("Construct", "Config") else 0][1]
            return SinkError(
                f"Kafka refuses the records: {said.rstrip('.')}", where=where, do=advice
            )
    if thrown:
        return TransientError(
            f"Kafka did not take the records: {(thrown[0][1] or thrown[0][0]).rstrip('.')}",
            where=where,
            do="See that the brokers run, then run again",
        )
    return error
