"""The strongest job that a person writes by hand for the same backlog: no rules, no report.

Folder -> dedup by id within the watermark (RocksDB) -> Delta append.
Usage: plain_backlog.py LANDING ROOT JAR[:JAR...] json|nested|csv|parquet JAVA_OPTIONS
"""

import sys

from pyspark.sql import SparkSession

from tests.benchmarks.plain_retail import SETTINGS, drain

SCHEMA = (
    "id string, customer string, country string, status string, price double, quantity bigint, "
    "sku string, event_time timestamp, note string, channel string"
)
NESTED = {
    "address": "struct<city: string, geo: struct<lat: double, lon: double>>",
    "lines": "array<struct<sku: string, quantity: bigint>>",
    "tags": "array<string>",
    "labels": "map<string, string>",
}


def main(landing: str, root: str, jars: str, form: str, java_options: str) -> None:
    """Drain the landing folder once. Args: java_options: of the driver; Java's own where empty."""
    builder = SparkSession.builder.config("spark.driver.memory", "3g")
    if java_options:
        builder = builder.config("spark.driver.extraJavaOptions", java_options)
        builder = builder.config("spark.driver.extraClassPath", jars)
    else:
        builder = builder.config("spark.jars", jars.replace(":", ","))
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    more = [f"{name} {kind}" for name, kind in NESTED.items()] if form == "nested" else []
    reader = spark.readStream.schema(", ".join([SCHEMA, *more])).option("header", True)
    orders = reader.format("json" if form == "nested" else form).load(landing)
    unique = orders.withWatermark("event_time", "7 days").dropDuplicatesWithinWatermark(["id"])
    drain(unique, root)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
