"""Tables under names of SQL, for one query."""

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from .columns import quote

if TYPE_CHECKING:
    import pyarrow


def collect_query(
    session: SparkSession, sql: str, paths: dict[str, str], limit: int | None
) -> "pyarrow.Table":
    """The rows of a query, or the first of them.

    Args: paths: name in SQL, with or without a schema -> table.

    The names are views of the session's catalog until the query is done.
    """
    schemas = {name.partition(".")[0] for name in paths if "." in name}
    names = {".".join(map(quote, name.split("."))): path for name, path in paths.items()}
    try:
        for schema in schemas:
            session.sql(f"CREATE SCHEMA IF NOT EXISTS {quote(schema)}")
        for name, path in names.items():
            session.sql(f"CREATE OR REPLACE VIEW {name} AS TABLE delta.{quote(path)}")
        rows = _as_json(session.sql(sql))
        return (rows if limit is None else rows.limit(limit)).toArrow()
    finally:
        for name in names:
            session.sql(f"DROP VIEW IF EXISTS {name}")


def _as_json(frame: DataFrame) -> DataFrame:
    """The rows with each variant as the JSON that it stands for."""
    told = [
        f"to_json({quote(field.name)}) AS {quote(field.name)}"
        if "variant" in field.dataType.simpleString()
        else quote(field.name)
        for field in frame.schema
    ]
    return frame.selectExpr(*told) if any("to_json" in one for one in told) else frame
