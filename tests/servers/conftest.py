"""The Spark session of tests against a broker, a database or a bucket, and a shop with a sink."""

import zlib

import pytest

from tests.servers.store import ORDER, STEP, Store
from tests.spark.conftest import compiled, spark
from tests.spark.factories import Project

__all__ = ["compiled", "spark"]


@pytest.fixture
def shop(spark, tmp_path) -> Project:
    source = {"kind": "files", "format": "json", "schema": ORDER}
    return Project(spark, tmp_path, source, {**STEP, "sink": {"kind": "delta"}})


@pytest.fixture
def store(postgres, monkeypatch, request) -> Store:
    monkeypatch.setenv("PG_PASSWORD", postgres.password)
    return Store(postgres, f"follows_{zlib.crc32(request.node.name.encode())}")
