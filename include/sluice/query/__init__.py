"""SQL over the tables of pipelines: without a JVM, and by Spark where a table asks for more."""

from .answer import Answer, query_stored, query_tables
from .delta import Unreadable, count_rows
from .pii import HIDDEN, hide_values
from .stored import StoredTable, StoredTopic, name_tables, tables_of, topics_of

__all__ = [
    "HIDDEN",
    "Answer",
    "StoredTable",
    "StoredTopic",
    "Unreadable",
    "count_rows",
    "hide_values",
    "name_tables",
    "query_stored",
    "query_tables",
    "tables_of",
    "topics_of",
]
