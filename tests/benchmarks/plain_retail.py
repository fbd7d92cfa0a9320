"""What the figures are compared with: a hand-written, well-configured availableNow job.

It reads the retail files without rules and without a report:
CSV folder -> dedup on the whole line within the watermark (RocksDB) -> Delta append.
Usage: plain_retail.py LANDING ROOT JAR[:JAR...]
"""

import sys

from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "InvoiceNo string, StockCode string, Description string, Quantity int, InvoiceDate timestamp, "
    "UnitPrice double, CustomerID double, Country string"
)
SETTINGS = {
    "spark.master": "local[*]",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming"
    ".state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.unloadOnCommit": "true",
}


def main(landing: str, root: str, jars: str) -> None:
    """Drain the landing folder once."""
    builder = SparkSession.builder.config("spark.jars", jars.replace(":", ","))
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    lines = spark.readStream.schema(SCHEMA).option("header", True).csv(landing)
    unique = lines.withWatermark("InvoiceDate", "2 days").dropDuplicatesWithinWatermark(
        lines.columns
    )
    drain(unique, root)
    spark.stop()


def drain(rows: DataFrame, root: str) -> None:
    """Append what waits to a Delta table below `root`, and stop."""
    query = (
        rows.writeStream.format("delta")
        .option("checkpointLocation", f"{root}/checkpoint")
        .trigger(availableNow=True)
        .start(f"{root}/table")
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
