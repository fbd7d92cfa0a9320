"""What a pipeline is."""

from .columns import GROUP_PREFIX, SYSTEM_COLUMNS
from .connection import Connection, connection_variable, read_connection
from .dedup import Dedup, EventTime
from .delta_sink import DeltaSink
from .file_source import FileSource
from .files_sink import FilesSink
from .foreach_sink import ForeachBatchSink, ForeachSink
from .groups import group_expressions
from .input import ONLY, Input
from .jdbc_sink import JdbcSink
from .kafka_client import client_config, resolve_cluster, spark_options
from .kafka_cluster import KafkaCluster, Security
from .kafka_sink import KafkaSink
from .kafka_source import KafkaSource, KafkaStart
from .limits import describe_limits
from .loader import find_pipelines, load_neighbours, load_pipeline
from .mode import Mode
from .notifications import Notifications
from .pipeline import Pipeline
from .quantities import format_duration
from .records import Records
from .rules import ROW_LEVEL, RuleSpec, rule_columns
from .run import Redo, Refill, RunRequest, Verify, Window, clean_run_id
from .schedule import After, Schedule, check_schedule, clock_of, describe_schedule
from .sink import SINKS, Sink
from .sink_kind import SinkKind
from .source import SOURCES, Source
from .source_kind import MalformedLimit, SourceKind
from .step import Step
from .table_source import TableSource, TableStart
from .trial import check_trial
from .trial_sink import ConsoleSink, MemorySink
from .trial_source import RateSource, SocketSource, TrialSource
from .trigger import AVAILABLE_NOW, Interval, Trigger, describe_trigger, never_ends, trigger_kind

__all__ = [
    "GROUP_PREFIX",
    "AVAILABLE_NOW",
    "After",
    "ONLY",
    "ROW_LEVEL",
    "SINKS",
    "SOURCES",
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
    "Input",
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
    "Redo",
    "Refill",
    "Verify",
    "RunRequest",
    "Schedule",
    "Security",
    "Sink",
    "SinkKind",
    "SocketSource",
    "Source",
    "MalformedLimit",
    "SourceKind",
    "Step",
    "TableSource",
    "TableStart",
    "TrialSource",
    "Trigger",
    "Window",
    "check_schedule",
    "check_trial",
    "clean_run_id",
    "client_config",
    "clock_of",
    "connection_variable",
    "describe_limits",
    "describe_schedule",
    "describe_trigger",
    "find_pipelines",
    "format_duration",
    "group_expressions",
    "load_neighbours",
    "load_pipeline",
    "never_ends",
    "read_connection",
    "resolve_cluster",
    "rule_columns",
    "spark_options",
    "trigger_kind",
]
