"""Rows sent to a real Kafka broker.

What a reader finds, what it can tell apart, and which refusals are final.
"""

import json
import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql.types import ArrayType, StringType, StructType
from sluice.errors import SinkError, SpecError, TransientError
from sluice.sinks.delivery import Delivery
from sluice.spec import KafkaSink

from tests.spark.delivering import deliver, prepare

SCHEMA = (
    StructType()
    .add("id", "long")
    .add("shop", "string")
    .add("note", "string")
    .add("tags", ArrayType(StringType()))
    .add("_run_id", "string")
)


@pytest.fixture
def send(kafka_broker):
    """Sends rows to a sink as a batch; `broker` fields by default."""

    def send(rows, batch: int = 0, columns: tuple = ("id", "shop", "note"), **fields) -> int:
        sink = KafkaSink(**{"kind": "kafka", "servers": kafka_broker.servers} | fields)
        prepare(sink, rows.schema, "orders.clean: sinks[0]")
        own = [name for name in columns if name in rows.columns]
        return deliver(rows, sink, Delivery("orders.clean.1", batch, own, Path("."), "."))

    return send


def headers_of(record) -> dict[str, bytes | None]:
    return dict(record.headers)


def test_a_row_becomes_a_record_with_key_value_and_headers(spark, kafka_broker, send):
    topic = kafka_broker.create_topic("sink_round_trip", 2)
    rows = spark.sql(
        "SELECT 7L id, 'eu' shop, CAST(NULL AS STRING) note, X'00FF' raw, "
        "TIMESTAMP'2026-03-01 12:00:00.123456' at, array('a') tags, 'r1' _run_id"
    )
    assert (
        send(
            rows,
            topic=topic,
            key="id",
            headers={"shop": "shop", "raw": "raw", "note": "note"},
            columns=("id", "shop", "note", "raw", "at", "tags"),
        )
        == 1
    )
    (record,) = kafka_broker.read(topic)
    assert record.key == b"7"
    assert json.loads(record.value) == {
        "id": 7,
        "shop": "eu",
        "raw": "AP8=",
        "at": "2026-03-01T12:00:00.123456Z",
        "tags": ["a"],
    }  # a NULL is left out
    headers = headers_of(record)
    position = headers.pop("sluice.position")
    assert headers == {
        "shop": b"eu",
        "raw": b"\x00\xff",
        "note": None,
        "sluice.batch": b"orders.clean.1/0",
    }
    assert position.endswith(b"-1")


def test_a_value_may_be_one_column_or_some(spark, kafka_broker, send):
    topic = kafka_broker.create_topic("sink_values")
    rows = spark.sql("SELECT 1L id, 'eu' shop, 'hello' note, X'00FF' raw")
    send(rows, topic=topic, value="note")
    send(rows, topic=topic, value="raw")
    send(rows, topic=topic, value=["shop", "id"])
    send(rows, topic=topic)
    assert [record.value for record in kafka_broker.read(topic)] == [
        b"hello",
        b"\x00\xff",
        b'{"shop":"eu","id":1}',
        b'{"id":1,"shop":"eu","note":"hello"}',
    ]
    assert {record.key for record in kafka_broker.read(topic)} == {None}


def test_only_a_value_column_that_is_null_makes_a_tombstone(spark, kafka_broker, send):
    topic = kafka_broker.create_topic("sink_tombstones")
    rows = spark.sql("SELECT 1L id, CAST(NULL AS STRING) note")
    send(rows, topic=topic, key="id", value="note")
    send(rows, topic=topic, key="id", value=["note"])
    assert [(record.key, record.value) for record in kafka_broker.read(topic)] == [
        (b"1", None),
        (b"1", b"{}"),
    ]


def test_a_column_may_say_which_topic(spark, kafka_broker, send):
    one, other = (
        kafka_broker.create_topic("sink_column_1"),
        kafka_broker.create_topic("sink_column_2"),
    )
    send(
        spark.sql(
            f"SELECT * FROM VALUES ('{one}', 'a'), ('{other}', 'b'), ('{one}', 'c') "
            "AS t(shop, note)"
        ),
        topic_column="shop",
        value="note",
    )
    assert (
        sorted(r.value for r in kafka_broker.read(one)),
        [r.value for r in kafka_broker.read(other)],
    ) == ([b"a", b"c"], [b"b"])
    with pytest.raises(SinkError, match="null topic.*Give every row a topic"):
        send(
            spark.sql("SELECT CAST(NULL AS STRING) shop, 'x' note"),
            topic_column="shop",
            value="note",
        )


def test_a_key_goes_to_the_partition_that_kafka_chooses_for_it(spark, kafka_broker, send):
    topic = kafka_broker.create_topic("sink_partitions", 4)
    send(
        spark.sql("SELECT concat('k', id % 9) shop, 'x' note FROM range(60)"),
        batch=0,
        topic=topic,
        key="shop",
        value="note",
    )
    send(
        spark.sql("SELECT concat('k', id % 9) shop, 'y' note FROM range(60)"),
        batch=1,
        topic=topic,
        key="shop",
        value="note",
    )
    places = {(record.key, record.partition) for record in kafka_broker.read(topic)}
    assert len(places) == 9
    assert len({partition for _, partition in places}) > 1


def test_a_batch_sent_twice_can_be_told_from_rows_that_are_equal(spark, kafka_broker, send):
    topic = kafka_broker.create_topic("sink_twice", 3)
    # Three equal rows, rows of one key, and a pair whose hashes are equal although they are not: a
    # NULL does not count there.
    made = (
        [("k", "same")] * 3
        + [(f"k{n % 7}", f"v{n // 2}") for n in range(200)]
        + [(None, "a"), ("a", None)] * 2
    )
    rows = spark.createDataFrame(
        [(key, value, number) for number, (key, value) in enumerate(made)],
        "shop string, note string, id bigint",
    )
    expected = Counter((key and key.encode(), value and value.encode()) for key, value in made)
    record = {"topic": topic, "key": "shop", "value": "note", "columns": ("shop", "note")}
    send(rows.repartition(5, "id"), **record)
    send(rows.orderBy("id", ascending=False).coalesce(1), **record)
    send(rows, batch=1, **record)
    records = kafka_broker.read(topic)
    assert Counter((record.key, record.value) for record in records) == Counter(
        {content: 3 * count for content, count in expected.items()}
    )
    seen: dict[tuple, set] = {}
    for record in records:
        headers = headers_of(record)
        seen.setdefault((headers["sluice.batch"], headers["sluice.position"]), set()).add(
            (record.key, record.value)
        )
    assert all(
        len(contents) == 1 for contents in seen.values()
    )  # the same place never holds anything else
    hashes = {
        (position.split(b"-")[0], content)
        for (_, position), contents in seen.items()
        for content in contents
    }
    assert len(hashes) == len(expected) == len({hashed for hashed, _ in hashes}) + 1  # the pair
    for batch in (b"orders.clean.1/0", b"orders.clean.1/1"):
        assert (
            Counter(next(iter(contents)) for (named, _), contents in seen.items() if named == batch)
            == expected
        )


def test_a_batch_sent_again_in_another_shape_keeps_the_places_of_its_rows(
    spark, kafka_broker, send
):
    topic = kafka_broker.create_topic("sink_reshaped")
    rows = spark.createDataFrame(
        [(1, "eu", "a", {"x": 1}), (1, "eu", "a", {"x": 1}), (2, None, "b", None)],
        "id bigint, shop string, note string, more map<string, int>",
    )
    columns = ("id", "shop", "note", "more")
    send(rows, topic=topic, columns=columns)
    send(rows, topic=topic, columns=columns, value=["note", "id"], key="shop")
    wider = rows.withColumn("added", rows.note.substr(9, 1)).replace("", None, "added")
    send(wider, topic=topic, columns=("added", *columns))
    places = Counter(headers_of(record)["sluice.position"] for record in kafka_broker.read(topic))
    assert sorted(places.values()) == [3, 3, 3]


def test_a_batch_without_rows_sends_nothing(spark, send):
    assert send(spark.sql("SELECT 'x' note WHERE false"), topic="sink_nowhere", value="note") == 0


def test_a_password_opens_the_brokers_and_a_wrong_one_is_final(spark, kafka_broker, send):
    topic = kafka_broker.create_topic("sink_secure")
    security = {
        "username": kafka_broker.username,
        "password": kafka_broker.password,
        "ca_file": str(kafka_broker.ca_file),
    }
    rows = spark.sql("SELECT 'x' note")
    assert (
        send(
            rows, servers=kafka_broker.secure_servers, security=security, topic=topic, value="note"
        )
        == 1
    )
    with pytest.raises(SinkError, match="Authentication failed.*Mend `security`") as caught:
        send(
            rows,
            servers=kafka_broker.secure_servers,
            security=security | {"password": "wrong-one"},
            topic=topic,
            value="note",
        )
    assert "wrong-one" not in str(caught.value)


@pytest.mark.parametrize(
    ("policy", "fields", "message"),
    [
        (
            None,
            {"options": {"kafka.max.block.ms": "1500"}},
            "sink_refusal_0 not present.*Create the topic",
        ),
        (None, {"topic": "no such name"}, "Invalid topics.*Mend `topic`"),
        ("delete", {"value": "big"}, "max.request.size.*Send fewer columns"),
        (
            "delete",
            {"value": "big", "options": {"kafka.max.request.size": "9000000"}},
            "larger than the max message size.*Send fewer columns",
        ),
        ("compact", {}, "A compacted topic takes no record without a key"),
        (
            "delete",
            {"options": {"kafka.acks": "7"}},
            "Invalid value 7 for configuration acks.*Mend `options`",
        ),
    ],
    ids=[
        "no_topic",
        "no_name",
        "too_large_to_send",
        "too_large_to_take",
        "no_key",
        "no_such_setting",
    ],
)
def test_a_refusal_is_final_and_says_what_to_do(
    spark, kafka_broker, send, request, policy, fields, message
):
    topic = f"sink_refusal_{request.node.callspec.indices['policy']}"
    if policy:
        kafka_broker.create_topic(topic, cleanup_policy=policy)
    with pytest.raises(SinkError, match=message):
        send(
            spark.sql("SELECT 'x' note, repeat('x', 2000000) big"),
            **{"topic": topic, "value": "note"} | fields,
        )


def test_brokers_that_are_away_end_the_run_soon_and_the_batch_can_be_sent_when_they_are_back(
    spark, kafka_broker, send
):
    topic = kafka_broker.create_topic("sink_away")
    rows = spark.sql("SELECT 'x' note")
    kafka_broker.stop()
    try:
        started = time.monotonic()
        with pytest.raises(
            TransientError, match="did not take the records.*See that the brokers run"
        ):
            send(rows, topic=topic, value="note", options={"kafka.max.block.ms": "1000"})
        assert time.monotonic() - started < 20
    finally:
        kafka_broker.start()
    assert send(rows, topic=topic, value="note") == 1
    assert [record.value for record in kafka_broker.read(topic)] == [b"x"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"value": "nota"},
            r"s: sinks\[0\]: value: no such column \(got 'nota'\)\. There are: id, shop",
        ),
        ({"value": ["id", "nota"]}, "value: no such column"),
        (
            {"value": "id"},
            "value: the column is bigint, not text or bytes; a list of columns is sent as JSON",
        ),
        ({"key": "tags"}, "key: the column is array<string>, not one value"),
        ({"key": "nobody"}, "key: no such column"),
        ({"headers": {"h": "tags"}}, "headers: h: the column is array"),
        ({"headers": {"sluice.batch": "id"}}, "every record has this header already"),
        ({"options": {"acks": "all"}}, "Write kafka.acks"),
    ],
)
def test_what_a_sink_asks_for_must_be_there(fields, message):
    with pytest.raises(SpecError, match=message):
        prepare(
            KafkaSink(**{"kind": "kafka", "servers": "a:1", "topic": "t"} | fields),
            SCHEMA,
            "s: sinks[0]",
        )


def test_a_topic_column_must_hold_text():
    with pytest.raises(SpecError, match="topic_column: the column is bigint, not text"):
        prepare(KafkaSink(kind="kafka", servers="a:1", topic_column="id"), SCHEMA, "s: sinks[0]")


def test_names_are_compared_as_spark_does():
    prepare(
        KafkaSink(
            kind="kafka",
            servers="a:1",
            topic="t",
            key="ID",
            value="Note",
            headers={"run": "_run_id"},
        ),
        SCHEMA,
        "s: sinks[0]",
    )
