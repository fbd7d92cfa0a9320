"""Batches as files of a folder that any reader may read: no log says which of them count, so each
row must be in exactly one file at any moment.

What is promised: no file is ever seen half-written; a row is never seen twice; a batch that comes
again changes nothing; other files are left alone. What cannot be: several files do not appear in
one instant. A batch of up to 250 000 rows is one file (one in each partition folder) and appears by
one rename (each); the files of a larger one, or of several partitions, appear one after the other,
when all are written. A reader in between, or one that comes while a killed run has not been
replayed, sees a part of that batch. A store without renames (S3) copies each file, which takes
longer.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StringType, StructType

from ...errors import SpecError
from ...spark.columns import col, quote
from ...spark.failure import SPARK_FAILED, explain_delivery
from ...spark.jvm import jvm_of
from ...spec import FilesSink
from ...storage import is_remote, resolve_path
from ..delivery import Delivery
from ..writer import Preparation, Writer
from .publication import Publisher, ledger_folder
from .store import FileStore

ROWS_OF_ONE_FILE = 250_000
"""Rows up to which a batch is written by one task: thousands of small batches must not make a file
for each core and partition."""


class FilesWriter(Writer[FilesSink]):
    """Writes batches as files of a folder."""

    def prepare(self, coming: Preparation) -> None:
        """Raise SpecError for a folder or columns that such files cannot have."""
        check_sink(self.sink, coming.own, coming.where)

    def deliver(self, rows: DataFrame, delivery: Delivery) -> int:
        """Write the user's columns of a batch as files, once.

        Raises SpecError when Spark cannot write such columns or options, TransientError when the
        store fails.
        """
        folder = resolve_path(self.sink.path, delivery.root)
        key = f"{delivery.key} {self.sink.format}"
        try:
            publisher = Publisher(FileStore(rows.sparkSession, folder), folder, key)
            newest = publisher.recover()
            if not delivery.again and newest is not None and newest.batch == delivery.batch:
                return newest.rows
            rows = rows.select(*[col(c) for c in delivery.columns])
            count = rows.count()
            if delivery.mirror:
                self._replace(publisher, rows, count, delivery)
                return count
            # One that comes out of turn may be there without a note: only the newest keeps its own.
            look = delivery.again or (newest is not None and newest.batch > delivery.batch)
            if count and not (look and publisher.has_files(delivery.batch)):
                staged = publisher.stage()
                _write(rows, self.sink, count, staged)
                publisher.publish(delivery.batch, count, staged)
            return count
        except SPARK_FAILED as error:
            raise explain_delivery(error, folder) from error

    def places(self, schema: StructType) -> dict[str, str]:
        """A row stands in its partition, and Spark writes no text as NULL there."""
        text = {field.name for field in schema.fields if isinstance(field.dataType, StringType)}
        return {
            name: f"nullif({quote(name)}, '')" if name in text else quote(name)
            for name in self.sink.partition_by
        }

    def _replace(self, publisher: Publisher, rows: DataFrame, count: int, of: Delivery) -> None:
        """Put the rows in the place of what their partitions held, and empty those that are gone.

        A reader sees a partition without its rows for as long as a few files take to be renamed.
        """
        if of.whole or not self.sink.partition_by:
            replaced = publisher.list_partitions()
        else:
            replaced = set() if of.gone is None else _name_folders(of.gone)
        staged = publisher.stage()
        if count:
            _write(rows, self.sink, count, staged)
        publisher.publish(of.batch, count, staged, replaced)


def _name_folders(gone: DataFrame) -> set[str]:
    """The folders of partitions, as Spark names them."""
    utils = jvm_of(gone.sparkSession).org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
    values = gone.select(*[col(name).cast("string").alias(name) for name in gone.columns])
    return {
        "/".join(utils.getPartitionPathString(n, v) for n, v in row.asDict().items())
        for row in values.collect()
    }


def check_sink(sink: FilesSink, columns: StructType, where: str) -> None:
    """Raise SpecError for a sink that cannot take these columns. `where`: the sink's place in the
    pipeline."""
    if is_remote(sink.path):
        ledger_folder(resolve_path(sink.path, ""), "")
    for name in sink.partition_by:
        if name not in columns.names:
            raise SpecError(
                f"no column {name!r} after parse and transform",
                where=f"{where}.partition_by",
                do=f"There are: {', '.join(columns.names)}",
            )
    if columns.names and set(columns.names) <= set(sink.partition_by):
        raise SpecError(
            "every column is a partition column, so the files would be empty",
            where=f"{where}.partition_by",
            do="Leave at least one out",
        )
    for field in columns.fields:
        nested = isinstance(field.dataType, ArrayType | MapType | StructType)
        if nested and (sink.format == "csv" or field.name in sink.partition_by):
            place = "a CSV file" if sink.format == "csv" else "a folder's name"
            raise SpecError(
                f"{place} cannot hold the nested column {field.name!r}",
                where=where,
                value=field.dataType.simpleString(),
                do=f"Write to_json({field.name}) in the transform, or another format",
            )


def _write(rows: DataFrame, sink: FilesSink, count: int, staged: str) -> None:
    """Let Spark write one file, or for a large batch some of good size, each with the rows of few
    partitions."""
    spread = (
        rows.coalesce(1)
        if count <= ROWS_OF_ONE_FILE
        else rows.hint("rebalance", *[F.col(quote(name)) for name in sink.partition_by])
    )
    writer = spread.write.format(sink.format)
    if sink.format == "csv":
        writer = writer.option("header", "true")
    writer.options(**sink.options).partitionBy(*sink.partition_by).save(staged)
