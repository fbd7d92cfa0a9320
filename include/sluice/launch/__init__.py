"""What Spark is started with: settings, JVM flags, jars. No Spark is imported, so that Airflow can
hand all of it to spark-submit."""

from .jvm_flags import has_class_archive, launcher_options
from .jvm_log import JVM_LOG, divert_jvm_output
from .properties import write_properties
from .settings import (
    NO_DATA_BATCHES,
    PARTITIONS,
    SHARED_SHUFFLES,
    SMALL_BACKLOG,
    STATE_ENCODING,
    STATE_STORES,
    WATERMARK_POLICY,
    partitions_for,
    spark_settings,
)

__all__ = [
    "JVM_LOG",
    "NO_DATA_BATCHES",
    "PARTITIONS",
    "SHARED_SHUFFLES",
    "SMALL_BACKLOG",
    "STATE_ENCODING",
    "STATE_STORES",
    "WATERMARK_POLICY",
    "divert_jvm_output",
    "has_class_archive",
    "launcher_options",
    "partitions_for",
    "spark_settings",
    "write_properties",
]
