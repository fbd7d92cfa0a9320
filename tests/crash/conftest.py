"""One Spark session for all crash tests, whose file system a test can cut off."""

import pytest

from tests.crash.power import Power
from tests.spark.conftest import open_test_session


@pytest.fixture(scope="session")
def classes(tmp_path_factory):
    """A folder on the session's class path."""
    return tmp_path_factory.mktemp("classes")


@pytest.fixture(scope="session")
def spark(tmp_path_factory, classes):
    """A small local session with Delta; ended with the test session."""
    yield from open_test_session(tmp_path_factory.mktemp("warehouse"), classes)


@pytest.fixture(scope="session")
def power(spark, classes):
    """The switch that cuts a run off."""
    return Power(spark, classes)
