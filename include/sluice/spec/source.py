"""Where rows come from: the kinds of sources there are."""

from typing import Annotated

from .file_source import FileSource
from .kafka_source import KafkaSource
from .kinds import Kinds
from .source_kind import SourceKind
from .table_source import TableSource
from .trial_source import RateSource, SocketSource

SOURCES = Kinds("files", FileSource, KafkaSource, TableSource, RateSource, SocketSource)
Source = Annotated[SourceKind, SOURCES]
