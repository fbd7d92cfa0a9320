"""Fixtures that more than one layer of tests shares."""

import pytest


@pytest.fixture(scope="session")
def airflow_service(tmp_path_factory):
    """A running Airflow, started by the first test that asks for it and ended with the session."""
    from tests.airflow_service import start_service

    with start_service(tmp_path_factory.mktemp("airflow")) as service:
        yield service


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
