"""A Delta table as a source: each commit once."""

import json
from typing import Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ..backlog import (
    TablePosition,
    oldest_version,
    read_position,
    read_start,
    start_file,
    table_version,
)
from ..checkpoint import Checkpoint
from ..errors import SourceError, SpecError
from ..report import COMMITS
from ..spark.columns import DEFECT, RAW, RESCUED, SOURCE, col, own_columns
from ..spark.failure import ChangedTable, UnreadableFile
from ..spec import TableSource, TableStart
from ..storage import depth_below, replace_file
from .intake import IN_MEMORY, UNPACKED, BatchInput, Intake, Opening, Room

_MOST_CHANGES = 20
_ANEW = (
    "move this step's checkpoint away (without `dedup` its table as well, or its rows come twice), "
    "and run again"
)
_CHANGES = {
    "_change_type": "change_type",
    "_commit_version": "commit_version",
    "_commit_timestamp": "commit_timestamp",
}


class TableIntake(Intake[TableSource]):
    """The commits of a table. `place`: its path, or its name in the catalog. `from_start`: read all
    of it, for a backfill."""

    def __init__(
        self,
        source: TableSource,
        place: str,
        checkpoint: Checkpoint | None,
        *,
        from_start: bool = False,
    ) -> None:
        super().__init__(source)
        self.place, self.from_start, self.changes = place, from_start, 0
        self.tracking = (
            str(checkpoint.within("_schema"))
            if checkpoint is not None and source.schema_tracking
            else None
        )
        self.newest = None if source.name else table_version(place)
        self.start = (
            self._note_start(checkpoint)
            if source.start == "latest" and checkpoint is not None and not from_start
            else None
        )
        self.position = (
            read_position(checkpoint, checkpoint.newest_commit) if checkpoint is not None else None
        )
        if self.position is not None and not source.name:
            self._refuse_another(self.position)

    @classmethod
    def of(cls, opening: Opening[TableSource]) -> Self:
        """From where the checkpoint stands; a backfill reads the whole table."""
        from_start = opening.chosen is not None
        return cls(opening.source, opening.place, opening.checkpoint, from_start=from_start)

    def _note_start(self, checkpoint: Checkpoint) -> int | None:
        """The version after the newest of the first run.

        Raises SpecError for a table whose versions only Spark knows.
        """
        start = read_start(checkpoint)
        if start is None and self.source.name is not None:
            raise SpecError(
                "`start: latest` needs the table's path",
                where=f"source {self.source.name}",
                do="Write `path`, or `start: {version: ...}`",
            )
        if start is None:
            start = 0 if self.newest is None else self.newest + 1
            start_file(checkpoint).parent.mkdir(parents=True, exist_ok=True)
            replace_file(start_file(checkpoint), json.dumps({"version": start}))
        return start

    @property
    def is_empty(self) -> bool:
        """True while the first version of a stream that begins at the end is still to come."""
        return self.start is not None and self.newest is not None and self.start > self.newest

    @property
    def total(self) -> int:
        """Commits."""
        return max(0, (self.newest or 0) + 1 - (self.position.version if self.position else 0))

    def cut(self, room: Room) -> bool:
        """Read in batches of that size, by the sizes of files in the table's log. A table that
        is smaller comes in one."""
        bound = int(room.size * IN_MEMORY) // UNPACKED
        if self.source.is_bounded or self.source.event_time_order or not bound:
            return False
        self.source = self.source.model_copy(update={"max_bytes_per_batch": bound})
        return True

    def open(self, spark: SparkSession) -> DataFrame:
        """The table's own columns; those of the change feed without their underscore.

        Raises SourceError for a table that is not there.
        """
        reader = spark.readStream.format("delta").options(**self._options())
        try:
            frame = reader.table(self.place) if self.source.name else reader.load(self.place)
        except Exception as error:
            if any(
                word in str(error)
                for word in (
                    "DELTA_TABLE_NOT_FOUND",
                    "DELTA_SCHEMA_NOT_SET",
                    "PATH_NOT_FOUND",
                    "TABLE_OR_VIEW_NOT_FOUND",
                    "is not a Delta table",
                )
            ):
                raise SourceError(
                    "there is no Delta table",
                    where=self.place,
                    do="Mend the source, or run what writes the table first",
                ) from None
            raise
        own = own_columns(frame.columns)
        columns = [col(name).alias(_CHANGES.get(name, name)) for name in own]
        nothing = F.lit(None).cast("string")
        return frame.select(
            *columns,
            nothing.alias(RAW),
            nothing.alias(DEFECT),
            nothing.alias(RESCUED),
            F.lit(self.place).alias(SOURCE),
        )

    def _options(self) -> dict[str, str]:
        source, ours = self.source, {}
        start = (
            source.start if isinstance(source.start, TableStart) and not self.from_start else None
        )
        version = (
            self.start if self.start is not None and not self.is_empty else start and start.version
        )
        if version is not None:
            ours["startingVersion"] = str(version)
        elif start is not None and start.timestamp is not None:
            ours["startingTimestamp"] = start.timestamp.isoformat()
        flags = {
            "readChangeFeed": source.change_feed,
            "skipChangeCommits": source.skip_change_commits,
        }
        ours |= {name: "true" for name, wanted in flags.items() if wanted}
        if self.tracking:  # who asks for tracking has said that columns may come and go
            allowed = (
                "allowSourceColumnRename",
                "allowSourceColumnDrop",
                "allowSourceColumnTypeChange",
            )
            ours |= {"schemaTrackingLocation": self.tracking, **dict.fromkeys(allowed, "always")}
        if source.event_time_order and not (self.position and self.position.whole):
            return {**source.options, **ours}
        bounds = {
            "maxFilesPerTrigger": source.max_files_per_batch,
            "maxBytesPerTrigger": source.max_bytes_per_batch,
        }
        return {
            **source.options,
            **ours,
            **{name: str(bound) for name, bound in bounds.items() if bound},
        }

    def _refuse_another(self, position: TablePosition) -> None:
        """Raise SourceError for a table that was made anew, or lost commits before they were
        read."""
        if why := position.why_another(self.place):
            raise SourceError(
                f"the source is not what was read before: {why}",
                where=self.place,
                do=f"Put the table back that was read, or read this one: {_ANEW}",
            )
        if self.source.outlives_cleaning:
            return
        oldest = oldest_version(self.place)
        if position.whole and oldest is not None and position.version < oldest:
            raise SourceError(
                f"{oldest - position.version:,} commit(s) that were not read yet are cleaned from "
                "the table's log",
                where=self.place,
                value=f"read up to version {position.version - 1}, the log begins with {oldest}",
                do=f"Read what the table holds now: {_ANEW}. Keep its log for longer than runs lie "
                "apart (delta.logRetentionDuration)",
            )

    def depth(self, path: str) -> int:
        """That of the table; where that is may be known to the catalog alone."""
        return 1 if self.source.name is not None else depth_below(path, self.place)

    def absorb(self, error: Exception) -> None:
        """Go on with the columns that Delta has noted; again and again where they change more than
        once, but not for ever."""
        if isinstance(error, UnreadableFile):
            raise SourceError(
                f"files of the source table are gone or cannot be read, and up to {self.total:,} "
                "commit(s) were not read yet: VACUUM removes what later commits replaced",
                where=error.path,
                value=error.why,
                do=f"Put the file back, or read what the table holds now: {_ANEW}. Let VACUUM keep "
                "files for longer than runs lie apart",
            ) from None
        if not isinstance(error, ChangedTable) or self.changes >= _MOST_CHANGES:
            raise error
        self.changes += 1

    def inspect(self, checkpoint: Checkpoint, batch: int) -> BatchInput:
        """The commits of a planned batch."""
        until = read_position(checkpoint, batch)
        start = read_position(checkpoint, batch - 1) or TablePosition(0)
        if until is None:
            return BatchInput()
        return BatchInput(
            amount=until.version - start.version,
            scan="at least",  # rows that a deletion vector hides are read and left out
            ranges={f"{COMMITS}{self.place}": (start.version, until.version)},
        )
