"""Where rows go: the kinds of sinks there are."""

from typing import Annotated

from .delta_sink import DeltaSink
from .files_sink import FilesSink
from .foreach_sink import ForeachBatchSink, ForeachSink
from .jdbc_sink import JdbcSink
from .kafka_sink import KafkaSink
from .kinds import Kinds
from .sink_kind import SinkKind
from .trial_sink import ConsoleSink, MemorySink

SINKS = Kinds(
    "delta",
    DeltaSink,
    KafkaSink,
    JdbcSink,
    FilesSink,
    ForeachSink,
    ForeachBatchSink,
    ConsoleSink,
    MemorySink,
)
Sink = Annotated[SinkKind, SINKS]
