"""What a windowed aggregate is compared with: a hand-written, well-configured availableNow job.

JSON folder -> count and sum by window and key within the watermark (RocksDB) -> Delta append.
Usage: plain_windows.py LANDING ROOT JAR[:JAR...] WINDOW DELAY JAVA_OPTIONS
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.plain_retail import SETTINGS, drain


def main(landing: str, root: str, jars: str, window: str, delay: str, java_options: str) -> None:
    """Drain the folder once. Args: java_options: of the driver; Java's own where empty."""
    builder = SparkSession.builder.config("spark.driver.memory", "3g")
    builder = builder.config("spark.jars", jars.replace(":", ","))
    if java_options:
        builder = builder.config("spark.driver.extraJavaOptions", java_options)
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    events = spark.readStream.schema("key bigint, amount bigint, at timestamp").json(landing)
    groups = events.withWatermark("at", delay).groupBy(F.window("at", window), "key")
    counts = groups.agg(F.count("*").alias("events"), F.sum("amount").alias("amount"))
    drain(counts.select(F.col("window.start").alias("start"), "key", "events", "amount"), root)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
