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
from .staging import Staged, create_staging
from .statement import delete_statement, insert_statement
from .table import (
    Table,
    choose_fields,
    create_table,
    describe_table,
    match_columns,
)
from .transaction import Place, drop_stagings, take_in

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
                statements = [insert_statement(sink, table, written, staging)]
                if coming.mirror:
                    statements.append(delete_statement(sink, table, written, staging))
                try:
                    for statement in statements:
                        database.run("EXPLAIN {statement}", statement=statement)
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
        """Write a batch's rows into the table once, and delete what is gone of a mirror's; returns
        how many rows the batch has, from the ledger when it was written before.

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
            if known is not None and not delivery.whole:
                return known if known >= 0 else rows.count()
            written = match_columns(sink, fields, table)
            stagings = [staging]
            if delivery.gone is not None:
                stagings.append(ledger.lock(f"{table.name}/{delivery.token}"))
            try:
                take_in(Place(database, sink, ledger, table), rows, delivery, written, stagings)
                return ledger.read(delivery.key, table.name, delivery.batch) or 0
            finally:
                with suppress(SqlError):  # a server that is away keeps it; the next run drops it
                    drop_stagings(database, stagings)


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
    if not filled and coming.mirror and not coming.has_rows():
        return  # it is what the target is
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
