"""What a pipeline is."""

from .dedup import Dedup, EventTime, RuleSpec
from .files import replace_file
from .loader import find_pipelines, load_pipeline
from .paths import PIPELINES, PROJECT, Paths, is_remote, open_path
from .pipeline import Pipeline, Step, describe_limits, rule_columns
from .run import RunRequest, Window, clean_run_id
from .sink import DeltaSink
from .source import SYSTEM_COLUMNS, FileSource

__all__ = [
    "PIPELINES", "PROJECT", "SYSTEM_COLUMNS", "Dedup", "DeltaSink", "EventTime", "FileSource", "Paths", "Pipeline", "RuleSpec", "RunRequest", "Step",
    "Window", "clean_run_id", "describe_limits", "find_pipelines", "is_remote", "load_pipeline", "open_path", "replace_file", "rule_columns",
]
