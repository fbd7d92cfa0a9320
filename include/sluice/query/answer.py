"""One query over stored tables, by whichever engine can read them."""

from collections.abc import Callable, Iterator
from typing import Any

from .delta import Unreadable, query_delta
from .fallback import query_spark
from .stored import StoredTable, find_mentioned


class Answer:
    """The rows of a query, as they come. `names`: of its columns, some of which may be equal."""

    def __init__(
        self, reader: Any, explain: Callable[[Exception], Exception], limit: int | None
    ) -> None:
        self._reader, self._explain, self._limit = reader, explain, limit
        self.names: list[str] = [field.name for field in reader.schema]

    def rows(self) -> Iterator[tuple]:
        """The rows up to the limit; nothing more is read than these need.

        Raises SpecError for a value that the query cannot compute with.
        """
        left = self._limit
        while left is None or left > 0:
            try:
                batch = self._reader.read_next_batch()
            except StopIteration:
                return
            except Exception as error:
                raise self._explain(error) from error
            if left is not None:
                batch = batch.slice(0, min(left, batch.num_rows))
                left -= batch.num_rows
            yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: Any) -> list:
    """A column as Python's values; as text where a time lies outside of Python's years."""
    kind = str(column.type)
    if "Interval" in kind:
        return _by_pyarrow(column).to_pylist()
    try:
        values = [_plain(value.as_py()) for value in column]
    except (ValueError, OverflowError):
        return _by_pyarrow(column).cast("string").to_pylist()
    is_map = kind.startswith("arro3.core.DataType<Map")
    return [{} if value == [] and is_map else value for value in values]


def _by_pyarrow(column: Any) -> Any:
    # Only where it is needed: it takes a second to load.
    import pyarrow

    return pyarrow.array(column)


def _plain(value: Any) -> Any:
    """A value in which a map is a dict, and not a list of pairs."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if not isinstance(value, list):
        return value
    if value and all(isinstance(inner, tuple) for inner in value):
        return {name: _plain(inner) for name, inner in value}
    return [_plain(inner) for inner in value]


def query_stored(sql: str, named: dict[str, StoredTable], limit: int | None = None) -> Answer:
    """The answer to a query, never by Spark.

    Args: named: name in SQL -> table. limit: of the rows.

    Raises SpecError for SQL that is no query or names what is not there, Unreadable for a table
    that only Spark can read.
    """
    return Answer(*query_delta(sql, find_mentioned(sql, named), named), limit)


def query_tables(
    sql: str,
    named: dict[str, StoredTable],
    say: Callable[[str], None],
    limit: int | None = None,
) -> Answer:
    """The answer to a query.

    Args: named: name in SQL -> table. say: is told why Spark is started, where it is. limit: of
    the rows.

    Raises SpecError for SQL that is no query or names what is not there.
    """
    try:
        return query_stored(sql, named, limit)
    except Unreadable as unreadable:
        say(f"Spark is started, because {unreadable}")
        return Answer(*query_spark(sql, find_mentioned(sql, named), limit, say), limit)
