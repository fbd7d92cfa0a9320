"""What a parser makes of records."""

from typing import NamedTuple

from pyspark.sql import Column, DataFrame


class Reading(NamedTuple):
    """Records, and columns of them that say what they hold: a struct of these would have Spark make
    an object of each value.

    `fields`: of the schema, in its order. `defect`: why a record does not fit; NULL where it does.
    `rescued`: JSON of the fields that nobody declared.
    """

    records: DataFrame
    fields: list[Column]
    defect: Column
    rescued: Column
