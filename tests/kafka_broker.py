"""One Kafka broker for every test that needs one, and what tests do to its topics.

It is a KRaft node of the locked jars `broker`.
"""

import os
import secrets
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from sluice.setup.broker import Broker
from sluice.setup.server import free_ports

from tests.certificates import write_certificates

_PATIENCE = 60  # seconds for anything a client asks of the broker
_NOT_YET = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
)
_SETTINGS = """
ssl.keystore.type=PEM
ssl.truststore.type=PEM
listener.name.ssl.ssl.client.auth=required
listener.name.sasl_ssl.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
super.users=User:ANONYMOUS
"""


@dataclass(frozen=True)
class Record:
    """A record to produce, or as it was read.

    `value`, `key`: str (written as UTF-8), bytes or None; bytes when read.
    `partition`: None leaves the choice to Kafka's own partitioner.
    `timestamp`: milliseconds since 1970; None is now. `offset`: of records read.
    """

    value: bytes | str | None
    key: bytes | str | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    timestamp: int | None = None
    offset: int | None = None


class KafkaBroker:
    """A broker on free ports whose data is in `folder`; it keeps both when it starts again.

    Topics are only there when created, and keep records of any age unless their retention_ms says
    otherwise. A record or a transaction is in the log when the method that wrote it returns.
    """

    username = "sluice"

    def __init__(self, folder: Path) -> None:
        self.password = secrets.token_urlsafe(12)
        self._secure_port, self._mutual_port = free_ports(2)
        # transactional ones: each takes half a second to begin, and has one transaction at a time
        self._idle: list[Producer] = []
        folder.mkdir(parents=True, exist_ok=True)
        self.certificates = write_certificates(folder)
        settings = [
            _SETTINGS,
            f"ssl.keystore.location={self.certificates.server}",
            f"ssl.truststore.location={self.certificates.authority}",
            "listener.name.sasl_ssl.plain.sasl.jaas.config="
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            f'user_{self.username}="{self.password}";',
        ]
        listeners = {"SASL_SSL": self._secure_port, "SSL": self._mutual_port}
        self._broker = Broker(folder, listeners, settings)
        self.folder = folder

    @property
    def servers(self) -> str:
        """host:port of the listener that asks for no login."""
        return self._broker.servers

    @property
    def secure_servers(self) -> str:
        """host:port of the SASL_SSL listener, whose certificate `ca_file` signed.

        SASL/PLAIN with `username` and `password`; SCRAM after `allow_scram`.
        """
        return f"127.0.0.1:{self._secure_port}"

    @property
    def mutual_servers(self) -> str:
        """host:port of the SSL listener: it wants a certificate signed by `ca_file`, no login."""
        return f"127.0.0.1:{self._mutual_port}"

    @property
    def ca_file(self) -> Path:
        """PEM file of the authority that signed every certificate."""
        return self.certificates.authority

    @property
    def process_id(self) -> int:
        """The broker's process, for tests that measure it."""
        return self._broker.process.process.pid

    def start(self) -> None:
        """Start it with its data and on its ports, and wait until every listener can be reached."""
        self._broker.start()
        self._wait_for_all()

    def _wait_for_all(self) -> None:
        """Wait until it answers and leads every partition of every topic."""
        self._broker.process.wait_until(
            lambda: self._admin.list_topics(timeout=_PATIENCE).brokers, "broker"
        )
        for topic in self._admin.list_topics(timeout=_PATIENCE).topics:
            self._broker.process.wait_until(
                lambda topic=topic: self._serves(topic), f"leader of {topic}"
            )

    def stop(self) -> None:
        """A clean stop."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Die at once."""
        self._end(signal.SIGKILL)

    def hang(self) -> None:
        """Answer nobody, with every connection open, until `wake`."""
        os.kill(self.process_id, signal.SIGSTOP)

    def wake(self) -> None:
        """Go on after `hang`, and wait until it answers."""
        os.kill(self.process_id, signal.SIGCONT)
        self._wait_for_all()

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def allow_scram(self) -> None:
        """Let `username` log in by SCRAM as well, with the same password."""
        for kind in (
            ScramMechanism.SCRAM_SHA_256,
            ScramMechanism.SCRAM_SHA_512,
        ):  # Kafka takes one change of a user a request
            _all(
                self._admin.alter_user_scram_credentials(
                    [
                        UserScramCredentialUpsertion(
                            self.username, ScramCredentialInfo(kind, 4096), self.password.encode()
                        )
                    ]
                )
            )

    def create_topic(self, name: str, partitions: int = 1, **config: object) -> str:
        """Create a topic, wait for its leaders, and return its name.

        Args: config: settings with `_` for `.`, such as cleanup_policy="compact".
        """
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        _all(
            self._admin.create_topics(
                [NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)]
            )
        )
        self._wait_for_partitions(name, partitions)
        return name

    def add_partitions(self, topic: str, total: int) -> None:
        """Let a topic have `total` partitions."""
        _all(self._admin.create_partitions([NewPartitions(topic, total)]))
        self._wait_for_partitions(topic, total)
        self.__dict__.pop("_producer", None)  # it would not hear of the new ones for minutes

    def delete_topic(self, topic: str) -> None:
        """Delete a topic and wait until it is gone; the name may then be used again."""
        _all(self._admin.delete_topics([topic]))
        self._wait_for_partitions(topic, 0)

    def set_topic_config(self, topic: str, **config: object) -> None:
        """Change configs of a topic, `_` for `.`; None takes one back to its default."""
        changes = [
            ConfigEntry(
                key.replace("_", "."),
                None if value is None else str(value),
                incremental_operation=AlterConfigOpType.DELETE
                if value is None
                else AlterConfigOpType.SET,
            )
            for key, value in config.items()
        ]
        _all(
            self._admin.incremental_alter_configs(
                [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)]
            )
        )

    def allow_only(self, topic: str, *rights: str) -> None:
        """Let `username` do nothing else with a topic than some rights say (READ, DESCRIBE, ...);
        who does not log in may do all."""
        user = f"User:{self.username}"
        bindings = [
            AclBinding(
                ResourceType.TOPIC,
                topic,
                ResourcePatternType.LITERAL,
                user,
                "*",
                AclOperation[right],
                AclPermissionType.ALLOW,
            )
            for right in rights
        ]
        _all(self._admin.create_acls(bindings))

    def produce(
        self, topic: str, records: Iterable[Record | bytes | str | None]
    ) -> list[tuple[int, int]]:
        """Append records, or bare values, wait for them, and return (partition, offset) of each."""
        return self._append(self._producer, topic, records)

    def produce_in_transaction(
        self, topic: str, records: Iterable[Record | bytes | str | None], abort: bool = False
    ) -> list[tuple[int, int]]:
        """Append records in a transaction of their own, which is then committed or aborted.

        Each partition gets one more offset, for the mark that ends it.
        """
        with self.open_transaction(topic, records, abort) as places:
            return places

    @contextmanager
    def open_transaction(
        self, topic: str, records: Iterable[Record | bytes | str | None], abort: bool = False
    ) -> Iterator[list[tuple[int, int]]]:
        """Append records in a transaction that is open while the block lasts, a minute at most."""
        producer = self._idle.pop() if self._idle else self._transactional_producer()
        producer.begin_transaction()
        try:
            yield self._append(producer, topic, records)
        except BaseException:
            producer.abort_transaction(_PATIENCE)
            raise
        (producer.abort_transaction if abort else producer.commit_transaction)(_PATIENCE)
        self._idle.append(producer)

    def expire(self, topic: str, partition: int, before_offset: int) -> None:
        """Delete a partition's records below an offset, as retention does."""
        _all(self._admin.delete_records([TopicPartition(topic, partition, before_offset)]))

    def start_offsets(self, topic: str) -> dict[int, int]:
        """Partition -> the first offset that is still there."""
        return self._offsets(topic, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED)

    def end_offsets(
        self, topic: str, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> dict[int, int]:
        """Partition -> the high watermark.

        With READ_COMMITTED it is the first offset of the oldest open transaction, if there is one.
        """
        return self._offsets(topic, OffsetSpec.latest(), isolation)

    def read(self, topic: str, committed: bool = True) -> list[Record]:
        """All committed records of a topic, or all, up to its end as of now.

        They are sorted by partition and offset.
        """
        isolation = "read_committed" if committed else "read_uncommitted"
        consumer = Consumer(
            self._client()
            | {
                "group.id": "tests",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                "fetch.wait.max.ms": 20,
                "auto.offset.reset": "error",
            }
        )
        try:
            unfinished = set(
                consumer.list_topics(topic, timeout=_PATIENCE).topics[topic].partitions
            )  # asked of the consumer: else it waits half a second
            consumer.assign(
                [TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in unfinished]
            )
            records = []
            while unfinished:
                message = consumer.poll(_PATIENCE)
                assert message is not None, (
                    f"{topic}: the end of partitions {sorted(unfinished)} was not found "
                    f"within {_PATIENCE} s\n{self._broker.process.tail()}"
                )
                if message.error() is None:
                    records.append(_to_record(message))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    unfinished.discard(message.partition())
                else:
                    raise KafkaException(message.error())
        finally:
            consumer.close()
        return sorted(records, key=lambda record: (record.partition, record.offset))

    def compact_now(self, topic: str, last: Record | None = None) -> None:
        """Compact a topic of cleanup.policy `compact` up to its end as of now, and wait for it.

        Kafka never compacts the newest segment. To begin a new one, each partition is given `last`,
        or, without it, an aborted transaction of one record without a value: two offsets, of which
        only those that read uncommitted records see the first.
        """
        ends = self.end_offsets(topic)
        self.set_topic_config(topic, internal_segment_bytes=150, min_cleanable_dirty_ratio=0)
        records = [
            Record(**vars(last or Record(None, key="compact_now")) | {"partition": partition})
            for partition in ends
        ]
        if last is None:
            self.produce_in_transaction(topic, records, abort=True)
        else:
            self.produce(topic, records)
        self.wait_until(
            lambda: all(
                self._compacted(topic).get(partition, 0) >= end for partition, end in ends.items()
            ),
            f"compacted {topic}",
        )
        self.set_topic_config(topic, internal_segment_bytes=None, min_cleanable_dirty_ratio=None)

    def _transactional_producer(self) -> Producer:
        producer = Producer(self._client() | {"transactional.id": f"tests-{secrets.token_hex(8)}"})
        producer.init_transactions(_PATIENCE)
        return producer

    def wait_until(
        self, condition: Callable[[], object], what: str, timeout: float = _PATIENCE
    ) -> None:
        """Ask until a condition holds; fails with the end of the broker's log."""
        self._broker.process.wait_until(condition, what, timeout)

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient(self._client())

    @cached_property
    def _producer(self) -> Producer:
        # Kept, because its first record waits half a second for an id; idempotent, so that a retry
        # never writes a record twice.
        return Producer(self._client() | {"linger.ms": 2, "enable.idempotence": True})

    def _client(self) -> dict[str, object]:
        # A broker that was just killed and comes back is asked again soon, and nobody prints that
        # it was away.
        return {
            "bootstrap.servers": self.servers,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
            "error_cb": lambda error: None,
        }

    def _end(self, how: signal.Signals) -> None:
        if self._broker.server is not None:
            self._broker.end(how)
            for client in ("_admin", "_producer"):
                self.__dict__.pop(client, None)
            self._idle.clear()

    def _append(
        self, producer: Producer, topic: str, records: Iterable[Record | bytes | str | None]
    ) -> list[tuple[int, int]]:
        producer.list_topics(
            topic, timeout=_PATIENCE
        )  # it may know the topic from a time when it had fewer partitions
        delivered = []
        for number, record in enumerate(records):
            _enqueue(
                producer,
                topic,
                record if isinstance(record, Record) else Record(record),
                lambda error, message, n=number: delivered.append((n, error, message)),
            )
            producer.poll(0)
        left = producer.flush(_PATIENCE)
        assert left == 0, (
            f"{topic}: {left} records were not delivered "
            f"within {_PATIENCE} s\n{self._broker.process.tail()}"
        )
        for _, error, _ in delivered:
            if error is not None:
                raise KafkaException(error)
        return [
            (message.partition(), message.offset())
            for _, _, message in sorted(delivered, key=lambda report: report[0])
        ]

    def _find(self, topic: str) -> dict:
        """Partition -> what is known of it; nothing when the topic is not there."""
        return self._admin.list_topics(topic, timeout=_PATIENCE).topics[topic].partitions

    def _wait_for_partitions(self, topic: str, count: int) -> None:
        self.wait_until(
            lambda: len(self._find(topic)) == count and self._serves(topic),
            f"topic {topic} with {count} partitions",
        )

    def _serves(self, topic: str) -> bool:
        """Whether the broker leads every partition of a topic.

        It is named as leader a moment before it answers as one.
        """
        try:
            return (
                all(partition.leader >= 0 for partition in self._find(topic).values())
                and self.end_offsets(topic) is not None
            )
        except KafkaException as error:
            if error.args[0].retriable() or error.args[0].code() in _NOT_YET:
                return False
            raise

    def _offsets(self, topic: str, spec: OffsetSpec, isolation: IsolationLevel) -> dict[int, int]:
        asked = {TopicPartition(topic, partition): spec for partition in self._find(topic)}
        answers = (
            self._admin.list_offsets(asked, isolation_level=isolation, request_timeout=_PATIENCE)
            if asked
            else {}
        )
        return {
            place.partition: answer.result().offset
            for place, answer in sorted(answers.items(), key=lambda pair: pair[0].partition)
        }

    def _compacted(self, topic: str) -> dict[int, int]:
        """Partition -> the offset up to which the broker's cleaner says it has compacted."""
        checkpoint = self._broker.data / "cleaner-offset-checkpoint"
        lines = (
            [line.rsplit(" ", 2) for line in checkpoint.read_text().splitlines()[2:]]
            if checkpoint.exists()
            else []
        )
        return {int(partition): int(offset) for name, partition, offset in lines if name == topic}


def _enqueue(producer: Producer, topic: str, record: Record, on_delivery) -> None:
    options = {"partition": record.partition, "timestamp": record.timestamp}
    while True:
        try:
            producer.produce(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                on_delivery=on_delivery,
                **{name: value for name, value in options.items() if value is not None},
            )
            return
        except BufferError:
            producer.poll(0.1)  # the queue is full: let some go


def _to_record(message) -> Record:
    return Record(
        message.value(),
        message.key(),
        tuple(message.headers() or ()),
        message.partition(),
        message.timestamp()[1],
        message.offset(),
    )


def _all(futures: dict) -> None:
    for future in futures.values():
        future.result(_PATIENCE)
