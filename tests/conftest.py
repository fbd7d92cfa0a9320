"""Fixtures that more than one layer of tests shares."""

import pytest


@pytest.fixture(scope="session")
def airflow_service(tmp_path_factory):
    """A running Airflow, started by the first test that asks for it and ended with the session."""
    from tests.airflow_service import start_service

    with start_service(tmp_path_factory.mktemp("airflow")) as service:
        yield service
