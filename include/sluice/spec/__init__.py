"""What a pipeline is."""

from .buckets import aws_client, in_bucket, s3_client, split_uri, store_errors
from .connection import Connection, connection_variable, read_connection
from .dedup import Dedup, EventTime, RuleSpec
from .files import create_file, remove_tree, replace_file
from .kafka import KafkaCluster, KafkaSink, KafkaSource, KafkaStart, Security
from .kafka_client import client_config, resolve_cluster, spark_options
from .loader import find_pipelines, load_pipeline
from .notifications import Notifications
from .paths import PIPELINES, PROJECT, Paths, is_remote, lease_folder, open_path, resolve_path
from .pipeline import Pipeline, Step, describe_limits, rule_columns
from .quantities import format_duration
from .records import Records
from .run import RunRequest, Window, clean_run_id
from .sink import ConsoleSink, DeltaSink, FilesSink, ForeachBatchSink, ForeachSink, JdbcSink, MemorySink, Sink
from .source import SYSTEM_COLUMNS, FileSource, RateSource, SocketSource, Source, TableSource, TableStart
from .trial import check_trial, is_trial_source
from .trigger import AVAILABLE_NOW, Interval, Trigger, describe_trigger, never_ends, trigger_kind

__all__ = [
    "AVAILABLE_NOW", "PIPELINES", "PROJECT", "SYSTEM_COLUMNS", "Connection", "ConsoleSink", "Dedup", "DeltaSink", "EventTime", "FileSource", "FilesSink",
    "ForeachBatchSink", "ForeachSink", "Interval", "JdbcSink", "KafkaCluster", "KafkaSink", "KafkaSource", "KafkaStart", "MemorySink", "Notifications", "Paths", "Pipeline",
    "RateSource", "Records", "RuleSpec", "RunRequest", "Security", "Sink", "SocketSource", "Source", "Step", "TableSource", "TableStart", "Trigger", "Window",
    "aws_client", "check_trial", "clean_run_id", "client_config", "connection_variable", "create_file", "describe_limits", "describe_trigger", "find_pipelines", "format_duration",
    "in_bucket", "is_remote", "is_trial_source", "lease_folder", "load_pipeline", "never_ends", "open_path", "read_connection", "remove_tree", "replace_file", "resolve_cluster", "resolve_path",
    "rule_columns", "s3_client", "spark_options", "split_uri", "store_errors", "trigger_kind",
]
