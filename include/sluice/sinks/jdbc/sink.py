"""Writes batches into a table of PostgreSQL, each once.

Spark writes a batch over several connections into a staging table that nobody reads; then one
transaction notes the batch in the ledger, takes its rows into the table and drops the staging
table. A batch that stands in the ledger is not written again. A small batch needs no staging table:
it goes with the statement.
"""

from contextlib import suppress

from pyspark.sql import DataFrame

from ...errors import SinkError
from ...spec import JdbcSink
from ..delivery import Delivery
from ..writer import Preparation, Writer
from .ledger import Ledger
from .postgres import Database, SqlError, open_database
from .refused import describe_row
from .staging import Staged, create_staging, refuse_characters, refuse_misfits, stage
from .statement import insert_statement
from .table import (
    Table,
    Written,
    choose_fields,
    create_table,
    describe_table,
    match_columns,
)

_PREPARING = "sluice: prepare"
"""Lock of whoever creates tables, so that two steps that begin together do not both create one."""


class JdbcWriter(Writer[JdbcSink]):
    """Writes batches into a table, each once."""

    def prepare(self, coming: Preparation) -> None:
        """Create table and ledger where they are absent, and have the database plan the very
        statements that a batch will need.

        Raises SpecError, SinkError, and TransientError where the database cannot be reached.
        """
        sink, fields = self.sink, choose_fields(self.sink, coming.schema, coming.columns)
        with open_database(coming.spark, sink) as database:
            ledger = Ledger(database, sink.ledger)
            staging = ledger.lock(_PREPARING)
            with database.transaction():
                if describe_table(database, sink) is None:
                    create_table(database, sink, fields)
                made_anew = ledger.create()
                table = _require_table(database, sink)
                written = match_columns(sink, fields, table)
                create_staging(database, staging, written)
                ledger.note("", table.name, 0, Staged(staging), only_explain=True)
                try:
                    database.run(
                        "EXPLAIN {insert}", insert=insert_statement(sink, table, written, staging)
                    )
                except SqlError as error:
                    raise _explain_plan(error, sink, table.name) from None
                database.run("DROP TABLE {staging}", staging=staging)
            ledger.drop_leftovers()
            filled = _has_rows(database, table)
            if made_anew and filled:
                ledger.mark_made_anew(table.name)
            if coming.known:
                _look_for_losses(ledger, table.name, filled, coming, sink)

    def deliver(self, rows: DataFrame, delivery: Delivery) -> int:
        """Write a batch's rows into the table once; returns how many the batch has, from the ledger
        when it was written before.

        Raises TransientError when trying again may help, SinkError when the database refuses a
        value, a row or the user. In both cases nothing of the batch is there.
        """
        sink, fields = self.sink, choose_fields(self.sink, rows.schema, delivery.columns)
        with open_database(rows.sparkSession, sink) as database:
            table = _require_table(database, sink)
            ledger = Ledger(database, sink.ledger)
            staging = ledger.lock(f"{table.name}/{delivery.token}")
            if delivery.again:
                ledger.forget(table.name)
            known = ledger.read(delivery.key, table.name, delivery.batch)
            if known is not None:
                return known if known >= 0 else rows.count()
            written, staged = match_columns(sink, fields, table), None
            try:
                staged = stage(database, rows, sink, written, staging)
                with database.transaction():
                    if ledger.note(delivery.key, table.name, delivery.batch, staged):
                        _check_keys(database, sink, written, staged)
                        statement = insert_statement(sink, table, written, staged.source)
                        taken = database.run("{insert}", *staged.values, insert=statement)
                        given = ledger.read(delivery.key, table.name, delivery.batch) or 0
                        _check_taken(sink, given, taken)
                    database.run("DROP TABLE IF EXISTS {staging}", staging=staging)
                return ledger.read(delivery.key, table.name, delivery.batch) or 0
            except SqlError as error:
                _refuse(error, database, sink, rows, written, staged)
                raise _naming_row(error, table, delivery) from None
            finally:
                with suppress(SqlError):  # a server that is away keeps it; the next run drops it
                    database.run("DROP TABLE IF EXISTS {staging}", staging=staging)


def _require_table(database: Database, sink: JdbcSink) -> Table:
    table = describe_table(database, sink)
    if table is None:
        raise SinkError(
            "the table is gone",
            where=f"table {sink.table}",
            do="Run again: it is created at the start of a run",
        )
    return table


def _has_rows(database: Database, table: Table) -> bool:
    return database.ask("SELECT to_json(EXISTS (SELECT FROM {table}))", table=table.name)


def _look_for_losses(
    ledger: Ledger, table: str, filled: bool, coming: Preparation, sink: JdbcSink
) -> None:
    """Say where the table or the ledger is not the one that was filled, and have the ledger know
    again what the table has."""
    fill = f"`sluice deliver NAME --sink '{sink.title}' --all` sends what the target holds"
    if not filled:
        ledger.forget(table, coming.due)
        coming.warn(
            f"{sink.title} is empty, although batches are noted as delivered to it: it was "
            f"emptied or made anew, or is in another database. {fill}"
        )
    elif ledger.knows_any(table, coming.known):
        return
    elif ledger.was_made_anew(table):
        ledger.restore(table, coming.known, coming.due | coming.given_up)
        coming.warn(
            f"the ledger {sink.ledger} of {sink.title} was dropped: the batches that are noted as "
            "delivered stand in it again"
        )
    else:
        coming.warn(
            f"{sink.title} was emptied and others wrote to it since: its ledger knows none of the "
            f"batches that are noted as delivered. {fill}"
        )


def _check_taken(sink: JdbcSink, given: int, taken: int) -> None:
    """Raise SinkError where an `append` brought in fewer rows than it was given."""
    if sink.mode == "append" and taken != given:
        raise SinkError(
            f"the table took {taken:,} of {given:,} rows: a trigger or a rule of the table leaves "
            "rows out, or puts them elsewhere, where nobody can count them",
            where=f"table {sink.table}",
            do="Drop the trigger or the rule, and refuse such rows with a rule of the pipeline; "
            "for partitions, declare the table with PARTITION BY",
        )


def _explain_plan(error: SqlError, sink: JdbcSink, table: str) -> Exception:
    if error.state != "42P10":
        return error
    return SinkError(
        "the table has no unique index on the keys of the upsert",
        where=f"table {sink.table}",
        value=sink.keys,
        do=f"Run CREATE UNIQUE INDEX ON {table} ({', '.join(sink.keys)}), or write the keys of "
        "an index it has",
    )


def _naming_row(error: SqlError, table: Table, delivery: Delivery) -> SqlError:
    """An error about a row with the row's keys."""
    row = describe_row(error.detail, table.columns, delivery.keys, delivery.hidden)
    return SqlError(error.state, f"{error.message}; the row with {row}") if row else error


def _check_keys(database: Database, sink: JdbcSink, written: list[Written], staged: Staged) -> None:
    """Raise SinkError for a NULL among the keys of an upsert: it equals nothing, so such a row
    would come in anew each time."""
    nulls = " OR ".join(
        f"c{number} IS NULL" for number, column in enumerate(written) if column.name in sink.keys
    )
    count = nulls and database.ask(
        "SELECT to_json(count(*)) FROM {source} WHERE {nulls}",
        *staged.values,
        source=staged.source,
        nulls=nulls,
    )
    if count:
        raise SinkError(
            f"{count} row(s) have a NULL among the keys of the upsert",
            where=f"table {sink.table}",
            value=sink.keys,
            do="Refuse such rows with a rule",
        )


def _refuse(
    error: SqlError,
    database: Database,
    sink: JdbcSink,
    rows: DataFrame,
    written: list[Written],
    staged: Staged | None,
) -> None:
    """Raise SinkError where more can be said than PostgreSQL does: which column, how many rows."""
    if error.state == "21000":
        raise SinkError(
            "two rows of one batch have the same keys, and nothing says which of them is to stay",
            where=f"table {sink.table}",
            value=sink.keys,
            do="Write the step's `dedup.keys` as the sink's `keys`, or more columns; or reduce "
            "to one row a key in the transform",
        ) from None
    if error.state in ("22021", "22P05"):
        refuse_characters(rows, sink, written)
    if error.state.startswith("22") and staged is not None:
        refuse_misfits(database, staged, sink, written, error)
