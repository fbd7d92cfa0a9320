"""A topic as a sink."""

from typing import ClassVar, Literal

from pydantic import model_validator

from ..storage.paths import Paths
from .kafka_cluster import KafkaCluster
from .model import Options
from .sink_kind import OutputMode, SinkKind


class KafkaSink(SinkKind, KafkaCluster):
    """Records of a topic, one a row.

    At least once: a run that is killed between sending and noting sends again, with the same
    headers `sluice.batch` and `sluice.position`.
    """

    kind: Literal["kafka"]
    topic: str | None = None
    topic_column: str | None = None
    """Column that holds each row's topic."""
    key: str | None = None
    """Column of the key; without, keys are NULL. Of a step with `groups` a key of which no row is
    left gets a record without a value (a tombstone)."""
    value: str | list[str] = []
    """One column (text or bytes) as it is, or the columns of a JSON object; by default all columns
    as JSON."""
    headers: dict[str, str] = {}
    """Header -> column."""
    mode: Literal["append", "update"] = "append"
    """Of a transform that aggregates. `append`: a group once, when its watermark has passed.
    `update`: in each batch the groups that changed."""
    options: Options = {}
    """Settings of the producer: `kafka.…`, passed through as written."""
    continuous: ClassVar[bool] = True

    @model_validator(mode="after")
    def _check_topic(self) -> "KafkaSink":
        if (self.topic is None) == (self.topic_column is None):
            raise ValueError("write either `topic` or `topic_column`")
        return self

    @property
    def place(self) -> str:
        """The topic, or the column that names it."""
        return self.topic or self.topic_column or ""

    def writes(self, paths: Paths) -> frozenset[str]:
        """The topic; any, where each row names its own."""
        return frozenset({f"kafka/{self.topic}" if self.topic else "kafka"})

    @property
    def adds_rows(self) -> bool:
        """True for records that are sent once."""
        return self.mode == "append"

    @property
    def follows_changes(self) -> bool:
        """Where records have keys: the newest of a key counts, as in a compacted topic."""
        return self.key is not None

    @property
    def mirrored_by(self) -> list[str] | None:
        """The key, in its topic."""
        if self.key is None or self.mode != "append":
            return None
        return [self.key, *([self.topic_column] if self.topic_column else [])]

    @property
    def output_mode(self) -> OutputMode | None:
        """As `mode` says."""
        return "update" if self.mode == "update" else None

    @property
    def limits(self) -> list[str]:
        """At least once."""
        return [
            "a record may be sent to Kafka again after a run that was killed: the headers "
            "`sluice.batch` and `sluice.position` tell a reader which it has"
        ]
