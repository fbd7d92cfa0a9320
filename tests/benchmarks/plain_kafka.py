"""What Kafka's figures are compared with: a hand-written availableNow job.

It reads the same topic into a Delta table of the same columns, without rules and without a report:
Kafka -> JSON -> dedup by key within the watermark (RocksDB; not with `append`) -> Delta append.
Usage: plain_kafka.py SERVERS TOPIC ROOT JAR[:JAR...] dedup|append
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.plain_retail import SETTINGS, drain

SCHEMA = "id string, at timestamp, amount double, country string, note string"


def main(servers: str, topic: str, root: str, jars: str, mode: str) -> None:
    """Drain the topic once."""
    builder = SparkSession.builder.config("spark.jars", jars.replace(":", ","))
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
    )
    records = records.option("includeHeaders", "true").load()
    source = F.struct(
        "topic", "partition", "offset", "timestamp", "timestampType", "key", "headers", "value"
    )
    rows = records.select(
        F.from_json(F.col("value").cast("string"), SCHEMA).alias("row"), source.alias("_source")
    ).select("row.*", "_source")
    if mode == "dedup":
        rows = rows.withWatermark("at", "2 days").dropDuplicatesWithinWatermark(["id"])
    drain(rows, root)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
