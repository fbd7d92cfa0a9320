"""Writes days of sales into a Delta table, a file a day.

Rows follow from their numbers, so a table is the same whenever it is made.
Usage: silver.py PATH JARS FIRST DAYS ROWS
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

PRODUCTS, CUSTOMERS = 500, 100_000


def open_plain_session(jars: str, java: str = "") -> SparkSession:
    """A session as one is opened by hand. Args: java: options of its JVM."""
    settings = {
        "spark.driver.extraClassPath": jars,
        "spark.driver.memory": "3g",
        "spark.driver.extraJavaOptions": java,
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def write_days(spark: SparkSession, path: str, first: int, days: int, rows: int) -> None:
    """Append a commit with a file a day. Args: first: days since 2025-01-01. rows: of each day."""
    number = F.col("id")
    hashed = F.xxhash64(number)
    day = F.floor(number / rows).cast("int")
    sales = spark.range(first * rows, (first + days) * rows, 1, days).select(
        number.alias("id"),
        F.timestamp_seconds(
            F.lit(1_735_689_600) + day * 86_400 + number % rows * 86_400 / rows
        ).alias("at"),
        F.pmod(hashed, F.lit(PRODUCTS)).cast("int").alias("product"),
        F.pmod(F.xxhash64(hashed), F.lit(CUSTOMERS)).cast("int").alias("customer"),
        (F.pmod(hashed, F.lit(10_000)) / 100).cast("decimal(12,2)").alias("amount"),
    )
    writer = sales.write.format("delta").mode("append")
    writer.option("delta.enableChangeDataFeed", "true").save(path)


if __name__ == "__main__":
    table, class_path, *numbers = sys.argv[1:]
    write_days(open_plain_session(class_path), table, *map(int, numbers))
