"""Sends batches to a Kafka topic."""

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter

from ...spec import KafkaSink, spark_options
from ..delivery import Delivery
from ..writer import Preparation, Writer
from .check import check_keys, check_sink
from .records import build_records, build_tombstones, records_without_batch
from .refusal import explain_refusal

_PATIENCE = {
    "kafka.max.block.ms": "20000",
    "kafka.request.timeout.ms": "15000",
    "kafka.delivery.timeout.ms": "45000",
}
"""The producer's own would wait for a minute until it knows a topic, and for two until a record is
sent."""


class KafkaWriter(Writer[KafkaSink]):
    """Sends rows to a topic, one record a row."""

    def prepare(self, coming: Preparation) -> None:
        """Raise SpecError unless such rows can be sent as the sink says."""
        check_sink(self.sink, coming.schema, coming.where)

    def deliver(self, rows: DataFrame, delivery: Delivery) -> int:
        """Send the rows of a batch, of a mirror also its keys that are gone; they must be the same
        when the batch is sent again.

        The records of a key go to the partition that Kafka's own partitioner gives it; those of one
        batch in any order, after those of the batch before. Raises SinkError where trying again
        cannot help, TransientError where it may; part of the batch may then be sent.
        """
        count = rows.count()  # Spark observes no metrics in a write to Kafka
        if delivery.mirror:
            check_keys(rows, self.sink, count)
        records = build_records(rows, self.sink, delivery) if count else None
        if delivery.gone is not None:
            left = build_tombstones(delivery.gone, self.sink, delivery)
            records = left if records is None else records.unionByName(left)
        try:
            if records is not None:
                records.write.format("kafka").options(**self._options()).save()
        except (Py4JJavaError, PySparkException) as error:
            raise self.explain(error) from None
        return count

    def open_stream(
        self, rows: DataFrame, columns: list[str], hidden: frozenset[str]
    ) -> DataStreamWriter:
        """Records one by one, without the headers of a batch."""
        records = records_without_batch(rows, self.sink, columns)
        return records.writeStream.format("kafka").options(**self._options())

    def explain(self, error: Exception) -> Exception:
        """Kafka's own complaint."""
        return explain_refusal(error, self.sink)

    def _options(self) -> dict[str, str]:
        """Settings of Spark's writer."""
        return spark_options(self.sink) | _PATIENCE | self.sink.options
