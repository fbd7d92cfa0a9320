"""Airflow connections that a pipeline names reach the process that runs it, and no others do."""

import pytest
import yaml
from sluice.errors import SpecError
from sluice.orchestration.connections import export_connections
from sluice.spec import load_pipeline, read_connection

STEP = {
    "name": "orders",
    "source": {
        "kind": "kafka",
        "connection": "brokers",
        "subscribe": "orders",
        "format": "text",
        "schema": {"value": "string"},
    },
    "sink": [
        {"kind": "delta", "mode": "append"},
        {"kind": "jdbc", "connection": "warehouse", "table": "orders"},
    ],
}


@pytest.fixture
def pipeline(tmp_path):
    file = tmp_path / "orders.yaml"
    file.write_text(yaml.safe_dump({"name": "orders", "steps": [STEP]}))
    return load_pipeline(file)


def test_every_named_connection_is_handed_on_whole(pipeline, monkeypatch):
    monkeypatch.setenv(
        "AIRFLOW_CONN_BROKERS",
        "kafka://broker:9092/?__extra__=%7B%22sasl.password%22%3A%20%22p%25w%22%7D",
    )
    monkeypatch.setenv("AIRFLOW_CONN_WAREHOUSE", "postgres://reporter:p%40ss%2Fw@db:5433/sales")
    exported = export_connections(pipeline)
    assert sorted(exported) == ["AIRFLOW_CONN_BROKERS", "AIRFLOW_CONN_WAREHOUSE"]
    for variable, text in exported.items():
        monkeypatch.setenv(variable, text)
    brokers, warehouse = read_connection("brokers"), read_connection("warehouse")
    assert (brokers.host, brokers.port, brokers.extra) == ("broker", 9092, {"sasl.password": "p%w"})
    assert (
        warehouse.host,
        warehouse.port,
        warehouse.login,
        warehouse.password,
        warehouse.schema,
    ) == ("db", 5433, "reporter", "p@ss/w", "sales")


def test_a_connection_that_airflow_does_not_have_is_named_with_what_to_do(
    pipeline, metadata_database
):
    with pytest.raises(
        SpecError, match=r"no such Airflow connection.*airflow connections add brokers"
    ):
        export_connections(pipeline)
