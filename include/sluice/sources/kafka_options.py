"""What Spark's Kafka source is told: which topics, from where, and how long to wait for brokers."""

import json
from typing import Literal

from ..spec import KafkaSource, KafkaStart, spark_options

_PATIENCE = {"kafka.default.api.timeout.ms": "20000", "kafka.request.timeout.ms": "15000"}
_FETCH_PATIENCE = {"kafkaConsumer.pollTimeoutMs": "30000"}
"""Brokers that are away end a run in about a minute: the driver asks three times, a task waits for
records once. Spark's and Kafka's own bounds are three minutes."""


def reader_options(source: KafkaSource, start: dict[str, str]) -> dict[str, str]:
    """Options of the stream; ours win where the meaning of a run hangs on them.

    Args: start: of `start_options`.
    """
    chosen = {
        "subscribe": ",".join(source.subscribe),
        "subscribePattern": source.subscribe_pattern,
        "assign": source.assign and json.dumps(source.assign),
        "maxOffsetsPerTrigger": source.max_offsets_per_batch,
        "minPartitions": source.min_partitions,
        "groupIdPrefix": source.group_id_prefix,
    }
    ours = {name: str(value) for name, value in chosen.items() if value}
    ours |= {
        "failOnDataLoss": str(source.fail_on_data_loss).lower(),
        "includeHeaders": str(source.headers).lower(),
        "kafka.isolation.level": source.isolation,
    }
    return {**_patience(source), **source.options, **spark_options(source), **ours, **start}


def _patience(source: KafkaSource) -> dict[str, str]:
    """Our bounds where the user's options have none.

    The two of the client go together: Kafka refuses the first where it is less than the second.
    """
    named = {name.lower() for name in source.options}
    return _FETCH_PATIENCE | ({} if named & set(_PATIENCE) else _PATIENCE)


def start_options(
    start: Literal["earliest", "latest"] | KafkaStart, partitions: dict[str, list[int]]
) -> dict[str, str]:
    """Where a first run begins. Args: partitions: all there are; Spark wants every one named."""
    if isinstance(start, str):
        return {"startingOffsets": start}
    if start.timestamp is not None:
        return {
            "startingTimestamp": str(int(start.timestamp.timestamp() * 1000)),
            "startingOffsetsByTimestampStrategy": "latest",
        }
    given = start.offsets or {}
    chosen = {
        topic: {str(p): _as_number(given.get(topic, {}).get(p, "earliest")) for p in parts}
        for topic, parts in partitions.items()
    }
    return {"startingOffsets": json.dumps(chosen)}


def _as_number(offset: int | str) -> int:
    """An offset as Spark takes it."""
    return offset if isinstance(offset, int) else {"earliest": -2, "latest": -1}[offset]
