"""Delta tables as tests read them: not by Spark, which wrote them, and at a twentieth of its cost.
What comes out equals what Spark collects."""

from collections.abc import Iterator
from datetime import datetime

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import Row

INT96 = {"datafusion.execution.parquet.coerce_int96": "us"}
"""Of tables that hold Spark's own form of times, which have years that nanoseconds do not reach."""


def read_rows(path: object, *columns: str) -> list[Row]:
    """A table's rows as it is now. Args: columns: names, `a.b` for a field of one; all of them
    where there is none."""
    table = DeltaTable(str(path))
    asked = ", ".join(map(_quote, columns)) or "*"
    builder = QueryBuilder(INT96).register("held", table)
    return list(_rows(builder.execute(f"SELECT {asked} FROM held")))  # noqa: S608 (of our tests)


def _quote(name: str) -> str:
    column, *fields = name.split(".")
    inner = "".join(f"['{field}']" for field in fields)
    return f'"{column}"{inner} AS "{name}"'


def _rows(reader: object) -> Iterator[Row]:
    for found in reader:
        batch = pa.record_batch(found)
        make, kinds = Row(*batch.schema.names), batch.schema.types
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield make(*map(_as_spark, values, kinds))


def _as_spark(value: object, kind: pa.DataType) -> object:
    """A value as Spark gives it to Python."""
    if isinstance(value, datetime):
        return value.astimezone().replace(tzinfo=None) if value.tzinfo else value
    if value is None or not pa.types.is_nested(kind):
        return value
    if pa.types.is_struct(kind):
        names = [kind.field(place).name for place in range(kind.num_fields)]
        inner = (_as_spark(value[name], kind.field(name).type) for name in names)
        return Row(*names)(*inner)
    if pa.types.is_map(kind):
        return {key: _as_spark(inner, kind.item_type) for key, inner in value}
    return [_as_spark(inner, kind.value_type) for inner in value]
