"""The same queries by Spark, for tables that ask more of a reader than the way without a JVM
has."""

import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import SpecError
from ..launch import spark_settings
from .stored import StoredTable, StoredTopic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OWN_CATALOG = {
    # The views below must never come into a catalog that others look at.
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def query_spark(
    sql: str, told: dict[str, StoredTable], limit: int | None, say: Callable[[str], None]
) -> tuple[Any, Callable[[Exception], Exception]]:
    """A reader of a query's rows, and what makes a sentence of an error while they are read.

    Args: say: is told what of a topic is left out.

    Raises SpecError for what Spark cannot run, PreflightError where it cannot start.
    """
    from arro3.core import RecordBatchReader

    from ..spark.failure import SPARK_FAILED
    from ..spark.fault import sql_message
    from ..spark.session import open_session
    from ..spark.views import collect_query

    first = next(iter(told.values()))
    topics = [table for table in told.values() if isinstance(table, StoredTopic)]
    # Whose session it is says which jars it has: those for Kafka where there is a topic.
    asking = topics[0].pipeline if topics else first.pipeline
    root = next((t.path for t in told.values() if t not in topics), None)
    # What they hold is put into a folder of this machine.
    master = "local[*]" if topics else None
    settings = spark_settings(asking, 0, master=master, root=root) | _OWN_CATALOG
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        settings["spark.sql.warehouse.dir"] = folder
        try:
            with open_session(settings) as spark:
                paths = {
                    name: _read_topic(spark, table, f"{folder}/{name}", say)
                    if isinstance(table, StoredTopic)
                    else table.path
                    for name, table in told.items()
                }
                rows = collect_query(spark, sql, paths, limit)
                return RecordBatchReader.from_arrow(rows), lambda error: error
        except SPARK_FAILED as error:
            raise SpecError(
                sql_message(error).rstrip("."), where="SQL", do="Mend the query"
            ) from error


def _read_topic(
    spark: "SparkSession", topic: StoredTopic, path: str, say: Callable[[str], None]
) -> str:
    """Write what a topic holds now to a table, so that a query that names it twice sees it once.
    Returns the table's path."""
    from ..sources import StaticTopic
    from ..spark.columns import DEFECT
    from ..spark.kept import keep_rows

    source = topic.source.model_copy(update={"start": "earliest", "keep_value": False})
    with keep_rows(StaticTopic.of(source, topic.pipeline.folder).open(spark)) as rows:
        unfit = rows.where(rows[DEFECT].isNotNull()).count()
        rows.where(rows[DEFECT].isNull()).drop(DEFECT).write.format("delta").save(path)
    if unfit:
        say(f"{unfit:,} record(s) of {topic.path} do not fit the schema and are left out")
    return path
