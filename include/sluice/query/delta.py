"""Reads Delta tables without a JVM, by the `deltalake` package and the DataFusion within it."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import SluiceError, SourceError, SpecError
from ..storage import in_bucket
from ..storage.buckets import delta_options
from .stored import StoredTable, StoredTopic, missing_table

if TYPE_CHECKING:
    from deltalake import DeltaTable

_KNOWN = {"columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint"}
"""What a table may ask of a reader that this one was compared with Spark at. A variant, for one, it
takes for a struct of bytes."""
_SETTINGS = {
    # Spark's own form of times, which others' tables and older ones have, is else read in
    # nanoseconds: the year 9999 becomes 1816.
    "datafusion.execution.parquet.coerce_int96": "us",
}
_QUERY = re.compile(
    r"(?:\s|\(|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*(?:select|with|values|from)\b", re.I | re.S
)
_ABSENT = re.compile(r"table 'datafusion\.([^']+)' not found")
_STORED = re.compile(r"Object Store error|Parquet error|ParquetError|Generic \w+ error")
_LAYERS = re.compile(r"^(?:[A-Z]\w*(?: \w+)* error|Error during planning|SQL error): ")
_PARSER = re.compile(r'^ParserError\("(.*)"\)$', re.S)


class Unreadable(Exception):
    """Raised for a table that only Spark can read; the text says why."""


def open_table(table: StoredTable) -> "DeltaTable":
    """A table's newest version. Raises Unreadable."""
    if isinstance(table, StoredTopic):
        raise Unreadable(f"{table.full_name} is a topic ({table.path})")
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    options = delta_options() if in_bucket(table.path) else None
    try:
        found = DeltaTable(table.path, storage_options=options)
    except (DeltaError, OSError) as error:
        raise Unreadable(f"{table.full_name} cannot be read here: {_sentence(error)}") from error
    more = sorted(set(found.protocol().reader_features or ()) - _KNOWN)
    if more:
        raise Unreadable(f"{table.full_name} is written with {', '.join(more)}")
    return found


def count_rows(table: StoredTable) -> int | None:
    """How many rows a table holds, by the statistics in its log; None where these do not say."""
    try:
        found = open_table(table)
    except Unreadable:
        return None
    files: Any = found.get_add_actions()
    counts = [count.as_py() for count in files.column("num_records")]
    return None if None in counts else sum(counts) - _count_deleted(found)


def _count_deleted(found: "DeltaTable") -> int:
    """Rows that lie in files and are marked as deleted: the statistics count them too."""
    if "deletionVectors" not in (found.protocol().reader_features or ()):
        return 0
    batches: Any = found.deletion_vectors()
    kept = (vector.as_py() for batch in batches for vector in batch.column("selection_vector"))
    return sum(vector.count(False) for vector in kept)


def query_delta(
    sql: str, told: dict[str, StoredTable], named: dict[str, StoredTable]
) -> tuple[Any, Callable[[Exception], Exception]]:
    """A reader of a query's rows, and what makes a sentence of an error while they are read.

    Args: told: the tables that the query may name. named: all there are.

    Raises SpecError for what is no query, Unreadable for tables that only Spark can read.
    """
    if not _QUERY.match(sql):
        raise SpecError(
            "only queries are answered, nothing is changed", where="SQL", do="Write SELECT ..."
        )
    from deltalake import QueryBuilder

    builder = QueryBuilder(_SETTINGS)
    for name, table in told.items():
        schema = name.rpartition(".")[0]
        if schema:
            builder.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        builder.register(".".join(f'"{part}"' for part in name.split(".")), open_table(table))

    def explain(error: Exception) -> SluiceError:
        absent = _ABSENT.search(str(error))
        if absent:
            return missing_table(absent[1].removeprefix("public."), named)
        if _STORED.search(str(error)):
            return SourceError(
                f"a file of a table cannot be read: {_sentence(error)}",
                where=", ".join(sorted({table.path for table in told.values()})),
                do="Ask again; where that does not help, the table has lost the file",
            )
        return SpecError(_sentence(error), where="SQL", do="Mend the query")

    try:
        return builder.execute(sql), explain
    except Exception as error:
        raise explain(error) from error


def _sentence(error: Exception) -> str:
    """What the engine says, without the layers that passed it on."""
    text = str(error).rpartition("caused by\n")[2].strip()
    while layer := _LAYERS.match(text):
        text = text[layer.end() :]
    if parser := _PARSER.match(text):
        text = parser[1].replace('\\"', '"')
    return " ".join(text.split()).rstrip(".")[:500]
