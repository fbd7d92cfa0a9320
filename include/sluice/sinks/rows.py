"""Rows by what they say: to hash them, to order them, to write them as JSON."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..spark.columns import col

JSON = {
    "ignoreNullFields": "true",  # Spark's default, whatever the session says
    "timeZone": "UTC",
    # Spark's default would cut a time to milliseconds.
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Options of to_json under which a row's text hangs on the row alone."""


def comparable(rows: DataFrame, name: str) -> Column:
    """A column that can be hashed and ordered by; maps and variants as text."""
    kind = rows.schema[name].dataType.simpleString()
    plain = "map<" not in kind and "variant" not in kind
    return col(name) if plain else F.to_json(F.struct(col(name)), JSON)
