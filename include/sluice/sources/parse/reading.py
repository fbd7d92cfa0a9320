"""What a parser makes of records."""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...spark.columns import DEFECT, RESCUED, quote
from ...spec import Records


class Reading(NamedTuple):
    """Records, and columns of them that say what they hold: no struct of these, because Spark makes
    an object of each value of one.

    `fields`: of the schema, in its order. `defect`: why a record does not fit; NULL where it does.
    `rescued`: JSON of the fields that nobody declared.
    """

    records: DataFrame
    fields: list[Column]
    defect: Column
    rescued: Column

    @classmethod
    def of_struct(cls, records: DataFrame, source: Records, name: str) -> "Reading":
        """Of parsers whose columns are in a struct."""
        fields = [F.col(f"{name}.{quote(column)}").alias(column) for column in source.columns]
        return cls(records, fields, F.col(f"{name}.{DEFECT}"), F.col(f"{name}.{RESCUED}"))
