"""An idle availableNow run of plain PySpark on a given checkpoint: session, query, stop.

Usage: plain_idle.py LANDING CHECKPOINT
"""

import sys

from pyspark.sql import SparkSession


def main(landing: str, checkpoint: str) -> None:
    """Find nothing new."""
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.log.level", "ERROR")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    lines = (
        spark.readStream.option("recursiveFileLookup", True)
        .option("pathGlobFilter", "*.csv*")
        .text(landing)
    )
    query = lines.writeStream.foreachBatch(
        lambda frame, batch: sys.exit(f"batch {batch} was not expected")
    ).option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
