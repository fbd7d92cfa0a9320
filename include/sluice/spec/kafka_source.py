"""Topics as a source."""

from datetime import UTC, datetime
from typing import ClassVar, Literal

from pydantic import Field, NonNegativeInt, field_validator, model_validator

from ..storage.paths import Paths
from .kafka_cluster import KafkaCluster
from .model import Spec
from .records import Records

SOURCE_FIELDS = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestamp_type": "int",
    "key": "binary",
}
"""What `_source` holds of a Kafka record, beside `headers` and `value` where they are kept."""


class KafkaStart(Spec):
    """Where the first run begins."""

    timestamp: datetime | None = None
    """The first record at or after this moment, UTC when no zone is given; a partition that has
    none yet is read from its end."""
    offsets: dict[str, dict[int, NonNegativeInt | Literal["earliest", "latest"]]] | None = None
    """Topic -> partition -> offset. Partitions that are not named are read from the earliest."""

    @field_validator("timestamp")
    @classmethod
    def _in_utc(cls, value: datetime | None) -> datetime | None:
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value

    @model_validator(mode="after")
    def _check_one(self) -> "KafkaStart":
        if (self.timestamp is None) == (self.offsets is None):
            raise ValueError("write either `timestamp` or `offsets`")
        return self


class Avro(Spec):
    """How Avro values are written."""

    schema_file: str
    """The schema the values were written with (.avsc), relative to the pipeline's YAML."""
    wire: Literal["plain", "confluent"] = "plain"
    """`confluent`: each value begins with a zero byte and the four bytes of a registry's schema
    id."""


class KafkaSource(Records, KafkaCluster):
    """Records of Kafka topics; each offset is read once."""

    kind: Literal["kafka"]
    subscribe: list[str] = []
    """Topics by name."""
    subscribe_pattern: str | None = None
    """A Java regular expression of topic names; topics made later are read as well."""
    assign: dict[str, list[int]] = {}
    """Topic -> partitions."""
    format: Literal["json", "csv", "text", "bytes", "avro"]
    """Of the values: one record each."""
    avro: Avro | None = None
    start: Literal["earliest", "latest"] | KafkaStart = "earliest"
    """Of the first run only; from then on the checkpoint says where to go on."""
    ending_offsets: dict[str, dict[int, NonNegativeInt]] = {}
    """Topic -> partition -> the offset before which reading ends for good; other partitions have no
    end. When all before it is read, nothing is new."""
    newest_per_key: bool = False
    """Of a static input: the newest record of each key, as compaction keeps it; one without a value
    takes its key out."""
    min_partitions: int | None = Field(default=None, ge=1)
    """Tasks that read at once at least, where topics have fewer partitions than there are cores."""
    group_id_prefix: str | None = Field(default=None, min_length=1)
    """How the consumer groups that Spark makes are to begin, for brokers that allow groups by
    name."""
    max_offsets_per_batch: int | None = Field(default=None, ge=1)
    """Spark shares it out by what waits in each partition, and gives each at least one: a batch may
    hold as many records as there are partitions, where that is more."""
    fail_on_data_loss: bool = True
    """Stop when records that were not read yet are gone from the broker; with false the run goes
    on, and its report says how many."""
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    """Whether records of an aborted transaction are read."""
    headers: bool = True
    """Keep each record's headers in `_source.headers`."""
    keep_value: bool = True
    """Keep each record's bytes in `_source.value`; without, the table is smaller."""
    tombstones: Literal["quarantine", "keep"] = "quarantine"
    """Records without a value: refused as malformed, or rows in which every column is NULL (a
    transform tells them apart by `_raw IS NULL`)."""
    bounds: ClassVar[tuple[str, ...]] = ("max_offsets_per_batch",)
    refused: ClassVar[dict[str, str]] = {
        "minoffsetspertrigger": "a batch it holds back looks like an empty backlog",
        "maxtriggerdelay": "it goes with minOffsetsPerTrigger",
        "failondataloss": "with false Spark passes over records that are gone without a word; "
        "write `fail_on_data_loss: false`, which counts them in the report",
        "startingoffsetsbytimestampstrategy": "with error Spark fails on a partition that has no "
        "record since then; write `start: {timestamp: ...}`, which reads it from its end",
        "kafka.group.id": "two runs of one group share its partitions, and each misses what the "
        "other gets; write `group_id_prefix`",
    }
    own_fields: ClassVar[dict[str, str]] = {
        "startingoffsets": "`start`",
        "startingtimestamp": "`start: {timestamp: ...}`",
        "startingoffsetsbytimestamp": "`start: {timestamp: ...}`",
        "endingoffsets": "`ending_offsets`",
        "endingtimestamp": "`ending_offsets`",
        "endingoffsetsbytimestamp": "`ending_offsets`",
        "minpartitions": "`min_partitions`",
        "groupidprefix": "`group_id_prefix`",
        "subscribe": "`subscribe`",
        "subscribepattern": "`subscribe_pattern`",
        "assign": "`assign`",
        "includeheaders": "`headers`",
    }

    @field_validator("subscribe", mode="before")
    @classmethod
    def _one_or_more(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_topics(self) -> "KafkaSource":
        chosen = (self.subscribe, self.subscribe_pattern, self.assign)
        if sum(map(bool, chosen)) != 1:
            raise ValueError(
                "say which topics: one of `subscribe`, `subscribe_pattern` and `assign`"
            )
        return self

    @model_validator(mode="after")
    def _check_format(self) -> "KafkaSource":
        wanted = {"text": {"value": "string"}, "bytes": {"value": "binary"}}.get(self.format)
        if wanted and self.columns != wanted:
            raise ValueError(
                f"format {self.format} reads one column; "
                f"write `schema: {{value: {wanted['value']}}}`"
            )
        if (self.format == "avro") != (self.avro is not None):
            raise ValueError(
                "format avro needs `avro: {schema_file: ...}`"
                if self.format == "avro"
                else "`avro` goes with `format: avro`"
            )
        return self

    def reads(self, paths: Paths) -> frozenset[str]:
        """The topics; any, where a pattern names them."""
        topics = [*self.subscribe, *self.assign]
        return frozenset(f"kafka/{topic}" for topic in topics) or frozenset({"kafka"})

    @property
    def why_not_static(self) -> str:
        """Of a topic that is read as a whole it must be known beforehand what that is."""
        if self.max_offsets_per_batch is not None:
            return "a static topic is read as a whole; leave `max_offsets_per_batch` out"
        if self.start == "latest":
            return "a static topic is read up to its end, and `start: latest` begins there"
        if self.subscribe_pattern:
            return "where a static topic ends is asked when the run begins; name it: `subscribe`"
        return ""

    @property
    def why_only_static(self) -> str:
        """A stream has a record before its key's next one is there."""
        if not self.newest_per_key:
            return ""
        return (
            "`newest_per_key` looks at a whole topic, and a stream reads it record by record; "
            "write `static: true` at the input, or `dedup` with `order_by`"
        )

    @property
    def avro_values(self) -> Avro:
        """How the values of format avro are written."""
        assert self.avro is not None
        return self.avro

    @property
    def start_moment(self) -> datetime | None:
        """The moment the first run begins at, where one is written."""
        return self.start.timestamp if isinstance(self.start, KafkaStart) else None

    @property
    def continuous(self) -> bool:
        """Spark reads topics record by record."""
        return True

    @property
    def jar_sets(self) -> frozenset[str]:
        """Avro beside Kafka where values are Avro."""
        return super().jar_sets | ({"avro"} if self.format == "avro" else set())
