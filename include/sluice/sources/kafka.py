"""Kafka topics as a source: each offset one record, its value parsed as a line of a file would
be."""

from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Literal, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ..backlog import (
    RECORD_BYTES,
    TopicBacklog,
    describe_losses,
    end_of,
    measure_expired,
    measure_topics,
    note_ends,
    note_topic_ids,
    planned_offsets,
)
from ..checkpoint import Checkpoint
from ..errors import SluiceError, SourceError, TransientError
from ..report import BatchReport, merge_ranges
from ..spec import KafkaSource, KafkaStart, resolve_cluster
from .intake import IN_MEMORY, BatchInput, Intake, Opening, Room
from .kafka_options import reader_options, start_options
from .kafka_records import read_records


class KafkaIntake(Intake[KafkaSource]):
    """Offsets that wait in topics. `folder`: of the pipeline's YAML. `since`: where a backfill
    begins."""

    def __init__(
        self,
        source: KafkaSource,
        folder: Path,
        checkpoint: Checkpoint | None,
        since: datetime | None = None,
    ) -> None:
        super().__init__(source)
        self.folder, self.since = folder, since
        self.backlog = TopicBacklog()
        if checkpoint is None:
            return
        self.backlog = measure_topics(source, checkpoint)
        self.warnings = describe_losses(self.backlog)
        if self.backlog.passed_over:
            self._refuse_later_end(checkpoint)
        if self.backlog.recreated or (self.warnings and source.fail_on_data_loss):
            self._refuse(checkpoint)
        note_ends(source, checkpoint, self.backlog.committed)
        note_topic_ids(checkpoint, self.backlog.ids)

    @classmethod
    def of(cls, opening: Opening[KafkaSource]) -> Self:
        """From where the checkpoint stands, or from where a backfill begins."""
        since = opening.chosen.since if opening.chosen is not None else None
        return cls(opening.source, opening.folder, opening.checkpoint, since)

    @property
    def partitions(self) -> int:
        """Of all topics."""
        return sum(map(len, self.backlog.partitions.values()))

    def _refuse(self, checkpoint: Checkpoint) -> None:
        """Raise for records that no run can read any more, and for a topic whose offsets mean other
        records now."""
        anew = (
            f"Start over: move the checkpoint {checkpoint.folder.parent} away; keys in the table "
            "keep rows that are read again from being doubled (without `dedup` nothing does)"
        )
        go_on = (
            "Restore the topic, or write `fail_on_data_loss: false` to go on with what there is; "
            "the report then says what is missing"
        )
        raise SourceError(
            f"the topics do not hold what this checkpoint expects: {'; '.join(self.warnings)}",
            where=f"brokers {resolve_cluster(self.source)[0]}",
            do=anew if self.backlog.recreated else go_on,
        )

    def _refuse_later_end(self, checkpoint: Checkpoint) -> None:
        """Raise for records that were none of this source's, and are to be by now."""
        found = self.backlog.passed_over
        shown = [f"{t}/{p}: {count:,}" for t, parts in found.items() for p, count in parts.items()]
        raise SourceError(
            "`ending_offsets` was moved or taken out, and earlier runs have passed over records "
            "that lie before the new end",
            where=f"brokers {resolve_cluster(self.source)[0]}",
            value=", ".join(shown),
            do=f"Put it back; or start over: move the checkpoint {checkpoint.folder.parent} away "
            "(keys in the table keep rows that are read again from being doubled)",
        )

    @property
    def total(self) -> int:
        """Offsets."""
        return self.backlog.records

    def cut(self, room: Room) -> bool:
        """Read in batches of that size, by the size of the first records; a kept row holds the
        record's own bytes beside its columns."""
        kept = (self.backlog.record_bytes or RECORD_BYTES) * (2 if self.source.keep_value else 1)
        bound = max(1, int(room.size * IN_MEMORY) // kept)
        if self.source.is_bounded or self.total <= bound:
            return False
        self.source = self.source.model_copy(update={"max_offsets_per_batch": bound})
        return True

    def has_overfull(self, checkpoint: Checkpoint, batch: int) -> bool | None:
        """By the number of its offsets. None where the brokers do not have all that it was to
        read."""
        bound, ranges = self.source.max_offsets_per_batch, self.inspect(checkpoint, batch).ranges
        if self.backlog.recreated or not self.has_again(BatchInput(ranges=ranges)):
            return None
        planned = sum(until - start for start, until in ranges.values())
        # Spark takes at least one record of each partition, and parts the bound among them.
        return bound is not None and planned > bound + self.partitions

    def open(self, spark: SparkSession) -> DataFrame:
        """Every record of the topics."""
        source = self.source
        frame = (
            spark.readStream.format("kafka").options(**reader_options(source, self._start())).load()
        )
        for topic, ends in source.ending_offsets.items():
            for partition, end in ends.items():
                there = (F.col("topic") == topic) & (F.col("partition") == partition)
                frame = frame.where(~there | (F.col("offset") < end))
        return read_records(frame, source, self.folder)

    def _start(self) -> dict[str, str]:
        moment = KafkaStart(timestamp=self.since) if self.since is not None else None
        return start_options(moment or self.source.start, self.backlog.partitions)

    def inspect(self, checkpoint: Checkpoint, batch: int) -> BatchInput:
        """The offsets of a planned batch."""
        ranges = {
            f"{topic}/{p}": (start, end)
            for topic, parts in planned_offsets(checkpoint, batch).items()
            for p, (start, until) in sorted(parts.items())
            if (end := end_of(self.source, topic, p, until)) > start
        }
        amount = sum(until - start for start, until in ranges.values())
        scan: Literal["exact", "at least"] = "at least" if self.source.ending_offsets else "exact"
        return BatchInput(amount=amount, ranges=ranges, fetched=True, scan=scan)

    def has_again(self, taken: BatchInput) -> bool:
        """Whether the brokers have all of its records, and say so."""
        try:
            return not measure_expired(self.source, taken.ranges)
        except SluiceError:
            return False

    def review(self, batches: list[BatchReport]) -> list[str]:
        """Records that may have expired between planning and reading, where a run goes on without
        them; Spark does not say, so the brokers are asked."""
        nothing: dict[str, tuple[int, int]] = {}
        ranges = reduce(merge_ranges, (batch.ranges for batch in batches), nothing)
        topics = self.backlog.partitions  # another input of the step may have others
        ranges = {at: told for at, told in ranges.items() if at.rpartition("/")[0] in topics}
        if self.source.fail_on_data_loss or not ranges:
            return []
        try:
            expired = measure_expired(self.source, ranges)
        except TransientError as error:
            return [f"whether records expired before they were read is not known: {error}"]
        known = {
            f"{topic}/{p}": count
            for topic, parts in self.backlog.lost.items()
            for p, count in parts.items()
        }
        lost = [
            f"{place}: up to {count - known.get(place, 0):,}"
            for place, count in expired.items()
            if count > known.get(place, 0)
        ]
        return (
            [f"records expired that were to be read, or just had been, {', '.join(lost)}"]
            if lost
            else []
        )
