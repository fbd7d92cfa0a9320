"""What a pipeline is."""

from .connection import Connection, connection_variable, read_connection
from .dedup import Dedup, EventTime, RuleSpec
from .kafka import KafkaCluster, KafkaSink, KafkaSource, KafkaStart, Security
from .kafka_client import client_config, resolve_cluster, spark_options
from .loader import find_pipelines, load_pipeline
from .mode import Mode
from .notifications import Notifications
from .pipeline import Pipeline, Step, describe_limits, rule_columns
from .quantities import format_duration
from .records import Records
from .run import RunRequest, Window, clean_run_id
from .sink import (
    ConsoleSink,
    DeltaSink,
    FilesSink,
    ForeachBatchSink,
    ForeachSink,
    JdbcSink,
    MemorySink,
    Sink,
)
from .source import (
    SYSTEM_COLUMNS,
    FileSource,
    RateSource,
    SocketSource,
    Source,
    TableSource,
    TableStart,
)
from .trial import check_trial, is_trial_source
from .trigger import AVAILABLE_NOW, Interval, Trigger, describe_trigger, never_ends, trigger_kind

__all__ = [
    "AVAILABLE_NOW",
    "SYSTEM_COLUMNS",
    "Connection",
    "ConsoleSink",
    "Dedup",
    "DeltaSink",
    "EventTime",
    "FileSource",
    "FilesSink",
    "ForeachBatchSink",
    "ForeachSink",
    "Interval",
    "JdbcSink",
    "KafkaCluster",
    "KafkaSink",
    "KafkaSource",
    "KafkaStart",
    "MemorySink",
    "Mode",
    "Notifications",
    "Pipeline",
    "RateSource",
    "Records",
    "RuleSpec",
    "RunRequest",
    "Security",
    "Sink",
    "SocketSource",
    "Source",
    "Step",
    "TableSource",
    "TableStart",
    "Trigger",
    "Window",
    "check_trial",
    "clean_run_id",
    "client_config",
    "connection_variable",
    "describe_limits",
    "describe_trigger",
    "find_pipelines",
    "format_duration",
    "is_trial_source",
    "load_pipeline",
    "never_ends",
    "read_connection",
    "resolve_cluster",
    "rule_columns",
    "spark_options",
    "trigger_kind",
]
