"""How a batch's rows come to the database before the one transaction that takes them into the
table."""

from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ...errors import SinkError
from ...spark.columns import col
from ...spec import JdbcSink
from .address import read_address
from .postgres import DRIVER, Database, SqlError, sql_errors
from .table import Written
from .types import encode, is_unstorable

SMALL = 1000
"""Rows up to which a batch goes as one value of the statement: a staging table, and connections to
fill it, would cost more than the rows."""
SMALL_ROW = 4096
"""Characters of a row that is small as well; one that is not sends the batch through a staging
table."""


@dataclass(frozen=True)
class Staged:
    """Rows that a statement can read, as columns c0, c1, ... of text. `source`: what stands after
    FROM; `values`: for its `?`."""

    source: str
    values: tuple[str, ...] = ()


def create_staging(database: Database, staging: str, written: list[Written]) -> None:
    """Create a staging table.

    It has the row's number as well, so that a task that Spark runs twice fails rather than doubles
    its rows.
    """
    columns = ", ".join(f"c{number} text" for number, _ in enumerate(written))
    database.run(
        "CREATE UNLOGGED TABLE {staging} ({columns}, row_number bigint PRIMARY KEY)",
        staging=staging,
        columns=columns,
    )


def stage(
    database: Database, rows: DataFrame, sink: JdbcSink, written: list[Written], staging: str
) -> Staged:
    """Bring the rows to the database, over `sink.partitions` connections into a staging table
    unless they are few. Raises SinkError and SqlError."""
    values = [
        encode(col(column.name), column.kind, column.base).alias(f"c{number}")
        for number, column in enumerate(written)
    ]
    try:
        few = _collect_few(rows, values)
        if few is not None:
            return few
        create_staging(database, staging, written)
        staged = rows.repartition(sink.partitions).select(
            *values, F.monotonically_increasing_id().alias("row_number")
        )
        address = read_address(sink)
        with sql_errors():
            staged.write.format("jdbc").options(
                **address.properties,
                url=address.url,
                dbtable=staging,
                driver=DRIVER,
                batchsize="5000",
            ).mode("append").save()
    except PySparkException as error:
        if "INVALID_UTF8" not in str(error):
            raise
        refuse_characters(rows, sink, written)
        raise
    return Staged(staging)


def _collect_few(rows: DataFrame, values: list) -> Staged | None:
    """The rows as one value; None when they are more, or longer, than that is good for."""
    text = F.to_json(F.struct(*values))
    found = [
        row[0]
        for row in rows.select(F.when(F.length(text) <= SMALL_ROW, text)).limit(SMALL + 1).collect()
    ]
    if len(found) > SMALL or None in found:
        return None
    columns = ", ".join(f"c{number} text" for number, _ in enumerate(values))
    return Staged(f"json_to_recordset(?::json) AS staged({columns})", (f"[{','.join(found)}]",))


def refuse_characters(rows: DataFrame, sink: JdbcSink, written: list[Written]) -> None:
    """Raise SinkError naming the columns whose text PostgreSQL cannot store, if there are any."""
    counts = rows.select(
        *[
            F.count_if(is_unstorable(col(column.name), column.kind)).alias(str(number))
            for number, column in enumerate(written)
        ]
    ).first()
    _refuse(
        sink,
        written,
        counts or (),
        "characters that PostgreSQL cannot store: U+0000, or bytes that are no UTF-8",
    )


def refuse_misfits(
    database: Database, staged: Staged, sink: JdbcSink, written: list[Written], why: SqlError
) -> None:
    """Raise SinkError naming the columns whose values their type does not take, as far as
    PostgreSQL (16 or newer) can tell."""
    counts = ", ".join(
        f"count(*) FILTER (WHERE NOT pg_input_is_valid(c{number}, '{column.quoted_type}'))"
        for number, column in enumerate(written)
    )
    try:
        found = database.ask(
            "SELECT to_json(ARRAY[{counts}]) FROM {source}",
            *staged.values,
            counts=counts,
            source=staged.source,
        )
    except SqlError:
        return
    _refuse(sink, written, found, f"values that do not fit: {why}")


def _refuse(sink: JdbcSink, written: list[Written], counts: Iterable[int], what: str) -> None:
    found = [
        f"{column.name!r} ({column.type}, {count} row(s))"
        for column, count in zip(written, counts, strict=True)
        if count
    ]
    if found:
        raise SinkError(
            f"column {', '.join(found)} has {what}",
            where=f"table {sink.table}",
            do="Mend them in the transform, or refuse such rows with a rule; or give the column "
            "another type under `types`",
        )
