"""Topics that a step reads as a whole, up to where they end when a run begins."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ..backlog import Offsets, find_ends
from ..spark.columns import DEFECT, SOURCE, col
from ..spark.kafka_failure import UNFIT
from ..spec import KafkaSource
from .kafka_options import reader_options, start_options
from .kafka_records import read_records

_RECORD = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>"
)


@dataclass(frozen=True)
class StaticTopic:
    """`folder`: of the pipeline's YAML. `ends`: the offset before which each partition is read;
    empty where nothing is read."""

    source: KafkaSource
    folder: Path
    ends: Offsets

    version = None
    """What a table has and topics do not."""

    @classmethod
    def of(cls, source: KafkaSource, folder: Path) -> "StaticTopic":
        """The topics as they are now. Raises SourceError for one that is not there, TransientError
        for brokers that cannot be asked."""
        return cls(source, folder, find_ends(source))

    @property
    def position(self) -> dict[str, dict[str, int]]:
        """Up to where they are read, as JSON has it."""
        return {t: {str(p): end for p, end in ends.items()} for t, ends in self.ends.items()}

    def at(self, position: dict[str, dict[str, int]] | None) -> "StaticTopic":
        """The topics up to a position; up to their own where none is named."""
        if position is None:
            return self
        ends = {t: {int(p): end for p, end in found.items()} for t, found in position.items()}
        return replace(self, ends=ends)

    def depth(self, path: str) -> int:
        """None: its records lie in no file."""
        return 0

    def open(self, spark: SparkSession) -> DataFrame:
        """The columns of the schema, `_source` and `_defect`."""
        records = self._load(spark) if self.ends else spark.createDataFrame([], _RECORD)
        if self.source.newest_per_key:
            records = _newest(records)
        rows = read_records(records, self.source, self.folder)
        return rows.select(*[col(c) for c in self.source.columns], SOURCE, DEFECT)

    def read(self, spark: SparkSession, name: str) -> DataFrame:
        """The columns of the schema. A record that does not fit it fails the query that reads it:
        nobody counts the rows of a static input, so none may be missing in silence."""
        rows = self.open(spark)
        parts = F.struct(*[F.col(f"{SOURCE}.{part}") for part in ("topic", "partition", "offset")])
        told = [F.lit(f"{UNFIT} {name}: "), F.col(DEFECT), F.lit(" at "), F.to_json(parts)]
        failing = F.raise_error(F.concat(*told)).cast("boolean")
        fits = F.when(F.col(DEFECT).isNull(), F.lit(True)).otherwise(failing)
        # Of each column as well: a join leaves rows without its key out before it asks the filter.
        columns = [F.when(fits, col(c)).alias(c) for c in self.source.columns]
        return rows.where(fits).select(*columns)

    def _load(self, spark: SparkSession) -> DataFrame:
        """Partitions by their numbers: one that is made meanwhile is not this run's."""
        partitions = {topic: sorted(ends) for topic, ends in self.ends.items()}
        source = self.source.model_copy(
            update={
                "subscribe": [],
                "subscribe_pattern": None,
                "assign": partitions,
                "max_offsets_per_batch": None,
            }
        )
        options = reader_options(source, start_options(source.start, partitions))
        options["endingOffsets"] = json.dumps(self.position)
        return spark.read.format("kafka").options(**options).load()


def _newest(records: DataFrame) -> DataFrame:
    """The newest record of each key, without those that take their key out of the topic (they have
    no value). Within a partition the offset tells which is newest, as it does to compaction; of
    partitions that both have a key the later moment does. A record without a key stays."""
    alone = F.when(F.col("key").isNull(), F.struct("partition", "offset")).alias("alone")
    of_key: list[str | Column] = ["topic", "key", alone]
    whole = F.struct(*records.columns)
    found = records.groupBy(*of_key, "partition").agg(F.max_by(whole, "offset").alias("record"))
    moment = F.struct("record.timestamp", "record.offset")
    found = found.groupBy("topic", "key", "alone").agg(F.max_by("record", moment).alias("record"))
    return found.select("record.*").where(F.col("value").isNotNull())
