"""What is waiting: checkpoint reader and listing, no JVM."""

from .cleaning import clean_step, keep_unreadable
from .delta import (
    TableBacklog,
    TablePosition,
    measure_table,
    oldest_version,
    read_position,
    read_start,
    start_file,
    table_id,
    table_version,
)
from .files import (
    LandedFile,
    can_be_named,
    files_in_window,
    is_hidden,
    list_files,
    source_root,
)
from .kafka import (
    TopicBacklog,
    describe_losses,
    find_ends,
    measure_expired,
    measure_topics,
    note_topic_ids,
)
from .kafka_broker import Offsets
from .kafka_ending import end_of, note_ends
from .kafka_offsets import planned_offsets
from .landing import describe_landing
from .measure import measure_pipeline, measure_step, note_idle_audits
from .notified import Arrivals, settle, take_arrivals
from .probe import RECORD_BYTES, Range, StepBacklog
from .recent import look_or_recall
from .refreshed import describe_foreign, find_foreign, find_refresh
from .shortening import shorten_logs
from .waiting import find_altered, waiting_files
from .watch import Watched, mark_behind, read_mark, refuse_another, watch_table, write_mark

__all__ = [
    "RECORD_BYTES",
    "Arrivals",
    "LandedFile",
    "Offsets",
    "Range",
    "StepBacklog",
    "TableBacklog",
    "TablePosition",
    "TopicBacklog",
    "Watched",
    "can_be_named",
    "clean_step",
    "describe_foreign",
    "describe_landing",
    "describe_losses",
    "end_of",
    "files_in_window",
    "find_altered",
    "find_ends",
    "find_foreign",
    "find_refresh",
    "is_hidden",
    "keep_unreadable",
    "list_files",
    "look_or_recall",
    "mark_behind",
    "measure_expired",
    "measure_pipeline",
    "measure_step",
    "measure_table",
    "measure_topics",
    "note_ends",
    "note_idle_audits",
    "note_topic_ids",
    "oldest_version",
    "planned_offsets",
    "read_mark",
    "read_position",
    "read_start",
    "refuse_another",
    "settle",
    "shorten_logs",
    "source_root",
    "start_file",
    "table_id",
    "table_version",
    "take_arrivals",
    "waiting_files",
    "watch_table",
    "write_mark",
]
