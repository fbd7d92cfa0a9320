"""The one transaction that takes a batch into a table of PostgreSQL, and notes it in the ledger."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from ...errors import SinkError
from ...spec import JdbcSink
from ..delivery import Delivery
from .ledger import Ledger
from .postgres import Database, SqlError
from .refused import describe_row
from .staging import Staged, refuse_characters, refuse_misfits, stage
from .statement import delete_statement, insert_statement
from .table import Table, Written


@dataclass(frozen=True)
class Place:
    """The table of a sink, and the ledger of what it has."""

    database: Database
    sink: JdbcSink
    ledger: Ledger
    table: Table


def take_in(
    place: Place,
    rows: DataFrame,
    delivery: Delivery,
    written: list[Written],
    stagings: Sequence[str],
) -> None:
    """Bring a batch to the database, then take it into the table in one transaction, unless the
    ledger has it. Args: stagings: names for its rows and, of a mirror, for keys that are gone."""
    database, sink, staged = place.database, place.sink, None
    name = delivery.key, place.table.name, delivery.batch
    try:
        staged = stage(database, rows, sink, written, stagings[0])
        keys = [column for key in sink.keys for column in written if column.name == key]
        gone = delivery.gone
        left = gone is not None and stage(database, gone, sink, keys, stagings[-1])
        with database.transaction():
            if delivery.whole:
                place.ledger.strike(*name)
            if place.ledger.note(*name, staged):
                _check_keys(database, sink, written, staged)
                if delivery.whole:
                    _delete(place, written, staged, others=True)
                elif left:
                    _delete(place, keys, left)
                statement = insert_statement(sink, place.table, written, staged.source)
                taken = database.run("{insert}", *staged.values, insert=statement)
                _check_taken(sink, place.ledger.read(*name) or 0, taken)
            drop_stagings(database, stagings)
    except SqlError as error:
        _refuse(error, database, sink, rows, written, staged)
        raise _naming_row(error, place.table, delivery) from None


def _delete(place: Place, columns: list[Written], staged: Staged, *, others: bool = False) -> None:
    """Delete the rows of staged keys, or all others. Before the rows come in: one of them may have
    a key that the database takes for that of one that is gone."""
    statement = delete_statement(place.sink, place.table, columns, staged.source, others=others)
    place.database.run("{delete}", *staged.values, delete=statement)


def drop_stagings(database: Database, stagings: Sequence[str]) -> None:
    """Drop staging tables, those of them that are there. Raises SqlError."""
    for staging in stagings:
        database.run("DROP TABLE IF EXISTS {staging}", staging=staging)


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
            do="Write columns as the sink's `keys` that tell any two rows apart: the step's "
            "`dedup.keys`, or its groups and what it groups by besides; or reduce to one row a key "
            "in the transform",
        ) from None
    if error.state in ("22021", "22P05"):
        refuse_characters(rows, sink, written)
    if error.state.startswith("22") and staged is not None:
        refuse_misfits(database, staged, sink, written, error)
