"""Kafka topics as a source: each offset one record, its value parsed as a line of a file would
be."""

from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import Self

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ..backlog import (
    RECORD_BYTES,
    TopicBacklog,
    describe_losses,
    measure_expired,
    measure_topics,
    note_topic_ids,
    planned_offsets,
)
from ..checkpoint import Checkpoint
from ..errors import SluiceError, SourceError, TransientError
from ..report import BatchReport, merge_ranges
from ..spark.columns import DEFECT, RAW, RESCUED, SOURCE, col
from ..spec import KafkaSource, KafkaStart, resolve_cluster
from .intake import BatchInput, Intake, Opening
from .kafka_options import reader_options, start_options
from .parse.avro_records import parse_avro
from .parse.headers import record_pattern
from .parse.text_records import decode, parse_text

_TOMBSTONE = "the record has no value (a tombstone)"


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
        if self.backlog.recreated or (self.warnings and source.fail_on_data_loss):
            self._refuse(checkpoint)
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

    @property
    def total(self) -> int:
        """Offsets."""
        return self.backlog.records

    def cut(self, size: int) -> bool:
        """Read in batches of so many bytes, by the size of the first records; a kept row holds the
        record's own bytes beside its columns."""
        kept = (self.backlog.record_bytes or RECORD_BYTES) * (2 if self.source.keep_value else 1)
        bound = max(1, size // kept)
        if self.source.is_bounded or self.total <= bound:
            return False
        self.source = self.source.model_copy(update={"max_offsets_per_batch": bound})
        return True

    def open(self, spark: SparkSession) -> DataFrame:
        """Every record of the topics."""
        source = self.source
        frame = (
            spark.readStream.format("kafka").options(**reader_options(source, self._start())).load()
        )
        fields: list[str | Column] = [
            "topic",
            "partition",
            "offset",
            "timestamp",
            F.col("timestampType").alias("timestamp_type"),
            "key",
        ]
        fields += ["headers"] if source.headers else []
        fields += ["value"] if source.keep_value else []
        records = frame.select(
            F.col("value").alias("_value"),
            F.col("value").cast("string").alias(RAW),
            F.struct(*fields).alias(SOURCE),
        )
        parsed = self._parse(records)
        if source.tombstones == "quarantine":
            defect = F.when(F.col("_value").isNull(), F.lit(_TOMBSTONE)).otherwise(F.col(DEFECT))
        else:
            defect = F.when(F.col("_value").isNotNull(), F.col(DEFECT))
        return parsed.select(
            *[col(c) for c in source.columns], RAW, defect.alias(DEFECT), RESCUED, SOURCE
        )

    def _parse(self, records: DataFrame) -> DataFrame:
        source, nothing = self.source, F.lit(None).cast("string")
        if source.format == "bytes":
            return records.select(
                F.col("_value").alias("value"),
                "_value",
                RAW,
                nothing.alias(DEFECT),
                nothing.alias(RESCUED),
                SOURCE,
            )
        if source.format == "avro":
            return parse_avro(records, source, self.folder)
        if source.format == "csv":  # a line break that ends the record is none of it
            records = records.withColumn(RAW, F.regexp_replace(RAW, "\r?\n$", ""))
        parsed = parse_text(
            decode(records, source), source, {}, lambda paths: F.lit(True), SOURCE, "_value"
        )
        if source.format != "csv":
            return parsed
        # A value is one record: what stands in a second line would be passed over in silence.
        lines = F.when(
            F.col(RAW).rlike("[\\r\\n]")
            & ~F.col(RAW).rlike(f"^{record_pattern(source)}[\\r\\n]*$"),
            F.lit("more than one line"),
        )
        blank = F.when(F.btrim(F.col(RAW), F.lit(" \t\r\n")) == "", F.lit("the value is blank"))
        return parsed.withColumn(DEFECT, F.coalesce(blank, lines, F.col(DEFECT)))

    def _start(self) -> dict[str, str]:
        moment = KafkaStart(timestamp=self.since) if self.since is not None else None
        return start_options(moment or self.source.start, self.backlog.partitions)

    def inspect(self, checkpoint: Checkpoint, batch: int) -> BatchInput:
        """The offsets of a planned batch."""
        ranges = {
            f"{topic}/{p}": span
            for topic, parts in planned_offsets(checkpoint, batch).items()
            for p, span in sorted(parts.items())
            if span[1] > span[0]
        }
        amount = sum(until - start for start, until in ranges.values())
        return BatchInput(amount=amount, ranges=ranges, fetched=True, scan="exact")

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
