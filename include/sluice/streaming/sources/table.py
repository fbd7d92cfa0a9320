"""A Delta table as a source: each commit once."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ...backlog import Checkpoint
from ...backlog.delta import TablePosition, read_position, table_version
from ...errors import SourceError
from ...report import COMMITS
from ...spec import SYSTEM_COLUMNS, TableSource
from ..columns import DEFECT, ENGINE_COLUMNS, RAW, RESCUED, SOURCE, col
from .intake import BatchInput, Intake

_CHANGES = {"_change_type": "change_type", "_commit_version": "commit_version", "_commit_timestamp": "commit_timestamp"}


class TableIntake(Intake):
    """The commits of a table. `place`: its path, or its name in the catalog. `from_start`: read all of it, for a backfill."""

    def __init__(self, source: TableSource, place: str, checkpoint: Checkpoint | None, *, from_start: bool = False) -> None:
        super().__init__(source)
        self.place, self.from_start = place, from_start
        self.tracking = str(Path(str(checkpoint.folder)) / "_schema") if checkpoint is not None and source.schema_tracking else None
        position = read_position(checkpoint, checkpoint.newest_commit) if checkpoint is not None else None
        newest = None if source.name else table_version(place)
        self._waiting = 0 if newest is None else newest + 1 - (position.version if position else 0)

    @property
    def total(self) -> int:
        """Commits."""
        return max(self._waiting, 0)

    def open(self, spark: SparkSession) -> DataFrame:
        """The table's own columns; those of the change feed without their underscore. Raises SourceError for a table that is not there."""
        reader = spark.readStream.format("delta").options(**self._options())
        try:
            frame = reader.table(self.place) if self.source.name else reader.load(self.place)
        except Exception as error:
            if any(word in str(error) for word in ("DELTA_TABLE_NOT_FOUND", "DELTA_SCHEMA_NOT_SET", "PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "is not a Delta table")):
                raise SourceError("there is no Delta table", where=self.place, do="Mend the source, or run what writes the table first") from None
            raise
        ours = {*SYSTEM_COLUMNS, *ENGINE_COLUMNS, "_late_by_seconds"}
        columns = [col(name).alias(_CHANGES.get(name, name)) for name in frame.columns if name not in ours]
        nothing = F.lit(None).cast("string")
        return frame.select(*columns, nothing.alias(RAW), nothing.alias(DEFECT), nothing.alias(RESCUED), F.lit(self.place).alias(SOURCE))

    def _options(self) -> dict[str, str]:
        source, ours = self.source, {}
        if source.start == "latest" and not self.from_start:
            ours["startingVersion"] = "latest"
        elif source.start != "earliest" and not self.from_start:
            ours |= {"startingVersion": str(source.start.version)} if source.start.version is not None else {"startingTimestamp": source.start.timestamp.isoformat()}
        flags = {"readChangeFeed": source.change_feed, "skipChangeCommits": source.skip_change_commits, "withEventTimeOrder": source.event_time_order is not None}
        ours |= {name: "true" for name, wanted in flags.items() if wanted}
        ours |= {"schemaTrackingLocation": self.tracking} if self.tracking else {}
        bounds = {"maxFilesPerTrigger": source.max_files_per_batch, "maxBytesPerTrigger": source.max_bytes_per_batch}
        return {**source.options, **ours, **{name: str(bound) for name, bound in bounds.items() if bound}}

    def inspect(self, checkpoint: Checkpoint, batch: int) -> BatchInput:
        """The commits of a planned batch."""
        until = read_position(checkpoint, batch)
        start = read_position(checkpoint, batch - 1) or TablePosition(0, 0)
        if until is None:
            return BatchInput()
        return BatchInput(amount=until.version - start.version, ranges={f"{COMMITS}{self.place}": (start.version, until.version)})
