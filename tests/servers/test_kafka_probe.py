"""The probe of Kafka topics says what Spark would read.

Real brokers, and checkpoints that Spark wrote.
"""

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime

import pytest
from confluent_kafka import IsolationLevel
from sluice.backlog.kafka import TopicBacklog, measure_topics
from sluice.backlog.kafka_offsets import offsets_after, planned_offsets
from sluice.checkpoint import Checkpoint
from sluice.errors import SourceError, TransientError
from sluice.setup.server import free_ports
from sluice.spec import KafkaSource, spark_options

from tests.kafka_broker import Record

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)


class Reader:
    """One step's source: its probe, and runs of Spark that read what is there."""

    def __init__(self, spark, folder, source: KafkaSource) -> None:
        self.spark, self.folder, self.source = spark, folder, source

    @property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self.folder)

    def measure(self) -> TopicBacklog:
        return measure_topics(self.source, self.checkpoint)

    def run(self, **options: str) -> list[bytes]:
        """The values that one run reads, in any order."""
        values: list[bytes] = []
        choice = (
            {"subscribe": ",".join(self.source.subscribe)}
            if self.source.subscribe
            else {"subscribePattern": self.source.subscribe_pattern}
        )
        options = {
            **spark_options(self.source),
            **choice,
            "kafka.isolation.level": self.source.isolation,
            "startingOffsets": "earliest",
            **options,
        }
        frame = self.spark.readStream.format("kafka").options(**options).load().select("value")
        write = frame.writeStream.foreachBatch(
            lambda rows, batch: values.extend(bytes(row.value) for row in rows.collect())
        )
        query = (
            write.option("checkpointLocation", str(self.folder)).trigger(availableNow=True).start()
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return sorted(values)


@pytest.fixture
def reader(spark, kafka_broker, tmp_path):
    """Makes a reader of some topics; `subscribe` unless said otherwise."""

    def make(*topics: str, **fields) -> Reader:
        choice = (
            {} if {"assign", "subscribe_pattern"} & set(fields) else {"subscribe": list(topics)}
        )
        base = {
            "kind": "kafka",
            "servers": kafka_broker.servers,
            "format": "text",
            "columns": {"value": "string"},
        }
        return Reader(spark, tmp_path / "checkpoint", KafkaSource(**base | choice | fields))

    return make


def at(second: int, value: str = "v", partition: int = 0) -> Record:
    """A record some seconds after noon."""
    return Record(value, partition=partition, timestamp=NOON_MS + 1000 * second)


def test_before_the_first_run_all_that_is_there_waits(kafka_broker, reader):
    topic = kafka_broker.create_topic("probe_earliest", 3)
    kafka_broker.produce(topic, [at(5), at(6), at(2, partition=1)])
    found = reader(topic).measure()
    assert found == TopicBacklog(waiting={topic: {0: 2, 1: 1}}, oldest=NOON.replace(second=2))
    assert (found.records, found.must_run) == (3, True)


def test_a_topic_without_records_starts_no_run(kafka_broker, reader):
    assert not reader(kafka_broker.create_topic("probe_empty")).measure().must_run


def test_a_source_that_starts_at_the_end_runs_once_to_note_it(kafka_broker, reader):
    topic = kafka_broker.create_topic("probe_latest")
    kafka_broker.produce(topic, [at(1)])
    latest = reader(topic, start="latest")
    assert latest.measure() == TopicBacklog(unknown_start=True)
    assert latest.run(startingOffsets="latest") == []
    assert latest.measure() == TopicBacklog()
    kafka_broker.produce(topic, [at(7, "new")])
    assert latest.measure() == TopicBacklog(waiting={topic: {0: 1}}, oldest=NOON.replace(second=7))
    assert latest.run() == [b"new"]
    assert planned_offsets(latest.checkpoint, 1) == {topic: {0: (1, 2)}}


def test_a_source_may_start_at_an_offset_or_at_a_time(kafka_broker, reader):
    topic = kafka_broker.create_topic("probe_start", 2)
    kafka_broker.produce(topic, [at(0), at(10), at(20), at(1, partition=1), at(2, partition=1)])
    assert reader(topic, start={"offsets": {topic: {0: 2}}}).measure().waiting == {
        topic: {0: 1, 1: 2}
    }
    found = reader(topic, start={"timestamp": NOON.replace(second=10)}).measure()
    assert (found.waiting, found.oldest, found.unknown_start) == (
        {topic: {0: 2}},
        NOON.replace(second=10),
        True,
    )
    assert not reader(topic, start={"timestamp": NOON.replace(second=1)}).measure().unknown_start


def test_only_the_assigned_partitions_are_looked_at(kafka_broker, reader):
    topic = kafka_broker.create_topic("probe_assign", 2)
    kafka_broker.produce(topic, [at(0), at(1, partition=1)])
    assert reader(assign={topic: [1]}).measure().waiting == {topic: {1: 1}}
    with pytest.raises(SourceError, match="probe_assign, partition 2"):
        reader(assign={topic: [1, 2]}).measure()


def test_new_partitions_and_new_topics_of_a_pattern_are_read_from_their_beginning(
    kafka_broker, reader
):
    topic = kafka_broker.create_topic("probe_pattern_a")
    kafka_broker.produce(topic, [at(0)])
    pattern = reader(
        subscribe_pattern="robe_pattern_[ab]"
    )  # Spark looks for it anywhere in the name
    assert pattern.run() == [b"v"]
    assert pattern.measure() == TopicBacklog()
    kafka_broker.add_partitions(topic, 2)
    assert pattern.measure() == TopicBacklog(new={topic: [1]})
    assert not pattern.measure().must_run
    kafka_broker.produce(topic, [at(3, "p1", partition=1)])
    other = kafka_broker.create_topic("probe_pattern_b")
    kafka_broker.produce(other, [at(4, "b")])
    assert pattern.measure() == TopicBacklog(
        waiting={topic: {1: 1}, other: {0: 1}},
        new={topic: [1], other: [0]},
        oldest=NOON.replace(second=3),
    )
    assert pattern.run() == [b"b", b"p1"]
    assert planned_offsets(pattern.checkpoint, 1) == {
        topic: {0: (1, 1), 1: (0, 1)},
        other: {0: (0, 1)},
    }
    assert pattern.measure() == TopicBacklog()


def test_what_expired_unread_is_lost_and_starts_a_run(kafka_broker, reader):
    topic = kafka_broker.create_topic("probe_expired")
    kafka_broker.produce(topic, [at(0)])
    expired = reader(topic)
    expired.run()
    kafka_broker.produce(topic, [at(1), at(2), at(3, "kept")])
    kafka_broker.expire(topic, 0, 3)
    assert expired.measure() == TopicBacklog(
        waiting={topic: {0: 1}}, lost={topic: {0: 2}}, oldest=NOON.replace(second=3)
    )
    kafka_broker.expire(topic, 0, 4)
    assert (expired.measure().records, expired.measure().must_run) == (0, True)
    assert expired.run(failOnDataLoss="false") == []
    assert not expired.measure().must_run


def test_a_topic_that_was_deleted_or_made_anew_starts_a_run_and_one_that_never_was_is_an_error(
    kafka_broker, reader
):
    topic = kafka_broker.create_topic("probe_deleted")
    with pytest.raises(
        SourceError, match=r"brokers 127\.0\.0\.1.*no such topic.*probe_nowhere.*create the topic"
    ):
        reader(topic, "probe_nowhere").measure()
    assert (
        reader(subscribe_pattern="^probe_nowhere$").measure() == TopicBacklog()
    )  # a pattern may wait for its topics
    kafka_broker.produce(topic, [at(0), at(1)])
    deleted = reader(topic)
    deleted.run()
    kafka_broker.delete_topic(topic)
    assert deleted.measure() == TopicBacklog(gone={topic: [0]})
    kafka_broker.create_topic(topic)
    assert deleted.measure() == TopicBacklog(recreated={topic: [0]})
    kafka_broker.produce(topic, [at(9)])
    assert deleted.measure() == TopicBacklog(
        recreated={topic: [0]}, waiting={topic: {0: 1}}, oldest=NOON.replace(second=9)
    )
    assert deleted.measure().must_run


def wait_for_marks(broker, topic: str) -> None:
    """The mark that ends a transaction is written a moment after the broker has said it is over."""
    deadline = time.monotonic() + 30
    while broker.end_offsets(topic, IsolationLevel.READ_COMMITTED) != broker.end_offsets(topic):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_marks_of_transactions_never_hide_a_record_and_are_new_only_once(kafka_broker, reader):
    topic = kafka_broker.create_topic("probe_transactions")
    kafka_broker.produce_in_transaction(topic, [at(0, "aborted")], abort=True)
    wait_for_marks(kafka_broker, topic)
    committed = reader(topic)
    assert committed.measure() == TopicBacklog(waiting={topic: {0: 2}})  # no record: no time
    assert committed.run() == []
    assert not committed.measure().must_run
    kafka_broker.produce_in_transaction(topic, [at(1, "committed")])
    wait_for_marks(kafka_broker, topic)
    assert committed.measure().must_run
    assert committed.run() == [b"committed"]
    with kafka_broker.open_transaction(topic, [at(2, "open")]):
        kafka_broker.produce(topic, [at(3, "behind")])
        assert not committed.measure().must_run  # what Spark may not read yet does not wait
    wait_for_marks(kafka_broker, topic)
    assert committed.measure().records >= 2
    assert committed.run() == [b"behind", b"open"]
    assert not committed.measure().must_run


def test_a_place_within_an_open_transaction_is_no_topic_made_anew(kafka_broker, reader):
    topic = kafka_broker.create_topic("probe_isolation")
    everything = reader(topic, isolation="read_uncommitted")
    with kafka_broker.open_transaction(topic, [at(1, "open")]):
        assert everything.run() == [b"open"]
        assert reader(topic).measure() == TopicBacklog()
    assert offsets_after(everything.checkpoint, everything.checkpoint.newest_commit) == {
        topic: {0: 1}
    }


def test_a_password_opens_the_brokers_and_a_wrong_one_is_an_answer_too(kafka_broker, reader):
    topic = kafka_broker.create_topic("probe_secure")
    kafka_broker.produce(topic, [at(1, "secret")])

    def secured(password: str) -> Reader:
        security = {
            "username": kafka_broker.username,
            "password": password,
            "ca_file": str(kafka_broker.ca_file),
        }
        return reader(topic, servers=kafka_broker.secure_servers, security=security)

    assert secured(kafka_broker.password).measure().waiting == {topic: {0: 1}}
    assert secured(kafka_broker.password).run() == [b"secret"]
    started = time.monotonic()
    with pytest.raises(TransientError, match="Authentication failed") as caught:
        secured("wrong-one").measure()
    assert "wrong-one" not in str(caught.value)
    assert time.monotonic() - started < 5


def test_brokers_that_are_away_hold_a_probe_for_ten_seconds_at_most(reader):
    def probe(port: int) -> float:
        started = time.monotonic()
        with pytest.raises(
            TransientError, match=rf"brokers 127\.0\.0\.1:{port}: the brokers could not be asked"
        ):
            reader("probe_away", servers=f"127.0.0.1:{port}").measure()
        return time.monotonic() - started

    with closing(socket.socket()) as silent, ThreadPoolExecutor() as threads:
        nobody, no_answer = free_ports(2)
        silent.bind(("127.0.0.1", no_answer))
        silent.listen()
        assert max(threads.map(probe, (nobody, no_answer))) < 10
