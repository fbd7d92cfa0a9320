"""Fixtures that more than one layer of tests shares."""

import pytest


@pytest.fixture(scope="session")
def airflow_service(tmp_path_factory, postgres):
    """A running Airflow, started by the first test that asks for it and ended with the session."""
    from tests.airflow_service import start_service

    with start_service(tmp_path_factory.mktemp("airflow"), postgres) as service:
        yield service


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory):
    """A running Kafka broker, from the first test that asks for it to the end of the session.

    Each test has topics of its own.
    """
    from tests.kafka_broker import KafkaBroker

    broker = KafkaBroker(tmp_path_factory.mktemp("kafka"))
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


@pytest.fixture(scope="session")
def postgres():
    """A running PostgreSQL, from the first test that asks for it to the end of the session.

    Each test has tables of its own.
    """
    from tests.postgres_server import PostgresServer

    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory):
    """A running S3, started by the first test that asks for it and ended with the session."""
    from tests.s3_server import start_s3

    with start_s3(tmp_path_factory.mktemp("s3") / "moto.log") as server:
        yield server


@pytest.fixture
def s3(s3_server, monkeypatch):
    """The running S3 and, by environment, this process's way to it."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return s3_server
