"""What a run takes from a source: the same questions for files, topics and tables."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, Self, TypeVar

from pyspark.sql import DataFrame, SparkSession

from ..backlog import Arrivals, Range
from ..checkpoint import Checkpoint
from ..report import BatchReport
from ..spec import SourceKind

Kind = TypeVar("Kind", bound=SourceKind)

UNPACKED = 6
"""How many bytes of text a byte of a packed or columnar file stands for, about."""
CROWDING_BYTES = 64 * 10**6
"""Text of rows of a batch above which they are kept on disk."""
IN_MEMORY = 0.3
"""Of the bytes of a batch whose rows lie on disks, those of one whose rows are kept in memory or
sorted as a whole."""


def crowds(size: int) -> bool:
    """Whether rows of so many bytes of text would crowd the memory, if they were kept there."""
    return size > CROWDING_BYTES


@dataclass(frozen=True)
class Room:
    """What a batch may take: bytes of text, and files, whose names the driver holds."""

    size: int
    files: int

    def __floordiv__(self, parts: int) -> "Room":
        """The room of each of so many."""
        return Room(self.size // parts, self.files // parts)


@dataclass(frozen=True)
class BatchInput:
    """What one planned batch reads. `amount`: its part of the intake's `total`; `ranges`: offsets
    or commits, from and until (not included), by place."""

    amount: int = 0
    files: int = 0
    bytes: int = 0
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    """Files that cannot be read, and why; each becomes one quarantined record."""
    names: tuple[str, ...] = ()
    """Its files: with `ranges`, what tells this input from another."""
    scan: Literal["exact", "at least", "unknown"] = "unknown"
    """How many rows Spark's reader gives for these records: one each, more (lines that are no
    records), or not known."""
    costly: bool = False
    """True where reading and judging its rows again costs more than keeping them."""
    large: bool = False
    """True where its kept rows would crowd the memory."""
    parts: dict[str, "BatchInput"] = field(default_factory=dict)
    """Of a step with several inputs: what is read of each, by name."""
    fetched: bool = False
    """True where a second pass would ask a server for the records again, which may then have fewer:
    what is counted and what is written is read once."""

    def crowds_with(self, rows: int, records: int) -> bool:
        """Whether some of its rows would crowd the memory. Args: records: that it holds."""
        return self.large and crowds(self.bytes * rows // max(records, 1))


@dataclass(frozen=True)
class Opening(Generic[Kind]):
    """What an intake is made from."""

    source: Kind
    place: str
    """Of a table: its path, or its name in the catalog; empty for others."""
    folder: Path
    """Of the pipeline's YAML."""
    checkpoint: Checkpoint | None
    """None where nothing is read: a step is built without data."""
    landing: str = ""
    """An empty folder, for building a step without data."""
    chosen: Range | None = None
    """Of a backfill."""
    arrivals: Arrivals | None = None
    """What a queue named."""
    named: str = ""
    """Folder by which files that a queue named are told to Spark."""


class Intake(ABC, Generic[Kind]):
    """What a run takes from a source. `warnings`: what a person should know, filled in by
    `open`."""

    def __init__(self, source: Kind) -> None:
        self.source = source
        self.warnings: list[str] = []

    @classmethod
    def of(cls, opening: Opening[Kind]) -> Self:
        """The intake of a run. Raises SourceError when the source is absent."""
        return cls(opening.source)

    @property
    def partitions(self) -> int:
        """Parts that are read at the same time for as long as a continuous query runs."""
        return 1

    @property
    @abstractmethod
    def total(self) -> int:
        """How much waits, in the unit of `BatchInput.amount`; 0 when it is not known."""

    @property
    def is_empty(self) -> bool:
        """True where Spark could not even begin, because what the step begins with is not there
        yet."""
        return False

    def cut(self, room: Room) -> bool:
        """Read what waits in batches of about that size, where it is more and nothing else
        bounds a batch; returns whether it does now."""
        return False

    def has_overfull(self, checkpoint: Checkpoint, batch: int) -> bool | None:
        """Whether a planned batch is larger than one may be now; None where its plan cannot be
        taken back."""
        return None

    @abstractmethod
    def open(self, spark: SparkSession) -> DataFrame:
        """The unbounded frame: the user's columns and `_raw`, `_defect`, `_rescued`, `_source`."""

    @abstractmethod
    def inspect(self, checkpoint: Checkpoint, batch: int) -> BatchInput:
        """What a batch reads that Spark has planned."""

    def has_again(self, taken: BatchInput) -> bool:
        """Whether the records of a batch can be read once more; asked only where its rows are in
        the target already."""
        return True

    def review(self, batches: list[BatchReport]) -> list[str]:
        """What a person should know of batches, after they were read."""
        return []

    def depth(self, path: str) -> int:
        """How far down a file lies that cannot be read and may be one of its own, as the length of
        what it lies below; 0 for another's."""
        return 0

    def absorb(self, error: Exception) -> None:
        """Make the next try go on without what made this one fail; raises the error where that
        cannot be."""
        raise error
