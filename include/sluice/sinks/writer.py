"""What writes to a sink: the same questions for every kind."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import DataStreamWriter
from pyspark.sql.types import StructType

from ..errors import SpecError
from ..spark.columns import quote
from ..spec import SinkKind
from .delivery import Delivery

Kind = TypeVar("Kind", bound=SinkKind)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Preparation:
    """What is known of a sink's rows before any is read."""

    spark: SparkSession
    schema: StructType
    """Of the rows, system columns among them."""
    columns: list[str]
    """The user's own."""
    folder: Path
    """Of the pipeline's YAML."""
    where: str
    """The sink's place in the pipeline, for messages."""
    known: Mapping[str, range] = field(default_factory=dict)
    """Batches by checkpoint generation (as deliveries name it), of a sink that is noted to have got
    rows."""
    due: frozenset[str] = frozenset()
    """Tokens of batches that it lacks, and may have all the same."""
    given_up: frozenset[str] = frozenset()
    """Tokens of batches that a person gave up."""
    mirror: bool = False
    """It becomes what the target is, see `Delivery`."""
    has_rows: Callable[[], bool] = lambda: True
    """Whether the target holds any."""
    warn: Callable[[str], None] = _log.warning
    """Takes what a person should know of the sink."""

    @property
    def own(self) -> StructType:
        """The user's columns with their types."""
        return StructType([self.schema[name] for name in self.columns])


class Writer(ABC, Generic[Kind]):
    """Writes to one sink."""

    def __init__(self, sink: Kind) -> None:
        self.sink = sink

    def prepare(self, coming: Preparation) -> None:  # noqa: B027 (most have nothing to prepare)
        """Make what is absent, and raise SpecError, SinkError or TransientError for what cannot be
        written, before anything is read."""

    @abstractmethod
    def deliver(self, rows: DataFrame, delivery: Delivery) -> int:
        """Write the rows of a batch; returns how many it has.

        The batch comes again when this raises: TransientError where that may help, SinkError and
        SpecError where it cannot.
        """

    def places(self, schema: StructType) -> dict[str, str]:
        """Where a row stands in a sink that mirrors its target: the columns that say so, and the
        SQL of each. Args: schema: of the rows."""
        return {name: quote(name) for name in self.sink.mirrored_by or ()}

    def open_stream(
        self, rows: DataFrame, columns: list[str], hidden: frozenset[str]
    ) -> DataStreamWriter:
        """What writes rows under Spark's continuous trigger, for kinds that say they can.

        Args: columns: the user's. hidden: those whose values are never shown.
        """
        raise SpecError(
            "this sink takes batches only",
            where=self.sink.title,
            do="Write `trigger: available_now`",
        )

    def explain(self, error: Exception) -> Exception:
        """What a failed write means to a person; the error itself where no more can be said."""
        return error
