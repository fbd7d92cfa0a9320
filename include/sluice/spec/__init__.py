"""What a pipeline is."""

from .buckets import aws_client, in_bucket, s3_client, split_uri, store_errors
from .dedup import Dedup, EventTime, RuleSpec
from .files import create_file, remove_tree, replace_file
from .loader import find_pipelines, load_pipeline
from .paths import PIPELINES, PROJECT, Paths, is_remote, lease_folder, open_path
from .pipeline import Pipeline, Step, describe_limits, rule_columns
from .quantities import format_duration
from .run import RunRequest, Window, clean_run_id
from .sink import DeltaSink
from .source import SYSTEM_COLUMNS, FileSource

__all__ = [
    "PIPELINES", "PROJECT", "SYSTEM_COLUMNS", "Dedup", "DeltaSink", "EventTime", "FileSource", "Paths", "Pipeline", "RuleSpec", "RunRequest", "Step",
    "Window", "aws_client", "clean_run_id", "create_file", "describe_limits", "find_pipelines", "format_duration", "in_bucket", "is_remote", "lease_folder", "load_pipeline",
    "open_path", "remove_tree", "replace_file", "rule_columns", "s3_client", "split_uri", "store_errors",
]
