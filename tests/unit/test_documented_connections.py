"""What the page about connections tells to write is what a run reads."""

import re

import pytest
from sluice.spec import load_pipeline, read_connection, resolve_cluster
from sluice.spec.kafka_client import _LIBRDKAFKA
from sluice.storage import PROJECT

PAGE = (PROJECT / "include" / "docs" / "connections.md").read_text()
SAMPLES = re.findall(r"^export (AIRFLOW_CONN_\w+)='(.+)'$", PAGE, re.M)


@pytest.fixture
def shop(tmp_path):
    (text,) = re.findall(r"```yaml\n(.+?)```", PAGE, re.S)
    (tmp_path / "shop.yaml").write_text(text)
    return load_pipeline(tmp_path / "shop.yaml").steps[0]


def test_the_pipeline_of_the_page_names_the_connections_of_its_samples(shop):
    named = {name for part in (shop.source, *shop.sinks) for name in part.connections}
    assert {f"AIRFLOW_CONN_{name.upper()}" for name in named} == {name for name, _ in SAMPLES}


@pytest.mark.parametrize("text", [text for name, text in SAMPLES if name.endswith("BROKERS")])
def test_each_kafka_sample_says_brokers_and_how_to_reach_them(shop, monkeypatch, text):
    monkeypatch.setenv("AIRFLOW_CONN_BROKERS", text)
    servers, security = resolve_cluster(shop.source)
    assert servers.startswith("b1:909")
    protocol = re.search(r'"security.protocol": "(\w+)"', text)
    assert (security and security.protocol) == (protocol and protocol[1])
    assert ("ssl.ca.location" in text) == bool(security and security.ca_file)
    assert ('"login"' in text) == bool(security and security.username == "sluice")
    assert ("ssl.key.location" in text) == bool(security and security.key_file)


@pytest.mark.parametrize("text", [text for name, text in SAMPLES if name.endswith("WAREHOUSE")])
def test_each_postgresql_sample_says_database_and_login(monkeypatch, text):
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", text)
    found = read_connection("warehouse")
    assert (found.host, found.schema, found.login) == ("db", "shop", "sluice")
    assert found.password == ("change@me" if "%40" in text else "change-me")
    assert ("verify-full" in text) == (found.extra.get("sslmode") == "verify-full")


def test_the_page_has_every_setting_of_security_that_a_connection_may_hold():
    rows = dict(re.findall(r"^\| `([\w.]+)` \| `(\w+)` \|$", PAGE, re.M))
    assert {field: name for name, field in rows.items()} == _LIBRDKAFKA
