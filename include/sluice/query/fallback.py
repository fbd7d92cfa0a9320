"""The same queries by Spark, for tables that ask more of a reader than the way without a JVM
has."""

import tempfile
from collections.abc import Callable
from typing import Any

from ..errors import SpecError
from ..launch import spark_settings
from .stored import StoredTable

_OWN_CATALOG = {
    # The views below must never come into a catalog that others look at.
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def query_spark(
    sql: str, told: dict[str, StoredTable], limit: int | None
) -> tuple[Any, Callable[[Exception], Exception]]:
    """A reader of a query's rows, and what makes a sentence of an error while they are read.

    Raises SpecError for what Spark cannot run, PreflightError where it cannot start.
    """
    from arro3.core import RecordBatchReader

    from ..spark.failure import SPARK_FAILED
    from ..spark.fault import sql_message
    from ..spark.session import open_session
    from ..spark.views import collect_query

    first = next(iter(told.values()))
    settings = spark_settings(first.pipeline, 0, root=first.path) | _OWN_CATALOG
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        settings["spark.sql.warehouse.dir"] = folder
        try:
            with open_session(settings) as spark:
                paths = {name: table.path for name, table in told.items()}
                rows = collect_query(spark, sql, paths, limit)
                return RecordBatchReader.from_arrow(rows), lambda error: error
        except SPARK_FAILED as error:
            raise SpecError(
                sql_message(error).rstrip("."), where="SQL", do="Mend the query"
            ) from error
