"""A table that a step reads as a whole, as it is when a run begins."""

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from ..backlog import table_version
from ..errors import SourceError
from ..spark.columns import col, own_columns
from ..spec import TableSource
from ..storage import depth_below


@dataclass(frozen=True)
class StaticTable:
    """`place`: its path, or its name in the catalog. `version`: that the run reads; None of one by
    name, which is read at its newest in each batch."""

    source: TableSource
    place: str
    version: int | None

    @classmethod
    def of(cls, source: TableSource, place: str) -> "StaticTable":
        """The table as it is now."""
        return cls(source, place, None if source.name else table_version(place))

    @property
    def position(self) -> int | None:
        """Up to where it is read."""
        return self.version

    def at(self, version: int | None) -> "StaticTable":
        """The table at a version; at its own where none is named."""
        return self if version is None else replace(self, version=version)

    def depth(self, path: str) -> int:
        """As of an intake: how far down a file lies that may be one of the table's."""
        return 1 if self.source.name is not None else depth_below(path, self.place)

    def read(self, spark: SparkSession, name: str) -> DataFrame:
        """Its own columns, at one version for the whole run, so that every batch sees the same.

        Raises SourceError for a table that is not there.
        """
        try:
            frame = spark.table(self.place) if self.source.name else self._load(spark)
        except Exception as error:
            if "DELTA_VERSION_NOT_FOUND" in str(error):
                raise SourceError(
                    f"static input {name} has no version {self.version} any more: the table was "
                    "made anew, or its log was cleaned",
                    where=self.place,
                    do="Put the table back that was read",
                ) from None
            missing = ("DELTA_TABLE_NOT_FOUND", "PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND")
            if self.source.name and not any(word in str(error) for word in missing):
                raise
            if not self.source.name and self.version is not None:
                raise
            raise SourceError(
                f"static input {name}: there is no Delta table",
                where=self.place,
                do="Mend the input, or run what writes the table first",
            ) from None
        return frame.select(*map(col, own_columns(frame.columns)))

    def _load(self, spark: SparkSession) -> DataFrame:
        reader = spark.read.format("delta")
        if self.version is not None:
            reader = reader.option("versionAsOf", self.version)
        return reader.load(self.place)
