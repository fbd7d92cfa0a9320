"""Topics of a broker that lives as long as a demo."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ..setup.broker import Broker

_PATIENCE = 60  # seconds for anything a client asks of the broker
Message = tuple[str, str]
"""Key and value."""


@contextmanager
def start_broker(folder: Path) -> Iterator[Broker]:
    """A broker whose data is in a folder, ended with the block."""
    broker = Broker(folder)
    try:
        broker.start()
        yield broker
    finally:
        broker.end()


def create_topic(broker: Broker, name: str, partitions: int, **settings: str) -> None:
    """Create a topic and wait until its partitions have leaders.

    Args: settings: of the topic, `_` for `.`.
    """
    admin = AdminClient({"bootstrap.servers": broker.servers})
    config = {key.replace("_", "."): value for key, value in settings.items()}
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
    for done in admin.create_topics([topic]).values():
        done.result(_PATIENCE)

    def has_leaders() -> bool:
        known = admin.list_topics(name, timeout=_PATIENCE).topics[name].partitions
        return len(known) == partitions and all(one.leader >= 0 for one in known.values())

    broker.process.wait_until(has_leaders, f"topic {name}")


def send(broker: Broker, topic: str, messages: Iterable[Message]) -> None:
    """Append messages and wait until they are in the log."""
    refused: list[object] = []

    def note(error: object, _: object) -> None:
        refused.extend([error] if error is not None else [])

    settings = {"bootstrap.servers": broker.servers, "enable.idempotence": True, "log_level": 0}
    producer = Producer(settings)
    for key, value in messages:
        producer.produce(topic, value=value.encode(), key=key.encode(), on_delivery=note)
        producer.poll(0)
    if producer.flush(_PATIENCE) or refused:
        raise KafkaException(*refused[:1])


def read_newest(broker: Broker, topic: str) -> dict[str, str]:
    """Key -> the newest value of a topic, as a reader of a compacted one sees it."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.servers,
            "group.id": "demo",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    newest: dict[str, str] = {}
    try:
        unread = set(consumer.list_topics(topic, timeout=_PATIENCE).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, one, OFFSET_BEGINNING) for one in unread])
        while unread:
            message: Any = consumer.poll(_PATIENCE)
            if message is None:
                raise KafkaException(f"{topic}: no end within {_PATIENCE} s")
            if message.error() is None:
                newest[message.key().decode()] = message.value().decode()
            else:  # the end of a partition
                unread.discard(message.partition())
    finally:
        consumer.close()
    return newest
