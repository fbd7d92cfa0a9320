"""Kafka topics as a source, against a real broker.

Every offset has one fate, whatever the topic goes through.
"""

import io
import json
from collections import Counter
from datetime import UTC, datetime

import pytest
from sluice.cli import app
from sluice.errors import ExitCode, SourceError
from sluice.spec import Window, load_pipeline
from sluice.streaming import batch, bounds, step
from sluice.streaming.replay import verify_by_replay
from typer.testing import CliRunner

from tests.certificates import KEY_PASSWORD
from tests.kafka_broker import Record
from tests.spark.factories import Project

ORDER = {"id": "string", "n": "bigint", "at": "timestamp"}
HASTY = {
    "kafka.default.api.timeout.ms": "2000",
    "kafka.request.timeout.ms": "2000",
    "kafkaConsumer.pollTimeoutMs": "2000",
}
DEDUP = {"event_time": {"column": "at"}, "dedup": {"keys": ["id"], "within": "2 days"}}


def order(number: int, day: int = 1) -> str:
    return json.dumps({"id": f"o{number}", "n": number, "at": f"2026-01-{day:02d}T00:00:00Z"})


@pytest.fixture
def project(spark, kafka_broker, tmp_path):
    """A pipeline over one topic (or what `source` says) of JSON orders."""

    def make(topic: str | None = None, step: dict | None = None, **source: object) -> Project:
        chosen = {"subscribe": topic} if topic else {}
        return Project(
            spark,
            tmp_path,
            {
                "kind": "kafka",
                "servers": kafka_broker.servers,
                "format": "json",
                "schema": ORDER,
                **chosen,
                **source,
            },
            step or {"sink": {"mode": "append"}},
        )

    return make


def ids(project: Project) -> list[str]:
    return sorted(row[0] for row in project.rows("id").elements())


def test_every_record_has_one_fate_over_all_runs_and_says_where_it_came_from(project, kafka_broker):
    topic = kafka_broker.create_topic("fates", partitions=2)
    kafka_broker.produce(
        topic,
        [
            Record(
                order(1), key="a", headers=(("h", b"x"),), partition=0, timestamp=1_700_000_000_000
            ),
            Record(order(1), partition=1),
            Record("{broken", key="b", partition=0),
            Record("{broken", key="c", partition=0),
            Record("", partition=1),
            Record(None, key="a", partition=0),
            Record(None, key="b", partition=1),
            Record(None, key="b", partition=1),
        ],
    )
    shop = project(topic, DEDUP)
    assert (shop.plan().must_run, shop.plan().records) == (True, 8)
    first = shop.run().steps[0]
    counts = first.counts
    assert (counts.read, counts.written, counts.quarantined, counts.duplicate) == (8, 1, 5, 2)
    assert first.ranges == {"fates/0": (0, 4), "fates/1": (0, 4)}
    ((origin,),) = shop._table(shop.paths.table("s")).select("_source").collect()
    assert (origin.topic, origin.value) == ("fates", order(1).encode())
    assert shop.plan().reason == "nothing is new"
    assert shop.run().exit_code is ExitCode.NOTHING_NEW
    kafka_broker.produce(
        topic,
        [
            Record(order(1), partition=0),
            Record(order(2), partition=1),
            Record("{broken", key="b", partition=0),
        ],
    )
    second = shop.run().counts
    assert (second.read, second.written, second.quarantined, second.duplicate) == (3, 1, 0, 2)
    assert ids(shop) == ["o1", "o2"]
    refused = Counter(
        (row.row, row.detail, json.loads(row._source).get("key")) for row in shop.quarantine()
    )
    tombstone = "the record has no value (a tombstone)"
    assert refused == Counter(
        {
            ("{broken", "not a JSON object", "b"): 1,
            ("{broken", "not a JSON object", "c"): 1,
            ("", "not a JSON object", None): 1,
            ("{}", tombstone, "a"): 1,
            ("{}", tombstone, "b"): 1,
        }
    )


def test_key_headers_time_and_place_of_a_record_are_columns_of_the_transform(
    project, kafka_broker, tmp_path
):
    topic = kafka_broker.create_topic("origins")
    kafka_broker.produce(
        topic,
        [
            Record(
                order(1), key="k", headers=(("h", b"x"), ("h", None)), timestamp=1_700_000_000_000
            ),
            Record(None, key="gone"),
        ],
    )
    (tmp_path / "t.sql").write_text(
        "SELECT CAST(_source.key AS STRING) AS k, _raw IS NULL AS deleted, n, "
        "size(_source.headers) AS hs, "
        "_source.timestamp AS at, _source.offset AS o, _source.partition AS p FROM source"
    )
    shop = project(
        topic,
        {"transform": "t.sql", "sink": {"mode": "append"}},
        tombstones="keep",
        keep_value=False,
    )
    assert shop.run().counts.written == 2
    rows = shop._table(shop.paths.table("s")).collect()
    assert Counter((r.k, r.deleted, r.n, r.hs, r.o, r.p) for r in rows) == Counter(
        [("k", False, 1, 2, 0, 0), ("gone", True, None, None, 1, 0)]
    )
    assert not any("value" in r._source for r in rows)
    assert [r.at for r in rows if r.k == "k"] == [datetime(2023, 11, 14, 22, 13, 20)]


AVRO = {
    "type": "record",
    "name": "o",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "n", "type": ["null", "long"]},
        {"name": "extra", "type": "int"},
    ],
}


def avro(**fields: object) -> bytes:
    """One Avro record, by the schema above.

    Strings with their length, longs as zigzag varints, a union by its branch.
    """

    def zigzag(number: int) -> bytes:
        number, out = (number << 1) ^ (number >> 63), io.BytesIO()
        while number > 0x7F:
            out.write(bytes([number & 0x7F | 0x80]))
            number >>= 7
        out.write(bytes([number]))
        return out.getvalue()

    union = zigzag(0) if fields["n"] is None else zigzag(1) + zigzag(fields["n"])
    return zigzag(len(fields["id"])) + fields["id"].encode() + union + zigzag(fields["extra"])


@pytest.mark.parametrize(
    ("source", "values", "rows", "defects"),
    [
        (
            {"format": "csv", "schema": {"id": "string", "n": "bigint"}},
            [b"a,1", b'"b\nc",2\n', b"d,x", b"e,5\nf,6", b" ", b"g"],
            {("a", 1): 1, ("b\nc", 2): 1},
            {
                "n is not bigint",
                "more than one line",
                "the value is blank",
                "not as many fields as the header",
            },
        ),
        (
            {"format": "text", "schema": {"value": "string"}},
            [b"one\ntwo", b"", b"\xff"],
            {("one\ntwo",): 1, ("",): 1},
            {"not valid UTF-8"},
        ),
        (
            {"format": "bytes", "schema": {"value": "binary"}},
            [b"\xff\x00", b""],
            {(b"\xff\x00",): 1, (b"",): 1},
            set(),
        ),
        (
            {
                "format": "avro",
                "schema": {"id": "string", "n": "int", "new": "string"},
                "avro": {"schema_file": "o.avsc"},
            },
            [
                avro(id="a", n=1, extra=7),
                avro(id="b", n=None, extra=8),
                b"\x06a",
                avro(id="c", n=2**40, extra=9),
            ],
            {("a", 1, None): 1, ("b", None, None): 1},
            {"not an Avro record of this schema", "n is not int"},
        ),
        (
            {
                "format": "avro",
                "schema": {"id": "string", "n": "bigint"},
                "avro": {"schema_file": "o.avsc", "wire": "confluent"},
            },
            [
                b"\x00\x00\x00\x00\x07" + avro(id="a", n=1, extra=7),
                avro(id="b", n=2, extra=8),
                b"\x00",
            ],
            {("a", 1): 1},
            {"no zero byte and schema id before the record"},
        ),
        (
            {
                "format": "avro",
                "schema": {"id": "string", "n": "timestamp"},
                "avro": {"schema_file": "o.avsc"},
            },
            [
                avro(id="a", n=1, extra=7),
                avro(id="b", n=None, extra=8),
                avro(id="c", n=253_402_300_800, extra=9),
            ],
            {("a", datetime(1970, 1, 1, 0, 0, 1)): 1, ("b", None): 1},
            {"n: not within the years 1 to 9999"},
        ),
    ],
    ids=["csv", "text", "bytes", "avro", "confluent", "avro_times"],
)
def test_a_value_is_one_record_in_each_format_and_what_does_not_fit_is_kept(
    project, kafka_broker, tmp_path, request, source, values, rows, defects
):
    topic = kafka_broker.create_topic(f"format_{request.node.callspec.id}")
    kafka_broker.produce(topic, [Record(value) for value in values])
    (tmp_path / "o.avsc").write_text(json.dumps(AVRO))
    shop = project(topic, **source)
    counts = shop.run().counts
    table = shop._table(shop.paths.table("s")).select(*source["schema"]).collect()
    assert Counter(
        tuple(bytes(v) if isinstance(v, bytearray) else v for v in row) for row in table
    ) == Counter(rows)
    assert (counts.read, counts.written, counts.quarantined) == (
        len(values),
        sum(rows.values()),
        len(values) - sum(rows.values()),
    )
    assert {row.detail for row in shop.quarantine()} == defects
    if "avro" in source and "wire" not in source["avro"]:
        assert {json.loads(row[0])["extra"] for row in shop.rows("_rescued")} == {7, 8}


def test_a_first_run_begins_where_start_says_and_latest_loses_nothing_between_two_runs(
    project, kafka_broker
):
    topic = kafka_broker.create_topic("starts", partitions=2)
    kafka_broker.produce(
        topic,
        [
            Record(order(n), partition=n % 2, timestamp=1_700_000_000_000 + 1000 * n)
            for n in range(6)
        ],
    )
    latest = project(topic, start="latest")
    assert latest.plan().must_run
    assert latest.run().counts.read == 0
    kafka_broker.produce(topic, [Record(order(9), partition=0)])
    assert latest.plan().records == 1
    assert latest.run().counts.read == 1
    assert ids(latest) == ["o9"]


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ({"offsets": {"starts_at": {0: 1, 1: "latest"}}}, ["o2", "o4"]),
        ({"offsets": {"starts_at": {0: "latest"}}}, ["o1", "o3", "o5"]),
        ({"timestamp": "2023-11-14T22:13:24Z"}, ["o4", "o5"]),
    ],
    ids=["offsets", "a_partition_that_is_not_named", "timestamp"],
)
def test_a_first_run_begins_at_an_offset_or_a_time(project, kafka_broker, start, expected):
    topic = "starts_at"
    if topic not in kafka_broker._admin.list_topics(timeout=10).topics:
        kafka_broker.create_topic(topic, partitions=2)
        kafka_broker.produce(
            topic,
            [
                Record(order(n), partition=n % 2, timestamp=1_700_000_000_000 + 1000 * n)
                for n in range(6)
            ],
        )
    shop = project(topic, start=start)
    waiting = shop.plan().records
    shop.run()
    assert ids(shop) == expected
    assert waiting == len(expected)


def test_a_pattern_reads_topics_made_later_and_assigned_partitions_are_read_alone(
    project, kafka_broker, tmp_path
):
    first = kafka_broker.create_topic("area_one", partitions=2)
    kafka_broker.produce(first, [Record(order(1), partition=0), Record(order(2), partition=1)])
    shop = project(subscribe_pattern="area_.*")
    shop.run()
    second = kafka_broker.create_topic("area_two")
    kafka_broker.produce(second, [Record(order(3))])
    kafka_broker.add_partitions(first, 3)
    kafka_broker.produce(first, [Record(order(4), partition=2)])
    assert shop.plan().records == 2
    assert shop.run().counts.written == 2
    assert ids(shop) == ["o1", "o2", "o3", "o4"]
    alone = Project(shop.spark, tmp_path / "alone", {**shop.source, "assign": {"area_one": [1]}})
    alone.source.pop("subscribe_pattern")
    alone.run()
    assert ids(alone) == ["o2"]


def test_cutting_the_topic_into_small_batches_changes_nothing(
    project, kafka_broker, spark, tmp_path
):
    topic = kafka_broker.create_topic("cuts", partitions=3)
    kafka_broker.produce(
        topic,
        [Record(order(n % 7), partition=n % 3) for n in range(12)]
        + [Record("{broken", partition=0)] * 2,
    )
    whole = project(topic, DEDUP)
    whole.run()
    cut = Project(spark, tmp_path / "cut", {**whole.source, "max_offsets_per_batch": 6}, DEDUP)
    report = cut.run()
    assert len(report.steps[0].batches) == 3
    assert cut.rows("id", "n") == whole.rows("id", "n")
    assert report.counts == whole.reports[0].counts


def test_aborted_records_are_not_read_and_markers_are_no_rows(
    project, kafka_broker, spark, tmp_path
):
    topic = kafka_broker.create_topic("read_transactions")
    kafka_broker.produce_in_transaction(topic, [order(1), order(2)])
    kafka_broker.produce_in_transaction(topic, [order(3)], abort=True)
    kafka_broker.produce(topic, [order(4)])
    shop = project(topic)
    counts = shop.run().counts
    assert (counts.read, counts.written, ids(shop)) == (3, 3, ["o1", "o2", "o4"])
    assert not shop.plan().must_run
    dirty = Project(spark, tmp_path / "dirty", {**shop.source, "isolation": "read_uncommitted"})
    dirty.run()
    assert ids(dirty) == ["o1", "o2", "o3", "o4"]


def test_a_compacted_topic_is_read_with_its_gaps(project, kafka_broker):
    topic = kafka_broker.create_topic("read_compacted", cleanup_policy="compact")
    kafka_broker.produce(topic, [Record(order(n), key=f"k{n % 2}") for n in range(6)])
    kafka_broker.compact_now(topic, last=Record(order(9), key="end"))
    shop = project(topic)
    counts = shop.run().counts
    assert (counts.read, ids(shop)) == (3, ["o4", "o5", "o9"])
    assert shop.plan().reason == "nothing is new"


def test_records_that_expired_unread_stop_the_run_or_are_named_in_its_report(project, kafka_broker):
    topic = kafka_broker.create_topic("read_expired")
    kafka_broker.produce(topic, [order(1)])
    shop = project(topic)
    shop.run()
    kafka_broker.produce(topic, [order(n) for n in range(2, 6)])
    kafka_broker.expire(topic, 0, 3)
    stopped = shop.run()
    assert stopped.exit_code is ExitCode.TERMINAL
    assert (
        "records that were not read yet are gone from the brokers, read_expired/0: 2"
        in stopped.error
    )
    assert "fail_on_data_loss: false" in stopped.error
    shop.source["fail_on_data_loss"] = False
    went_on = shop.run()
    assert (went_on.exit_code, went_on.counts.read, ids(shop)) == (
        ExitCode.DONE,
        2,
        ["o1", "o4", "o5"],
    )
    assert any("read_expired/0: 2" in warning for warning in went_on.steps[0].warnings)


def test_a_topic_made_anew_is_never_taken_for_the_old_one(project, kafka_broker):
    topic = kafka_broker.create_topic("anew")
    kafka_broker.produce(topic, [order(n) for n in range(4)])
    shop = project(topic, DEDUP)
    shop.run()
    kafka_broker.delete_topic(topic)
    gone = shop.run()
    assert (
        gone.exit_code,
        "partitions that were read before are there no more: anew/0" in gone.error,
    ) == (ExitCode.TERMINAL, True)
    kafka_broker.create_topic(topic)
    kafka_broker.produce(topic, [order(9)])
    anew = shop.run()
    assert anew.exit_code is ExitCode.TERMINAL
    assert "were made anew: anew/0" in anew.error
    (shop.folder / "root" / "checkpoints").rename(shop.folder / "old")
    assert shop.run().counts.written == 1
    assert ids(shop) == ["o0", "o1", "o2", "o3", "o9"]


def test_a_topic_that_never_was_is_an_error_that_names_it(project):
    report = project("nowhere").run()
    assert report.exit_code is ExitCode.TERMINAL
    assert "no such topic" in report.error and "nowhere" in report.error


def test_a_login_comes_from_an_airflow_connection_and_its_password_stays_out_of_the_report(
    project, kafka_broker, monkeypatch
):
    topic = kafka_broker.create_topic("secured")
    kafka_broker.produce(topic, [order(1)])
    extra = {
        "bootstrap.servers": kafka_broker.secure_servers,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": kafka_broker.username,
        "sasl.password": kafka_broker.password,
        "ssl.ca.location": str(kafka_broker.ca_file),
    }
    monkeypatch.setenv("AIRFLOW_CONN_SECURED", json.dumps({"conn_type": "kafka", "extra": extra}))
    shop = project(topic, connection="secured")
    shop.source.pop("servers")
    report = shop.run()
    assert (report.error, report.counts.written) == (None, 1)
    assert kafka_broker.password not in report.model_dump_json()


@pytest.mark.parametrize("login", ["SCRAM-SHA-256", "SCRAM-SHA-512", "certificate"])
def test_scram_and_a_clients_certificate_open_the_brokers_to_probe_source_and_sink(
    project, kafka_broker, monkeypatch, login
):
    topic, sent = (
        kafka_broker.create_topic(f"login_{login}"),
        kafka_broker.create_topic(f"login_{login}_sent"),
    )
    kafka_broker.produce(topic, [order(1)])
    kafka_broker.allow_scram()
    files, security = (
        kafka_broker.certificates,
        {"mechanism": login, "username": kafka_broker.username, "password": "${LOGIN_SECRET}"},
    )
    if login == "certificate":
        security = {
            "protocol": "SSL",
            "certificate_file": str(files.client),
            "key_file": str(files.client_key),
            "key_password": "${LOGIN_SECRET}",
        }
    servers = kafka_broker.mutual_servers if login == "certificate" else kafka_broker.secure_servers
    cluster = {"servers": servers, "security": {"ca_file": str(files.authority), **security}}
    monkeypatch.setenv(
        "LOGIN_SECRET", KEY_PASSWORD if login == "certificate" else kafka_broker.password
    )
    shop = project(
        topic,
        {"sink": [{"mode": "append"}, {"kind": "kafka", "topic": sent, **cluster}]},
        **cluster,
    )
    assert shop.plan().records == 1
    report = shop.run()
    assert (report.error, report.counts.written, shop.plan().records) == (None, 1, 0)
    assert len(kafka_broker.read(sent)) == 1


def test_brokers_that_want_a_certificate_tell_a_client_without_one(project, kafka_broker):
    topic = kafka_broker.create_topic("login_without")
    shop = project(
        topic,
        servers=kafka_broker.mutual_servers,
        security={"protocol": "SSL", "ca_file": str(kafka_broker.ca_file)},
    )
    assert shop.plan().must_run and "could not be asked" in shop.plan().reason
    report = shop.run()
    assert report.exit_code is ExitCode.TRANSIENT and "certificate" in report.error.lower()


def test_a_backfill_reads_the_range_again_and_adds_only_what_is_missing(
    project, kafka_broker, spark
):
    topic = kafka_broker.create_topic("again")
    kafka_broker.produce(
        topic,
        [
            Record(
                order(n, day=n),
                timestamp=int(datetime(2026, 1, n, 12, tzinfo=UTC).timestamp() * 1000),
            )
            for n in range(1, 6)
        ],
    )
    shop = project(topic, DEDUP)
    shop.run()
    spark.sql(f"DELETE FROM delta.`{shop.paths.table('s')}` WHERE n IN (2, 3)")
    position = shop.reports[0].steps[0].offsets_after
    report = shop.run(window=Window(start=datetime(2026, 1, 3), end=datetime(2026, 1, 5)))
    assert (report.error, report.counts.written, report.counts.duplicate) == (None, 1, 1)
    assert ids(shop) == ["o1", "o3", "o4", "o5"]
    assert shop.plan().reason == "nothing is new" and position == 0


def change_first(monkeypatch, change) -> None:
    """Let something happen to the topic when Spark has planned the first batch of the next run.

    No record of the batch is read before it.
    """
    original, changed = step.take_batch, []

    def process(course, plan, frame, number):
        if not changed:
            changed.append(number)
            change()
        return original(course, plan, frame, number)

    monkeypatch.setattr(step, "take_batch", process)


@pytest.mark.parametrize("go_on", [False, True], ids=["stop", "go_on"])
def test_records_that_expire_between_planning_and_reading_stop_the_run_or_are_named_in_its_report(
    project, kafka_broker, monkeypatch, go_on
):
    topic = kafka_broker.create_topic(f"expired_meanwhile_{go_on}")
    kafka_broker.produce(topic, [order(n) for n in range(6)])
    shop = project(topic, DEDUP, fail_on_data_loss=not go_on, options=HASTY)
    change_first(monkeypatch, lambda: kafka_broker.expire(topic, 0, 4))
    report = shop.run()
    if go_on:
        assert (report.exit_code, report.counts.read, ids(shop)) == (ExitCode.DONE, 2, ["o4", "o5"])
        assert report.steps[0].warnings == [
            f"records expired that were to be read, or just had been, {topic}/0: up to 4"
        ]
    else:
        assert (report.exit_code, report.counts.read) == (ExitCode.TERMINAL, 0)
        assert "records that were planned to be read are gone from the brokers" in report.error
        assert (
            f"[0, 6) for topic partition {topic}-0" in report.error
            and "fail_on_data_loss: false" in report.error
        )


@pytest.mark.parametrize(
    "step",
    [None, DEDUP | {"dedup": {"keys": list(ORDER), "within": "2 days"}}],
    ids=["append", "whole_rows"],
)
def test_records_that_expire_after_they_were_counted_are_written_all_the_same(
    project, kafka_broker, monkeypatch, request, step
):
    topic = kafka_broker.create_topic(f"expired_between_{request.node.callspec.id}")
    kafka_broker.produce(topic, [order(n) for n in range(6)])
    shop = project(topic, step, fail_on_data_loss=False, options=HASTY)
    count = batch.take_survey

    def count_then_expire(*args):
        survey = count(*args)
        kafka_broker.expire(topic, 0, 4)
        return survey

    monkeypatch.setattr(batch, "take_survey", count_then_expire)
    report = shop.run()
    assert (report.error, report.counts.read, report.counts.written) == (None, 6, 6)
    assert ids(shop) == [f"o{n}" for n in range(6)]
    assert report.steps[0].warnings == [
        f"records expired that were to be read, or just had been, {topic}/0: up to 4"
    ]


def test_a_topic_deleted_while_it_is_read_may_be_brokers_that_are_away_until_the_next_run_asks_them(
    project, kafka_broker, monkeypatch
):
    topic = kafka_broker.create_topic("deleted_meanwhile")
    kafka_broker.produce(topic, [order(1)])
    shop = project(topic, DEDUP, options=HASTY)
    shop.run()
    kafka_broker.produce(topic, [order(2)])
    change_first(monkeypatch, lambda: kafka_broker.delete_topic(topic))
    report = shop.run()
    assert (report.exit_code, "the brokers did not answer in time" in report.error) == (
        ExitCode.TRANSIENT,
        True,
    )
    told = shop.run()
    assert (
        told.exit_code,
        f"partitions that were read before are there no more: {topic}/0" in told.error,
    ) == (ExitCode.TERMINAL, True)


def test_a_topic_made_anew_and_filled_past_its_old_end_is_recognised(project, kafka_broker):
    topic = kafka_broker.create_topic("refilled")
    kafka_broker.produce(topic, [order(n) for n in range(3)])
    shop = project(topic, DEDUP)
    shop.run()
    kafka_broker.delete_topic(topic)
    kafka_broker.create_topic(topic)
    kafka_broker.produce(topic, [order(n) for n in range(10, 16)])
    plan = shop.plan()
    assert plan.must_run and "were made anew: refilled/0" in " ".join(plan.warnings)
    refused = shop.run()
    assert refused.exit_code is ExitCode.TERMINAL
    assert "were made anew: refilled/0" in refused.error
    (shop.folder / "root" / "checkpoints").rename(shop.folder / "old")  # the advice
    assert shop.run().counts.written == 6
    assert len(ids(shop)) == 9


@pytest.mark.parametrize("act", ["expire", "unsubscribe"])
def test_records_that_are_in_the_target_already_are_never_called_lost(project, kafka_broker, act):
    topic, other = (kafka_broker.create_topic(f"settled_{act}_{n}") for n in "ab")
    shop = project(None, DEDUP, subscribe=[topic, other])
    kafka_broker.produce(topic, [order(1)])
    shop.run()
    kafka_broker.produce(topic, [order(1), order(2), order(3)])
    newest = shop.run().steps[0].batches[-1].batch_id
    spark_folder = shop.folder / "root" / "checkpoints" / "p" / "s" / "spark"
    for name in (f"{newest}", f".{newest}.crc"):  # killed before Spark's own commit
        (spark_folder / "commits" / name).unlink(missing_ok=True)
    if act == "expire":
        kafka_broker.expire(topic, 0, 4)
    else:
        shop.source["subscribe"] = [other]
        shop.source["fail_on_data_loss"] = False
    kafka_broker.produce(other, [order(4)])
    assert not any("were not read yet" in warning for warning in shop.plan().warnings)
    report = shop.run()
    assert report.error is None
    assert ids(shop) == ["o1", "o2", "o3", "o4"]
    assert not any("were not read yet" in warning for warning in report.steps[0].warnings)
    assert shop.run().exit_code is ExitCode.NOTHING_NEW


@pytest.mark.parametrize(("keep_value", "batches"), [(True, 6), (False, 3)])
def test_a_topic_larger_than_the_memory_comes_in_batches_by_the_size_of_its_first_records(
    project, kafka_broker, monkeypatch, keep_value, batches
):
    topic = kafka_broker.create_topic(f"crowd_{keep_value}")
    kafka_broker.produce(topic, [Record(order(n)) for n in range(60)])
    size = len(order(10))
    monkeypatch.setattr(bounds, "storage_memory", lambda spark: int(20 * size / 0.6) + 2)
    shop = project(topic, DEDUP, keep_value=keep_value)
    first = shop.run().steps[0]
    assert (len(first.batches), first.counts.written) == (batches, 60)
    assert ids(shop) == sorted(f"o{n}" for n in range(60))


def test_what_a_pipeline_says_of_its_batches_wins_over_the_memory(
    project, kafka_broker, monkeypatch
):
    topic = kafka_broker.create_topic("crowd_said")
    kafka_broker.produce(topic, [Record(order(n)) for n in range(60)])
    monkeypatch.setattr(bounds, "storage_memory", lambda spark: 100)
    shop = project(topic, DEDUP, max_offsets_per_batch=40)
    assert len(shop.run().steps[0].batches) == 2


@pytest.mark.parametrize("how", [DEDUP, None], ids=["dedup", "append"])
def test_a_batch_that_was_too_large_comes_in_smaller_ones_under_a_lower_bound(
    project, kafka_broker, monkeypatch, how
):
    topic = kafka_broker.create_topic(f"overfull_{bool(how)}", partitions=2)
    kafka_broker.produce(topic, [Record(order(n), partition=n % 2) for n in range(30)])
    shop = project(topic, how, max_offsets_per_batch=10)
    assert len(shop.run().steps[0].batches) == 3
    kafka_broker.produce(topic, [Record(order(n), partition=n % 2) for n in range(30, 60)])
    shop.source["max_offsets_per_batch"] = 100

    def die(*_: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(step, "process", die)
        assert "killed" in shop.run().error
    shop.source["max_offsets_per_batch"] = 10
    report = shop.run()
    assert (report.error, [entry.counts.read for entry in report.steps[0].batches]) == (
        None,
        [10, 10, 10],
    )
    assert ids(shop) == sorted(f"o{n}" for n in range(60))
    assert shop.run().exit_code is ExitCode.NOTHING_NEW


def test_a_topic_is_read_up_to_its_ending_offsets_and_not_beyond_in_any_later_run(
    project, kafka_broker
):
    topic = kafka_broker.create_topic("ending", partitions=2)
    kafka_broker.produce(topic, [Record(order(n), partition=0) for n in range(6)])
    kafka_broker.produce(topic, [Record(order(9), partition=1)])
    ends = {"ending_offsets": {topic: {0: 4}}, "min_partitions": 3, "group_id_prefix": "shop"}
    shop = project(topic, **ends, max_offsets_per_batch=2)
    assert shop.plan().records == 5
    report = shop.run()
    assert (report.error, report.counts.read, report.counts.written) == (None, 5, 5)
    assert report.steps[0].ranges == {"ending/0": (0, 4), "ending/1": (0, 1)}
    assert ids(shop) == ["o0", "o1", "o2", "o3", "o9"]
    kafka_broker.produce(topic, [Record(order(7), partition=0)])
    assert shop.run().exit_code is ExitCode.NOTHING_NEW
    for later in ({topic: {0: 5}}, {}):
        shop.source["ending_offsets"] = later
        refused = shop.run()
        assert refused.exit_code is ExitCode.TERMINAL
        assert "have passed over records" in refused.error and f"{topic}/0: " in refused.error
    shop.source["ending_offsets"] = {topic: {0: 2}}
    kafka_broker.produce(topic, [Record(order(8), partition=1)])
    assert (shop.run().counts.read, shop.plan().records) == (1, 0)


REPORT = """
SELECT s.id, s.at, c.n FROM shops s JOIN counts c ON s.id = c.id
"""


def test_a_topic_is_read_as_a_whole_beside_a_stream_and_the_newest_record_of_a_key_counts(
    spark, kafka_broker, tmp_path, monkeypatch
):
    topic = kafka_broker.create_topic("counts", partitions=2)
    monkeypatch.setenv("SLUICE_PIPELINES", str(tmp_path))

    def put(key: str, value: str | None, partition: int = 0) -> None:
        kafka_broker.produce(topic, [Record(value, key=key, partition=partition)])

    put("a", "{superseded")
    put("a", order(1))
    put("b", order(2))
    put("b", None)
    put("c", order(3), partition=1)
    schema = {"id": "string", "n": "bigint"}
    counts = {"kind": "kafka", "servers": kafka_broker.servers, "subscribe": topic}
    counts |= {"format": "json", "schema": schema, "newest_per_key": True}
    landing = {"format": "csv", "schema": {"id": "string", "at": "timestamp"}}
    (tmp_path / "report.sql").write_text(REPORT)
    shop = Project(spark, tmp_path, {})
    inputs = {
        "shops": {"source": {**landing, "path": str(shop.landing)}},
        "counts": {"source": counts, "static": True},
    }
    shop.step = {"source": None, "inputs": inputs, "transform": "report.sql", **shop.step}
    shop.land("1.csv", "id,at\no1,2026-01-01\no2,2026-01-01\no3,2026-01-01\n")
    assert shop.run().error is None
    assert shop.rows("id", "n") == Counter([("o1", 1), ("o3", 3)])
    pipeline = load_pipeline(shop.write())
    same, _ = verify_by_replay(spark, pipeline, pipeline.steps[0], shop.paths)
    assert (same.rows, same.equal) == (2, True)
    put("d", order(4), partition=1)
    with pytest.raises(SourceError, match="static input counts has gone on since"):
        list(verify_by_replay(spark, pipeline, pipeline.steps[0], shop.paths))
    shop.land("2.csv", "id,at\no4,2026-01-01\n")
    assert shop.run().error is None
    assert shop.rows("id", "n") == Counter([("o1", 1), ("o3", 3), ("o4", 4)])
    put("a", '{"n": "many"}')
    shop.land("3.csv", "id,at\no4,2026-01-01\n")
    refused = shop.run()
    assert refused.exit_code is ExitCode.TERMINAL
    assert "does not fit the schema of static input counts: n is not bigint" in refused.error
    assert '"topic":"counts","partition":0,"offset":4' in refused.error
    query = "SELECT sum(n) AS n, min(_source.offset) AS first FROM p.s__counts WHERE n > 1"
    asked = CliRunner().invoke(app, ["sql", query, "--format", "json"])
    assert json.loads(asked.stdout) == {"n": 7, "first": 0}
    assert "Spark is started, because p.s__counts is a topic (counts)" in asked.stderr
    assert "1 record(s) of counts do not fit the schema and are left out" in asked.stderr


def test_verify_reads_the_offsets_of_finished_batches_once_more_and_none_behind_them(
    spark, project, kafka_broker
):
    topic = kafka_broker.create_topic("verified", partitions=2)
    shop = project(topic, DEDUP)
    for numbers in (range(6), range(3, 9)):
        values = ["{broken", *map(order, numbers)]
        kafka_broker.produce(
            topic, [Record(one, partition=at % 2) for at, one in enumerate(values)]
        )
        assert shop.run().exit_code is ExitCode.DONE
    kafka_broker.produce(topic, [Record(order(20), partition=0)])
    pipeline = load_pipeline(shop.write())
    found = list(verify_by_replay(spark, pipeline, pipeline.steps[0], shop.paths))
    assert [(one.table, one.rows, one.equal) for one in found] == [
        ("target", 9, True),
        ("quarantine", 1, True),
    ]
    assert found[0].read.startswith("14 read = 9 written + 1 quarantined + 4 duplicate")
    assert shop.run().counts.written == 1
    spark.sql(f"UPDATE delta.`{shop.paths.table('s')}` SET n = 1000 WHERE id = 'o20'")
    (off, _) = verify_by_replay(spark, pipeline, pipeline.steps[0], shop.paths)
    assert [(one.group, one.missing, one.surplus) for one in off.samples] == [("id=o20", 1, 1)]


def test_verify_refuses_a_topic_whose_records_expired_also_where_runs_go_on_without_them(
    spark, project, kafka_broker
):
    topic = kafka_broker.create_topic("verified_expired", partitions=1)
    kafka_broker.produce(topic, [Record(order(n)) for n in range(6)])
    shop = project(topic, DEDUP, fail_on_data_loss=False)
    shop.run()
    kafka_broker.expire(topic, 0, 3)
    pipeline = load_pipeline(shop.write())
    with pytest.raises(SourceError, match="do not hold what this checkpoint expects"):
        list(verify_by_replay(spark, pipeline, pipeline.steps[0], shop.paths))
