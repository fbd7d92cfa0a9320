"""The Spark session of tests against a broker, a database or a bucket."""

from tests.spark.conftest import compiled, spark

__all__ = ["compiled", "spark"]
