"""A Kafka cluster and how to reach it, topics as a source, a topic as a sink."""

from datetime import UTC, datetime
from typing import ClassVar, Literal

from pydantic import Field, NonNegativeInt, field_validator, model_validator

from .model import Spec
from .records import Records, as_text

SOURCE_FIELDS = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestamp_type": "int",
    "key": "binary",
}
"""What `_source` holds of a Kafka record, beside `headers` and `value` where they are kept."""


class Security(Spec):
    """How a client proves who it is, and how it knows the brokers. Secrets come from the environment (`${NAME}`) or from an Airflow connection."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "SASL_SSL"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    username: str | None = None
    password: str | None = Field(default=None, repr=False)
    ca_file: str | None = None
    """PEM file of the authority that signed the brokers' certificates; by default those the system trusts."""
    certificate_file: str | None = None
    """PEM file of this client's certificate, for brokers that ask for one."""
    key_file: str | None = None
    key_password: str | None = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _check_parts(self) -> "Security":
        if self.protocol.startswith("SASL") and not (self.username and self.password):
            raise ValueError(
                f"{self.protocol} needs `username` and `password`; write ${{NAME}} of an environment variable, or `connection` with an Airflow connection"
            )
        if bool(self.certificate_file) != bool(self.key_file):
            raise ValueError("a client certificate needs both `certificate_file` and `key_file`")
        return self


class KafkaCluster(Spec):
    """The brokers of a source or sink."""

    servers: str | None = None
    """Brokers to ask first: host:port,host:port."""
    security: Security | None = None
    connection: str | None = None
    """An Airflow connection (type Kafka) that says both, as `AIRFLOW_CONN_<ID>` in the environment; Airflow's tasks hand it on by themselves."""

    @model_validator(mode="after")
    def _check_cluster(self) -> "KafkaCluster":
        if self.servers is None and self.connection is None:
            raise ValueError(
                "say which brokers: `servers: host:port`, or `connection` with an Airflow connection"
            )
        return self


class KafkaStart(Spec):
    """Where the first run begins."""

    timestamp: datetime | None = None
    """The first record at or after this moment, UTC when no zone is given; a partition that has none yet is read from its end."""
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
    """`confluent`: each value begins with a zero byte and the four bytes of a registry's schema id."""


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
    max_offsets_per_batch: int | None = Field(default=None, ge=1)
    fail_on_data_loss: bool = True
    """Stop when records that were not read yet are gone from the broker; with false the run goes on, and its report says how many."""
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    """Whether records of an aborted transaction are read."""
    headers: bool = True
    """Keep each record's headers in `_source.headers`."""
    keep_value: bool = True
    """Keep each record's bytes in `_source.value`; without, the table is smaller."""
    tombstones: Literal["quarantine", "keep"] = "quarantine"
    """Records without a value: refused as malformed, or rows in which every column is NULL (a transform tells them apart by `_raw IS NULL`)."""
    multi_line: ClassVar[bool] = False
    header: ClassVar[bool] = False

    @field_validator("subscribe", mode="before")
    @classmethod
    def _one_or_more(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check_topics(self) -> "KafkaSource":
        if (
            sum(bool(choice) for choice in (self.subscribe, self.subscribe_pattern, self.assign))
            != 1
        ):
            raise ValueError(
                "say which topics: one of `subscribe`, `subscribe_pattern` and `assign`"
            )
        wanted = {"text": {"value": "string"}, "bytes": {"value": "binary"}}.get(self.format)
        if wanted and self.columns != wanted:
            raise ValueError(
                f"format {self.format} reads one column; write `schema: {{value: {wanted['value']}}}`"
            )
        if (self.format == "avro") != (self.avro is not None):
            raise ValueError(
                "format avro needs `avro: {schema_file: ...}`"
                if self.format == "avro"
                else "`avro` goes with `format: avro`"
            )
        refused = {
            "minoffsetspertrigger": "a batch it holds back looks like an empty backlog",
            "maxtriggerdelay": "it goes with minOffsetsPerTrigger",
        }
        for name in self.options:
            if name.lower() in refused:
                raise ValueError(
                    f"option {name} does not go with runs that end: {refused[name.lower()]}; leave it out"
                )
        return self


class KafkaSink(KafkaCluster):
    """Records of a topic, one a row. At least once: a run that is killed between sending and noting sends again, with the same headers `sluice.batch` and `sluice.position`."""

    kind: Literal["kafka"]
    topic: str | None = None
    topic_column: str | None = None
    """Column that holds each row's topic."""
    key: str | None = None
    """Column of the key; without, keys are NULL."""
    value: str | list[str] = []
    """One column (text or bytes) as it is, or the columns of a JSON object; by default all columns as JSON."""
    headers: dict[str, str] = {}
    """Header -> column."""
    mode: Literal["append", "update"] = "append"
    """Of a transform that aggregates. `append`: a group once, when its watermark has passed. `update`: in each batch the groups that changed; for steps without a Delta table."""
    options: dict[str, str] = {}
    """Settings of the producer: `kafka.…`, passed through as written."""

    @field_validator("options", mode="before")
    @classmethod
    def _stringify(cls, options: dict) -> dict:
        return as_text(options)

    @model_validator(mode="after")
    def _check_topic(self) -> "KafkaSink":
        if (self.topic is None) == (self.topic_column is None):
            raise ValueError("write either `topic` or `topic_column`")
        return self
