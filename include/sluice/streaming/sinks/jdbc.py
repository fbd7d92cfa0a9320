"""Writes batches into a table of PostgreSQL, each once.

Spark writes a batch over several connections into a staging table that nobody reads; then one transaction notes the batch in the ledger, takes its rows into
the table and drops the staging table. A batch that stands in the ledger is not written again.
"""

from contextlib import suppress

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ...errors import SinkError
from ...spec import JdbcSink
from ..columns import col
from .delivery import Delivery
from .jdbc_ledger import Ledger
from .jdbc_table import Written, choose_fields, create_staging, create_table, describe_table, insert_statement, match_columns
from .jdbc_types import encode, is_unstorable
from .postgres import DRIVER, Address, Database, SqlError, open_database, read_address, sql_errors

_PREPARING = "sluice: prepare"
"""Lock of whoever creates tables, so that two steps that begin together do not both create one."""


def prepare(spark: SparkSession, sink: JdbcSink, schema: StructType, columns: list[str]) -> None:
    """Create table and ledger where they are absent, and have the database plan the very statements that a batch will need.

    Args: schema: of the rows, system columns among them. columns: the user's own, which are written unless `sink.columns` says others.
    Raises SpecError, SinkError, and TransientError where the database cannot be reached, before anything is read.
    """
    fields = choose_fields(sink, schema, columns)
    with open_database(spark, sink) as database:
        ledger = Ledger(database, sink.ledger)
        staging = ledger.lock(_PREPARING)
        with database.transaction():
            if describe_table(database, sink) is None:
                create_table(database, sink, fields)
            ledger.create()
            table = describe_table(database, sink)
            written = match_columns(sink, fields, table)
            create_staging(database, staging, written)
            ledger.note("", table.name, 0, staging, only_explain=True)
            try:
                database.run("EXPLAIN {insert}", insert=insert_statement(sink, table, written, staging))
            except SqlError as error:
                raise _explain_plan(error, sink, table.name) from None
            database.run("DROP TABLE {staging}", staging=staging)
        ledger.drop_leftovers()


def _explain_plan(error: SqlError, sink: JdbcSink, table: str) -> Exception:
    if error.state != "42P10":
        return error
    return SinkError("the table has no unique index on the keys of the upsert", where=f"table {sink.table}", value=sink.keys,
                     do=f"Run CREATE UNIQUE INDEX ON {table} ({', '.join(sink.keys)}), or write the keys of an index it has")


def deliver(rows: DataFrame, sink: JdbcSink, delivery: Delivery) -> int:
    """Write a batch's rows into the table once; returns how many the batch has, from the ledger when it was written before.

    Raises TransientError when trying again may help, SinkError when the database refuses a value, a row or the user. In both cases nothing of the batch is there.
    """
    fields = choose_fields(sink, rows.schema, delivery.columns)
    with open_database(rows.sparkSession, sink) as database:
        table = describe_table(database, sink)
        if table is None:
            raise SinkError("the table is gone", where=f"table {sink.table}", do="Run again: it is created at the start of a run")
        ledger = Ledger(database, sink.ledger)
        staging = ledger.lock(f"{table.name}/{delivery.token}")
        known = ledger.read(delivery.key, table.name, delivery.batch)
        if known is not None:
            return known
        written = match_columns(sink, fields, table)
        create_staging(database, staging, written)
        try:
            _stage(rows, written, read_address(sink), staging, sink.partitions)
            with database.transaction():
                if ledger.note(delivery.key, table.name, delivery.batch, staging):
                    _check_keys(database, sink, written, staging)
                    database.run("{insert}", insert=insert_statement(sink, table, written, staging))
                database.run("DROP TABLE {staging}", staging=staging)
            return ledger.read(delivery.key, table.name, delivery.batch)
        except SqlError as error:
            raise _explain(error, database, sink, written, staging) from None
        finally:
            with suppress(SqlError):  # a server that is away keeps it; the next run drops it
                database.run("DROP TABLE IF EXISTS {staging}", staging=staging)


def _stage(rows: DataFrame, written: list[Written], address: Address, staging: str, partitions: int) -> None:
    values = [encode(col(column.name), column.kind, column.base).alias(f"c{number}") for number, column in enumerate(written)]
    staged = rows.repartition(partitions).select(*values, F.monotonically_increasing_id().alias("row_number"))
    options = {**address.properties, "url": address.url, "dbtable": staging, "driver": DRIVER, "batchsize": "5000"}
    try:
        with sql_errors():
            staged.write.format("jdbc").options(**options).mode("append").save()
    except (SqlError, PySparkException) as error:
        if getattr(error, "state", "") != "22021" and "INVALID_UTF8" not in str(error):
            raise
        found = rows.select(*[F.count_if(is_unstorable(col(c.name), c.kind)).alias(str(number)) for number, c in enumerate(written)]).first()
        raise _refuse_values(written, found, "characters that PostgreSQL cannot store (U+0000, or bytes that are no UTF-8)") from None


def _refuse_values(written: list[Written], counts: list[int], what: str) -> SinkError:
    """The error that names the columns with values that have no place; never a value."""
    found = [f"{column.name!r} ({count} row(s), {column.type})" for column, count in zip(written, counts, strict=True) if count]
    return SinkError(f"column {', '.join(found)} has {what}", where="batch", do="Mend them in the transform or refuse such rows with a rule; or give the column another type under `types`")


def _check_keys(database: Database, sink: JdbcSink, written: list[Written], staging: str) -> None:
    """Raise SinkError for a NULL among the keys of an upsert: it equals nothing, so such a row would come in anew each time."""
    numbers = [number for number, column in enumerate(written) if column.name in sink.keys]
    if numbers:
        nulls = " OR ".join(f"c{number} IS NULL" for number in numbers)
        count = database.ask("SELECT to_json(count(*)) FROM {staging} WHERE {nulls}", staging=staging, nulls=nulls)
        if count:
            raise SinkError(f"{count} row(s) have a NULL among the keys of the upsert", where=f"table {sink.table}", value=sink.keys, do="Refuse such rows with a rule")


def _explain(error: SqlError, database: Database, sink: JdbcSink, written: list[Written], staging: str) -> Exception:
    """The error for a user where more can be said than PostgreSQL does: which column, how many rows."""
    if error.state == "21000":
        return SinkError("two rows of one batch have the same keys, and nothing says which of them is to stay", where=f"table {sink.table}", value=sink.keys,
                         do="Write the step's `dedup.keys` as the sink's `keys`, or more columns; or reduce to one row a key in the transform")
    if not error.state.startswith("22"):
        return error
    texts = [(number, column) for number, column in enumerate(written) if column.staged == "text"]
    counts = ", ".join(f"count(*) FILTER (WHERE NOT pg_input_is_valid(c{number}, '{column.type.replace(chr(39), chr(39) * 2)}'))" for number, column in texts)
    try:
        found = database.ask("SELECT to_json(ARRAY[{counts}]) FROM {staging}", counts=counts, staging=staging)
    except SqlError:  # before PostgreSQL 16 it cannot be asked
        return error
    return _refuse_values([column for _, column in texts], found, f"values that do not fit: {error}") if any(found) else error
