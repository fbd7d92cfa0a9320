"""The servers that other tests lean on do what those tests take for granted."""

from collections import Counter

import psycopg
import pytest
from confluent_kafka import IsolationLevel
from confluent_kafka.admin import AdminClient

from tests.kafka_broker import Record


def values(records: list[Record]) -> list[bytes | None]:
    """The values of records, in their order."""
    return [record.value for record in records]


def test_a_record_is_read_as_it_was_produced(kafka_broker):
    topic = kafka_broker.create_topic("records", partitions=2)
    produced = [
        Record("text", "key", (("twice", b"1"), ("twice", None)), 1, 1_700_000_000_000),
        Record(b"\xff\x00", None, (), 0, 5),
        Record(None, b"gone", (), 1, 6),
    ]
    assert kafka_broker.produce(topic, produced) == [(1, 0), (0, 0), (1, 1)]
    assert kafka_broker.read(topic) == [
        Record(b"\xff\x00", None, (), 0, 5, offset=0),
        Record(b"text", b"key", (("twice", b"1"), ("twice", None)), 1, 1_700_000_000_000, offset=0),
        Record(None, b"gone", (), 1, 6, offset=1),
    ]
    assert kafka_broker.end_offsets(topic) == {0: 1, 1: 2}


def test_an_aborted_transaction_is_in_the_log_and_read_by_nobody_who_asks_for_committed_records(
    kafka_broker,
):
    topic = kafka_broker.create_topic("transactions")
    kafka_broker.produce_in_transaction(topic, ["committed"])
    kafka_broker.produce_in_transaction(topic, ["aborted"], abort=True)
    assert values(kafka_broker.read(topic)) == [b"committed"]
    assert values(kafka_broker.read(topic, committed=False)) == [b"committed", b"aborted"]
    assert kafka_broker.end_offsets(topic) == {0: 4}  # two records, and the two marks of the ends


def test_an_open_transaction_holds_back_what_was_committed_after_it(kafka_broker):
    topic = kafka_broker.create_topic("open_transaction")
    with kafka_broker.open_transaction(topic, ["first"]):
        kafka_broker.produce(topic, ["second"])
        assert kafka_broker.read(topic) == []
        assert kafka_broker.end_offsets(topic) == {0: 2}
        assert kafka_broker.end_offsets(topic, IsolationLevel.READ_COMMITTED) == {0: 0}
    assert values(kafka_broker.read(topic)) == [b"first", b"second"]


def test_expired_records_are_gone_and_keep_their_offsets(kafka_broker):
    topic = kafka_broker.create_topic("expired")
    kafka_broker.produce(topic, ["a", "b", "c"])
    kafka_broker.expire(topic, 0, before_offset=2)
    assert [(record.offset, record.value) for record in kafka_broker.read(topic)] == [(2, b"c")]
    assert (kafka_broker.start_offsets(topic), kafka_broker.end_offsets(topic)) == ({0: 2}, {0: 3})


def test_old_records_go_by_themselves_only_from_a_topic_with_a_retention(kafka_broker):
    kept, short = (
        kafka_broker.create_topic("kept"),
        kafka_broker.create_topic("short", retention_ms=60_000),
    )
    for topic in (kept, short):
        kafka_broker.produce(topic, [Record("old", timestamp=1_700_000_000_000)])
    kafka_broker.wait_until(lambda: kafka_broker.start_offsets(short) == {0: 1}, "expiry")
    assert values(kafka_broker.read(kept)) == [b"old"]


def test_a_compacted_topic_keeps_the_last_record_of_a_key_and_has_holes(kafka_broker):
    topic = kafka_broker.create_topic("compacted", partitions=2, cleanup_policy="compact")
    kafka_broker.produce(
        topic, [Record(str(i), key=f"key {i % 3}", partition=i % 2) for i in range(12)]
    )
    kafka_broker.compact_now(topic)
    assert [
        (record.partition, record.offset, record.value) for record in kafka_broker.read(topic)
    ] == [(0, 3, b"6"), (0, 4, b"8"), (0, 5, b"10"), (1, 3, b"7"), (1, 4, b"9"), (1, 5, b"11")]
    kafka_broker.compact_now(topic, last=Record("new", key="key 0", timestamp=1))
    assert Counter(values(kafka_broker.read(topic))) == Counter(
        [b"6", b"8", b"10", b"7", b"9", b"11", b"new", b"new"]
    )
    kafka_broker.compact_now(topic)
    assert Counter(values(kafka_broker.read(topic))) == Counter(
        [b"8", b"10", b"7", b"11", b"new", b"new"]
    )


def test_partitions_are_added_and_a_name_can_be_used_again(kafka_broker):
    topic = kafka_broker.create_topic("changing")
    kafka_broker.produce(topic, ["a"])
    kafka_broker.add_partitions(topic, 3)
    kafka_broker.produce(topic, [Record("b", partition=2)])
    assert kafka_broker.end_offsets(topic) == {0: 1, 1: 0, 2: 1}
    kafka_broker.delete_topic(topic)
    assert kafka_broker.end_offsets(kafka_broker.create_topic(topic)) == {0: 0}
    kafka_broker.produce(topic, ["c", "d"])
    assert values(kafka_broker.read(topic)) == [b"c", b"d"]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_broker_comes_back_on_its_ports_with_its_data(kafka_broker, end):
    topic = kafka_broker.create_topic(f"kept_after_{end}")
    kafka_broker.produce_in_transaction(topic, ["before"])
    before = kafka_broker.servers
    getattr(kafka_broker, end)()
    kafka_broker.start()
    kafka_broker.produce_in_transaction(topic, ["after"])
    assert kafka_broker.servers == before
    assert values(kafka_broker.read(topic)) == [b"before", b"after"]


@pytest.mark.parametrize("change", [{}, {"sasl.password": "wrong"}, {"ssl.ca.location": None}])
def test_the_secure_listener_wants_the_password_and_a_client_that_trusts_its_authority(
    kafka_broker, change
):
    login = {
        "bootstrap.servers": kafka_broker.secure_servers,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "log_level": 0,
        "sasl.username": kafka_broker.username,
        "sasl.password": kafka_broker.password,
        "ssl.ca.location": str(kafka_broker.ca_file),
    } | change
    errors = []
    client = AdminClient(
        {key: value for key, value in login.items() if value is not None}
        | {"error_cb": lambda error: errors.append(error.str())}
    )
    if not change:
        assert [
            f"{broker.host}:{broker.port}"
            for broker in client.list_topics(timeout=20).brokers.values()
        ] == [kafka_broker.secure_servers]
    else:
        client.poll(20)  # returns with the first error
        assert (
            "Invalid username or password"
            if "sasl.password" in change
            else "certificate verify failed"
        ) in errors[0]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_database_comes_back_on_its_port_with_its_data(postgres, end):
    with postgres.connect() as connection:
        connection.execute(f"CREATE TABLE kept_after_{end} (id int PRIMARY KEY, word text)")
        connection.execute(f"INSERT INTO kept_after_{end} VALUES (1, 'ä')")
    before = postgres.jdbc_url
    getattr(postgres, end)()
    with pytest.raises(psycopg.OperationalError):
        postgres.connect()
    postgres.start()
    with postgres.connect() as connection:
        assert connection.execute(f"SELECT * FROM kept_after_{end}").fetchall() == [(1, "ä")]
    assert postgres.jdbc_url == before


def test_a_database_refuses_a_wrong_password(postgres):
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        postgres.connect(password="wrong")
