"""Asks Kafka's brokers, within a few seconds in all, through librdkafka."""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ..errors import TransientError
from ..spec import KafkaCluster, client_config

if TYPE_CHECKING:
    from confluent_kafka import Consumer
    from confluent_kafka.admin import AdminClient, OffsetSpec

Offsets = dict[str, dict[int, int]]
"""Topic -> partition -> offset."""

PATIENCE = 6.0
"""Seconds for all questions of one probe together."""
GLANCE = 2.0
"""Seconds of them for the first records themselves: how old they are, and how large."""
INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
"""Kafka's own topics: no pattern means them."""


@dataclass(frozen=True)
class Glance:
    """What the first waiting records look like. `oldest`: UTC; `record_bytes`: of key and value, on
    the average. None where no record was to be had in time."""

    oldest: datetime | None = None
    record_bytes: int | None = None


@dataclass
class Broker:
    """A client of one cluster, for one probe. `deadline`: `time.monotonic()` after which it gives
    up."""

    config: dict = field(repr=False)
    deadline: float
    refusals: list[str] = field(default_factory=list)
    """Why the brokers would not have this client: what waiting longer cannot mend."""
    troubles: list[str] = field(default_factory=list)
    admin: "AdminClient" = field(init=False)

    def find_partitions(self, wanted: Callable[[str], bool]) -> dict[str, list[int]]:
        """Topic -> partitions, of the wanted topics that are there and that this user may see.

        Never creates one.
        """
        topics = self._ask(
            lambda seconds: self.admin.list_topics(timeout=seconds), again=True
        ).topics
        found = {
            name: topic for name, topic in topics.items() if name not in INTERNAL and wanted(name)
        }
        for name, topic in found.items():
            if topic.error is not None:
                raise self._give_up(f"topic {name}: {topic.error.str()}")
        return {name: sorted(topic.partitions) for name, topic in sorted(found.items())}

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Topic -> the id that the brokers gave it when it was made; without those whose id they do
        not tell: brokers before 2.8, or a user who may not describe them."""
        from confluent_kafka import KafkaException, TopicCollection

        asked = list(topics)
        if not asked:
            return {}
        seconds = max(self._seconds_left(), 0.1)
        answers = self.admin.describe_topics(TopicCollection(asked), request_timeout=seconds)
        found = {}
        for topic, answer in answers.items():
            with suppress(KafkaException, FutureTimeout):
                found[topic] = str(answer.result(seconds).topic_id)
        return {topic: name for topic, name in found.items() if name.strip("A=")}

    def first_offsets(self, partitions: dict[str, list[int]]) -> Offsets:
        """The first offset that is still there."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(partitions, OffsetSpec.earliest())

    def end_offsets(self, partitions: dict[str, list[int]], isolation: str) -> Offsets:
        """The offset after the last that may be read: under read_committed, before the oldest
        transaction that is still open."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(partitions, OffsetSpec.latest(), isolation)

    def offsets_at(self, partitions: dict[str, list[int]], moment: datetime) -> Offsets:
        """The first offset at or after a moment; -1 where there is none yet."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(partitions, OffsetSpec.for_timestamp(int(moment.timestamp() * 1000)))

    def _offsets(
        self,
        partitions: dict[str, list[int]],
        spec: "OffsetSpec",
        isolation: str = "read_uncommitted",
    ) -> Offsets:
        from confluent_kafka import IsolationLevel, TopicPartition

        found: Offsets = {topic: {} for topic in partitions}
        asked = {TopicPartition(t, p): spec for t, ps in partitions.items() for p in ps}
        if asked:
            level = (
                IsolationLevel.READ_COMMITTED
                if isolation == "read_committed"
                else IsolationLevel.READ_UNCOMMITTED
            )
            answers = self.admin.list_offsets(
                asked, isolation_level=level, request_timeout=max(self._seconds_left(), 0.1)
            )
            for place, answer in answers.items():
                found[place.topic][place.partition] = self._ask(answer.result).offset
        return found

    def glance(self, places: dict[tuple[str, int], int], isolation: str) -> Glance:
        """The first records from some places on, as far as they come in time. Never fails."""
        from confluent_kafka import Consumer, KafkaException, TopicPartition

        if not places:
            return Glance()
        settings = {
            "group.id": "sluice-probe",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
            "fetch.message.max.bytes": 65536,
            "queued.min.messages": 1,
        }
        try:
            consumer = Consumer(self.config | settings)
            try:
                consumer.assign([TopicPartition(t, p, offset) for (t, p), offset in places.items()])
                end = min(self.deadline, time.monotonic() + GLANCE)
                times, sizes = _poll_first(consumer, set(places), end)
            finally:
                consumer.close()
        except KafkaException:
            return Glance()
        return Glance(
            datetime.fromtimestamp(min(times) / 1000, UTC) if times else None,
            max(1, sum(sizes) // len(sizes)) if sizes else None,
        )

    def _ask(self, question: Callable[[float], Any], again: bool = False) -> Any:
        """The answer to a question, asked again where nobody was there; a refusal ends it at once,
        the deadline otherwise."""
        from confluent_kafka import KafkaError, KafkaException

        away = (
            (KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._ALL_BROKERS_DOWN)
            if again
            else ()
        )
        while True:
            try:
                return question(max(0.1, min(1.0, self._seconds_left())))
            except FutureTimeout:
                pass
            except KafkaException as error:
                if error.args[0].code() not in away:
                    raise self._give_up(error.args[0].str()) from None
            self.admin.poll(0)  # lets the client say why
            if self.refusals or self._seconds_left() <= 0:
                raise self._give_up((self.refusals or self.troubles or ["no answer"])[-1])

    def _seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def _give_up(self, why: str) -> TransientError:
        return TransientError(
            f"the brokers could not be asked: {' '.join(why.split())[:300]}",
            where=f"brokers {self.config['bootstrap.servers']}",
            do="See that user, password, protocol and certificates are those the brokers want"
            if self.refusals
            else "See that they run, and that this machine reaches them by that name and port",
        )


def connect(cluster: KafkaCluster) -> Broker:
    """A client of a cluster; brokers that are away are noticed when they are asked.

    Raises SpecError or TransientError for settings no client can have.
    """
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient

    broker = Broker({}, time.monotonic() + PATIENCE)

    def note(error: KafkaError) -> None:
        refused = error.code() in (
            KafkaError._AUTHENTICATION,
            KafkaError._SSL,
            KafkaError.SASL_AUTHENTICATION_FAILED,
        )
        if error.code() == KafkaError._ALL_BROKERS_DOWN and broker.troubles:
            return  # it only sums up what each of them said before
        (broker.refusals if refused else broker.troubles).append(error.str())

    broker.config |= client_config(cluster) | {
        "log_level": 0,
        "error_cb": note,
        "socket.connection.setup.timeout.ms": 5000,
        "reconnect.backoff.max.ms": 500,
    }
    try:
        broker.admin = AdminClient(broker.config)
    except KafkaException as error:
        raise broker._give_up(error.args[0].str()) from None
    return broker


def _poll_first(
    consumer: "Consumer", left: set[tuple[str, int]], deadline: float
) -> tuple[list[int], list[int]]:
    """Milliseconds since 1970 of the first record of each place, and the bytes of every record that
    came with them."""
    from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, TopicPartition

    times, sizes = [], []
    while left and time.monotonic() < deadline:
        for message in consumer.consume(200, timeout=0.1):
            place, error = (message.topic(), message.partition()), message.error()
            if error is None:
                sizes.append(len(message.value() or b"") + len(message.key() or b""))
            elif error.code() != KafkaError._PARTITION_EOF:
                continue
            if place in left:
                left.discard(place)
                consumer.pause([TopicPartition(*place)])
                if error is None and message.timestamp()[0] != TIMESTAMP_NOT_AVAILABLE:
                    times.append(message.timestamp()[1])
    return times, sizes
