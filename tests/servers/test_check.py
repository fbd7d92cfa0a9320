"""`sluice check` against real servers: what answers, and what a person is told of what does not."""

import json
from pathlib import Path

import pytest
import yaml
from sluice.backlog import kafka_broker as broker_module
from sluice.check import Finding, check_pipeline
from sluice.errors import ExitCode
from sluice.spec import load_pipeline

COLUMNS = {"id": "string", "n": "bigint", "at": "timestamp"}


@pytest.fixture
def check(tmp_path):
    """Try a step of a source over a folder, unless it says another; returns the findings by the
    first words of their part."""
    (tmp_path / "landing").mkdir()

    def run(source: dict | None = None, *sinks: dict, root: str = "root") -> dict[str, Finding]:
        source = source or {"kind": "files", "path": str(tmp_path / "landing"), "format": "json"}
        step = {"name": "s", "source": {"schema": COLUMNS, **source}}
        step["sink"] = [{"kind": "delta"}, *sinks]
        file = tmp_path / "shop.yaml"
        file.write_text(yaml.safe_dump({"name": "shop", "steps": [step]}))
        place = root if "://" in root else str(tmp_path / root)
        found = list(check_pipeline(load_pipeline(file), place))
        names = {"java and jars": "jars"}
        return {names.get(f.part, " ".join(f.part.split()[:3])): f for f in found}

    return run


@pytest.fixture
def login(postgres, monkeypatch):
    """A user of PostgreSQL's with a password of its own and no rights but to log in."""
    monkeypatch.setenv("PG_PASSWORD", "of-its-own")
    with postgres.connect() as client:
        client.execute("DROP SCHEMA IF EXISTS checked CASCADE")
        client.execute("DROP ROLE IF EXISTS checker")
        client.execute("CREATE ROLE checker LOGIN PASSWORD 'of-its-own'")
        client.execute("CREATE SCHEMA checked")
        yield client
        client.execute("DROP SCHEMA checked CASCADE")
        client.execute("DROP OWNED BY checker")
        client.execute("DROP ROLE checker")


@pytest.fixture
def sink(postgres) -> dict:
    return postgres.as_sink("checked.orders") | {
        "user": "checker",
        "ledger": "checked.sluice_batches",
    }


def topic_source(broker, topic: str, **more: object) -> dict:
    return {"kind": "kafka", "servers": broker.servers, "subscribe": topic, "format": "json"} | more


def login_to(broker) -> dict:
    security = {"username": broker.username, "password": "${KAFKA_PASSWORD}"}
    return {
        "servers": broker.secure_servers,
        "security": security | {"ca_file": str(broker.ca_file)},
    }


def test_a_topic_that_may_be_read_says_what_it_holds(check, kafka_broker, monkeypatch):
    topic = kafka_broker.create_topic("checked", partitions=2)
    kafka_broker.produce(topic, [b"{}", b"{}"])
    monkeypatch.setenv("KAFKA_PASSWORD", kafka_broker.password)
    secure = login_to(kafka_broker)
    for source in (topic_source(kafka_broker, topic), topic_source(kafka_broker, topic, **secure)):
        found = check(source)["s: source kafka"]
        assert found.ok, found.says
        assert "2 partitions, 2 offsets held, may be read" in found.says


@pytest.mark.parametrize("part", ["source", "sink"])
def test_a_topic_that_is_not_there_is_named(check, kafka_broker, part):
    absent = {"kind": "kafka", "servers": kafka_broker.servers, "topic": "absent"}
    given = (topic_source(kafka_broker, "absent"),) if part == "source" else (None, absent)
    found = check(*given)["s: source kafka" if part == "source" else "s: sink kafka"]
    assert found.exit_code == ExitCode.TERMINAL
    assert "no such topic" in found.says and "'absent'" in found.says
    assert "create the topic" in found.says


def test_a_wrong_password_is_told_at_once_and_not_shown(check, kafka_broker, monkeypatch):
    topic = kafka_broker.create_topic("checked_login")
    monkeypatch.setenv("KAFKA_PASSWORD", "not-this-one")
    source = topic_source(kafka_broker, topic, **login_to(kafka_broker))
    found = check(source)["s: source kafka"]
    assert not found.ok and "uthentication failed" in found.says
    assert "user, password" in found.says and "not-this-one" not in found.says
    assert found.seconds < broker_module.PATIENCE


def test_a_certificate_that_nobody_here_trusts_is_told(check, kafka_broker, monkeypatch):
    monkeypatch.setenv("KAFKA_PASSWORD", kafka_broker.password)
    secure = login_to(kafka_broker)
    del secure["security"]["ca_file"]
    found = check(topic_source(kafka_broker, "any", **secure))["s: source kafka"]
    assert not found.ok and "certificate" in found.says


def test_a_right_that_the_brokers_deny_is_told_before_a_record_is_sent(
    check, kafka_broker, monkeypatch
):
    monkeypatch.setenv("KAFKA_PASSWORD", kafka_broker.password)
    secure = login_to(kafka_broker)
    readable, writable = (kafka_broker.create_topic(f"checked_{name}") for name in ("r", "w"))
    kafka_broker.allow_only(readable, "READ", "DESCRIBE")
    kafka_broker.allow_only(writable, "WRITE", "DESCRIBE")
    for source, target in ((readable, writable), (writable, readable)):
        sink = {"kind": "kafka", "topic": target} | secure
        found = check(topic_source(kafka_broker, source, **secure), sink)
        parts = found["s: source kafka"], found["s: sink kafka"]
        assert [part.ok for part in parts] == [source == readable] * 2
        if source == writable:
            assert "no right to read" in parts[0].says and "allows READ" in parts[0].says
            assert "no right to write" in parts[1].says and "allows WRITE" in parts[1].says
    assert kafka_broker.end_offsets(writable) == {0: 0}


def test_a_broker_that_is_away_may_answer_later(check, kafka_broker, monkeypatch):
    monkeypatch.setattr(broker_module, "PATIENCE", 1.5)
    topic = kafka_broker.create_topic("checked_away")
    kafka_broker.stop()
    try:
        found = check(topic_source(kafka_broker, topic))["s: source kafka"]
    finally:
        kafka_broker.start()
    assert found.exit_code == ExitCode.TRANSIENT
    assert kafka_broker.servers in found.says and "See that they run" in found.says
    assert check(topic_source(kafka_broker, topic))["s: source kafka"].ok


def test_a_table_that_is_absent_and_may_be_created_is_well(check, login, sink):
    login.execute("GRANT USAGE, CREATE ON SCHEMA checked TO checker")
    found = check(None, sink)["s: sink jdbc"]
    assert found.ok and "the first run does" in found.says
    assert login.execute("SELECT to_regclass('checked.orders')").fetchone() == (None,)


def test_a_table_with_rights_and_fitting_columns_is_well(check, login, sink):
    login.execute("GRANT USAGE, CREATE ON SCHEMA checked TO checker")
    login.execute("CREATE TABLE checked.orders (id text PRIMARY KEY, n bigint, at timestamptz)")
    login.execute("GRANT SELECT, INSERT, UPDATE ON checked.orders TO checker")
    upsert = sink | {"mode": "upsert", "keys": ["id"], "order_by": ["at desc"]}
    for given in (sink, upsert):
        found = check(None, given)["s: sink jdbc"]
        assert found.ok and "3 columns are right" in found.says, found.says


@pytest.mark.parametrize(
    ("acts", "more", "says", "do"),
    [
        ([], {}, "may not create tables in schema checked", "GRANT USAGE, CREATE ON SCHEMA"),
        ([], {"ledger": "absent.ledger"}, "no such schema", "CREATE SCHEMA"),
        (
            ["CREATE TABLE checked.orders (id text, n bigint, at timestamptz)"],
            {},
            "lacks the right to SELECT, INSERT",
            "GRANT SELECT, INSERT ON checked.orders",
        ),
        (
            ["CREATE TABLE checked.orders (id text, at timestamptz)"],
            {},
            "the table has no column 'n'",
            "ADD COLUMN",
        ),
        (
            ["CREATE TABLE checked.orders (id text, n int, at timestamptz)"],
            {},
            "column 'n' is integer in the table",
            "types: {n: integer}",
        ),
        (
            ["CREATE TABLE checked.orders (id text, n bigint, at timestamptz)"],
            {"mode": "upsert", "keys": ["id"], "order_by": ["at desc"]},
            "no unique index on the keys",
            "CREATE UNIQUE INDEX",
        ),
    ],
    ids=["no right", "no schema", "no grant", "no column", "another type", "no index"],
)
def test_what_a_run_would_be_refused_for_is_told_with_the_statement_that_mends_it(
    check, login, sink, acts, more, says, do
):
    for act in acts:
        login.execute("GRANT USAGE, CREATE ON SCHEMA checked TO checker")
        login.execute(act)
        if "GRANT SELECT" not in do:
            login.execute("GRANT ALL ON checked.orders TO checker")
    found = check(None, sink | more)["s: sink jdbc"]
    assert found.exit_code == ExitCode.TERMINAL
    assert says in found.says and do in found.says


def test_a_login_that_is_refused_and_a_database_that_is_not_there_are_told(
    check, login, sink, monkeypatch
):
    nowhere = check(None, sink | {"url": sink["url"] + "_absent"})["s: sink jdbc"]
    assert 'database "postgres_absent" does not exist' in nowhere.says
    monkeypatch.setenv("PG_PASSWORD", "not-this-one")
    refused = check(None, sink)["s: sink jdbc"]
    assert "password authentication failed" in refused.says and "Check `user`" in refused.says
    assert "not-this-one" not in refused.says
    assert {nowhere.exit_code, refused.exit_code} == {ExitCode.TERMINAL}


def test_a_server_that_is_away_may_answer_later(check, postgres, monkeypatch):
    monkeypatch.setenv("PG_PASSWORD", postgres.password)
    postgres.stop()
    try:
        found = check(None, postgres.as_sink("any"))["s: sink jdbc"]
    finally:
        postgres.start()
    assert found.exit_code == ExitCode.TRANSIENT and "cannot be reached" in found.says


def test_an_airflow_connection_is_found_in_the_environment_or_said_once(
    check, postgres, login, monkeypatch
):
    named = {"kind": "jdbc", "connection": "checked", "table": "checked.orders"}
    found = check(None, named)
    assert "AIRFLOW_CONN_CHECKED is not set" in found["s: connection checked"].says
    assert "s: sink jdbc" not in found
    parts = {"host": "127.0.0.1", "port": postgres.port, "schema": postgres.database}
    parts |= {"login": postgres.user, "password": postgres.password}
    monkeypatch.setenv("AIRFLOW_CONN_CHECKED", json.dumps(parts))
    found = check(None, named)
    assert found["s: connection checked"].ok and found["s: sink jdbc"].ok
    assert postgres.password not in str(found)


def bucket_source(bucket: str, **more: object) -> dict:
    return {"kind": "files", "path": f"{bucket}/in", "format": "json"} | more


def test_a_bucket_is_listed_read_and_written_and_nothing_stays_there(check, s3):
    bucket = s3.create_bucket("checked")
    s3.put(f"{bucket}/in/1.json", "{}")
    queue = s3.create_queue(bucket)
    found = check(bucket_source(bucket, notifications={"queue": queue}), root=f"{bucket}/root")
    assert found[f"s: source {bucket}/in"].says.startswith("1 file like '*'")
    assert found[f"root {bucket}/root"].ok, found
    assert "messages wait (none was taken)" in found["s: source queue"].says
    assert s3.addresses(bucket) == [f"{bucket}/in/1.json"]


def test_a_bucket_that_is_not_there_is_named_for_reading_and_for_writing(check, s3):
    found = check(bucket_source("s3a://absent-one"), root="s3a://absent-one/root")
    for part in ("s: source s3a://absent-one/in", "root s3a://absent-one/root"):
        assert found[part].exit_code == ExitCode.TERMINAL
        assert "the bucket does not exist" in found[part].says and "Create it" in found[part].says


def test_a_queue_that_is_not_there_is_named(check, s3):
    bucket = s3.create_bucket("checked-queue")
    source = bucket_source(bucket, notifications={"queue": f"{s3.url}/123456789012/absent"})
    found = check(source)["s: source queue"]
    assert not found.ok and "the queue does not exist" in found.says


def test_a_store_that_is_out_may_answer_later(check, s3):
    bucket = s3.create_bucket("checked-out")
    with s3.outage():
        found = check(bucket_source(bucket), root=f"{bucket}/root")
    codes = {found[f"s: source {bucket}/in"].exit_code, found[f"root {bucket}/root"].exit_code}
    assert codes == {ExitCode.TRANSIENT}


def test_nothing_that_was_checked_leaves_a_file(check, tmp_path):
    assert check()["root " + str(tmp_path / "root")].ok
    assert sorted(p.name for p in Path(tmp_path).iterdir()) == ["landing", "shop.yaml"]
