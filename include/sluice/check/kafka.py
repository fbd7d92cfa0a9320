"""Kafka's brokers: whether they let this user in, have the topics, and what they allow there."""

from collections.abc import Iterable
from concurrent.futures import TimeoutError as FutureTimeout

from ..backlog.kafka import choose_partitions
from ..backlog.kafka_broker import PATIENCE, Broker, connect
from ..errors import SinkError, SourceError
from ..spec import KafkaSink, KafkaSource, resolve_cluster


def look_at_topics(source: KafkaSource) -> str:
    """Topics, partitions and how many offsets they hold. Raises SluiceError for brokers that
    cannot be asked, a topic that is not there or may not be read."""
    broker = connect(source)
    partitions = choose_partitions(source, broker, {})
    if partitions is None:
        broker.find_partitions(lambda _: False)
        return (
            f"brokers {_servers(source)} answer; only Java can say which topics the pattern means"
        )
    if not partitions:
        return f"brokers {_servers(source)} answer; no topic matches the pattern yet"
    first = broker.first_offsets(partitions)
    end = broker.end_offsets(partitions, source.isolation)
    _require(broker, source, partitions, "READ")
    held = sum(end[t][p] - first[t][p] for t, parts in partitions.items() for p in parts)
    count = sum(map(len, partitions.values()))
    return (
        f"{', '.join(partitions)} at {_servers(source)}: {count} partition"
        f"{'' if count == 1 else 's'}, {held:,} offsets held, may be read"
    )


def look_at_sink(sink: KafkaSink) -> str:
    """Whether the topic is there and may be written, as the brokers say it; nothing is sent.

    Raises SluiceError as above.
    """
    broker, topic = connect(sink), sink.topic
    if topic is None:
        broker.find_partitions(lambda _: False)
        return f"brokers {_servers(sink)} answer; which topics, each row says"
    if not broker.find_partitions(lambda name: name == topic):
        raise SinkError(
            "no such topic, or this user may not see it",
            where=f"brokers {_servers(sink)}",
            value=topic,
            do="Mend the name, create the topic, or give the user the right to describe it",
        )
    _require(broker, sink, [topic], "WRITE")
    return f"{topic} at {_servers(sink)}: may be written (nothing was sent)"


def _servers(cluster: KafkaSource | KafkaSink) -> str:
    return resolve_cluster(cluster)[0]


def _require(
    broker: Broker, cluster: KafkaSource | KafkaSink, topics: Iterable[str], right: str
) -> None:
    """Raise SluiceError for topics on which the brokers deny a right; where they say nothing of
    rights, nothing is known."""
    from confluent_kafka import KafkaException, TopicCollection

    answers = broker.admin.describe_topics(
        TopicCollection(list(topics)), include_authorized_operations=True, request_timeout=PATIENCE
    )
    denied = []
    for topic, answer in answers.items():
        try:
            allowed = answer.result(PATIENCE).authorized_operations
        except (KafkaException, FutureTimeout):
            continue
        if allowed and right not in {operation.name for operation in allowed}:
            denied.append(topic)
    if denied:
        kind = SourceError if right == "READ" else SinkError
        raise kind(
            f"this user has no right to {right.lower()}",
            where=f"brokers {_servers(cluster)}",
            value=", ".join(denied),
            do=f"Add an ACL that allows {right} (kafka-acls --add --allow-principal ...)",
        )
