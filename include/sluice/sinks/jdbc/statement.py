"""The statements that take staged rows into a sink's table, and rows that are gone out of it."""

from ...spec import JdbcSink
from .table import Table, Written, quote_name


def insert_statement(sink: JdbcSink, table: Table, columns: list[Written], source: str) -> str:
    """The statement that takes staged rows into the table.

    Under `upsert` with an order one row of a key goes in, and one that ranks behind the table's own
    stays out: a batch may come after one that is newer. Args: source: what stands after FROM.
    """
    values = {column.name: _value(number, column) for number, column in enumerate(columns)}
    names = ", ".join(quote_name(column.name) for column in columns)
    if sink.order:
        source = _first_of_each_key(sink, columns, values, source)
    chosen = ", ".join(values.values())
    statement = f"INSERT INTO {table.name} AS held ({names}) SELECT {chosen} FROM {source}"  # noqa: S608 (names are quoted, types come from the catalog)
    if sink.mode == "append":
        return statement
    updates = ", ".join(
        f"{quote_name(c.name)} = EXCLUDED.{quote_name(c.name)}"
        for c in columns
        if c.name not in sink.keys
    )
    keys = ", ".join(map(quote_name, sink.keys))
    if not updates:
        return f"{statement} ON CONFLICT ({keys}) DO NOTHING"
    behind = f" WHERE NOT ({_ranks_before(sink, columns)})" if sink.order else ""
    return f"{statement} ON CONFLICT ({keys}) DO UPDATE SET {updates}{behind}"


def delete_statement(
    sink: JdbcSink, table: Table, columns: list[Written], source: str, *, others: bool = False
) -> str:
    """The statement that deletes the rows of staged keys, or all `others`. Args: columns: those
    that are staged, the keys among them."""
    same = " AND ".join(
        f"held.{quote_name(column.name)} = {_value(number, column)}"
        for number, column in enumerate(columns)
        if column.name in sink.keys
    )
    wanted = "NOT EXISTS" if others else "EXISTS"
    return f"DELETE FROM {table.name} AS held WHERE {wanted} (SELECT FROM {source} WHERE {same})"  # noqa: S608 (as above)


def _value(number: int, column: Written) -> str:
    """A staged value. Text is assigned, not cast: a cast to varchar(n) would cut what is too long,
    an assignment refuses it."""
    return f"c{number}" if column.is_text else f"c{number}::{column.base}"


def _first_of_each_key(
    sink: JdbcSink, columns: list[Written], values: dict[str, str], source: str
) -> str:
    """The staged rows that rank first of their keys; the rest of what they say breaks ties, so that
    the same batch always gives the same rows."""
    keys = [values[key] for key in sink.keys]
    order = [
        f"{_sortable(values[name], columns, name)} {'DESC NULLS LAST' if down else 'NULLS FIRST'}"
        for name, down in sink.order
    ]
    ties = [f'c{number} COLLATE "C"' for number, _ in enumerate(columns)]
    ranked = ", ".join([*keys, *order, *ties])
    return f"(SELECT DISTINCT ON ({', '.join(keys)}) * FROM {source} ORDER BY {ranked}) AS newest"  # noqa: S608 (as above)


def _ranks_before(sink: JdbcSink, columns: list[Written]) -> str:
    """SQL under which the row that the table holds comes before the new one: NULL first ascending
    and last descending, as Spark sorts; of equal ones the new one is taken."""
    verdict = "FALSE"
    for name, down in reversed(sink.order):
        held, new = (
            _sortable(f"{side}.{quote_name(name)}", columns, name) for side in ("held", "EXCLUDED")
        )
        first = (
            f"coalesce({held} > {new}, {new} IS NULL)"
            if down
            else f"coalesce({held} < {new}, {held} IS NULL)"
        )
        verdict = f"CASE WHEN {held} IS NOT DISTINCT FROM {new} THEN {verdict} ELSE {first} END"
    return verdict


def _sortable(value: str, columns: list[Written], name: str) -> str:
    """A value as Spark compares it: text by its characters."""
    is_text = next(column.is_text for column in columns if column.name == name)
    return f'({value}) COLLATE "C"' if is_text else value
