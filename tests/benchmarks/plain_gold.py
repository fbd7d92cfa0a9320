"""A gold table by hand, all of it in each run.

Usage: plain_gold.py SILVER GOLD JARS QUERY [JAVA]; the query reads `source`.
"""

import sys
from pathlib import Path

from tests.benchmarks.silver import open_plain_session

if __name__ == "__main__":
    silver, gold, class_path, query, *java = sys.argv[1:]
    spark = open_plain_session(class_path, *java)
    spark.read.format("delta").load(silver).createOrReplaceTempView("source")
    rows = spark.sql(Path(query).read_text(encoding="utf-8"))
    rows.write.format("delta").mode("overwrite").save(gold)
