"""What Spark is started with: settings, JVM flags, jars. No Spark is imported, so that Airflow can
hand all of it to spark-submit."""

from .settings import SMALL_BACKLOG, partitions_for, spark_settings

__all__ = ["SMALL_BACKLOG", "partitions_for", "spark_settings"]
