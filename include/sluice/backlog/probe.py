"""What a probe answers, and what it answers where a kind of source has none of its own."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Generic, TypeVar

from ..checkpoint.log import Checkpoint
from ..errors import SpecError
from ..spec import EventTime, SourceKind, Window
from .files import LandedFile
from .notified import Arrivals

Kind = TypeVar("Kind", bound=SourceKind)

RECORD_BYTES = 1000
"""What a Kafka record is taken to weigh where none could be looked at."""


@dataclass(frozen=True)
class StepBacklog:
    """What waits for one step. `oldest`: when the oldest of it came, UTC; `last_run`: end of the
    newest batch, UTC."""

    step: str
    must_run: bool = False
    reason: str = ""
    files: int = 0
    records: int = 0
    """Offsets of topics."""
    record_bytes: int = RECORD_BYTES
    """About how large one of them is."""
    commits: int = 0
    """Commits of a table."""
    bytes: int = 0
    oldest: datetime | None = None
    open_batch: bool = False
    last_run: datetime | None = None
    audited: datetime | None = None
    """When a look at the whole folder began; UTC."""
    redefined: str = ""
    """What a person should know of rows that were judged before the file was edited."""
    inputs: dict[str, str] = field(default_factory=dict)
    """What waits in each, in words, of a step that has several."""
    warnings: list[str] = field(default_factory=list)
    undelivered: list[str] = field(default_factory=list)
    """Of each batch that a further sink lacks, or that was given up for it, a sentence."""

    @property
    def _counted(self) -> list[tuple[int, str]]:
        units = ((self.files, "file(s)"), (self.records, "record(s)"), (self.commits, "commit(s)"))
        return [(number, unit) for number, unit in units if number]

    @property
    def amount(self) -> str:
        """What waits, in words; empty for nothing, or when it is not known."""
        parts = [f"{number:,} {unit}" for number, unit in self._counted]
        return ", ".join(parts + ([f"{self.bytes:,} bytes"] if self.bytes else []))

    @property
    def headline(self) -> str:
        """The first of what waits, as a sentence; empty for nothing."""
        return next((f"{number} {unit} are waiting" for number, unit in self._counted), "")

    @property
    def weight(self) -> int | None:
        """About how many bytes wait; None when Spark has to run and nobody knows over how many."""
        if self.must_run and not (self._counted or self.open_batch):
            return None
        return self.bytes + self.records * self.record_bytes

    def __add__(self, other: "StepBacklog") -> "StepBacklog":
        """What waits in two inputs of one step."""
        records = self.records + other.records
        weight = self.records * self.record_bytes + other.records * other.record_bytes
        return replace(
            self,
            files=self.files + other.files,
            records=records,
            record_bytes=weight // records if records else RECORD_BYTES,
            commits=self.commits + other.commits,
            bytes=self.bytes + other.bytes,
            oldest=min(filter(None, (self.oldest, other.oldest)), default=None),
            audited=self.audited or other.audited,
            inputs={**self.inputs, **other.inputs},
            warnings=[*self.warnings, *other.warnings],
        )


@dataclass(frozen=True)
class Waiting:
    """What waits in a source, and why a run must look although nothing is seen."""

    found: StepBacklog
    doubt: str = ""


@dataclass(frozen=True)
class Range:
    """What a backfill of a window reads. Of files: those of the window, and the path and name globs
    that make Spark's file source list these alone."""

    files: list[LandedFile] = field(default_factory=list)
    path: str = ""
    pattern: str = ""
    since: datetime | None = None
    """Topics and tables: the moment from which their records may belong to the window; every one
    after it is looked at."""

    @property
    def is_empty(self) -> bool:
        """True when nothing can belong to the window."""
        return not self.files and self.since is None

    @property
    def bytes(self) -> int | None:
        """How much is read; None when it is not known beforehand."""
        return sum(f.size for f in self.files) if self.since is None else None


class Probe(Generic[Kind]):
    """Asks a kind of source what waits in it, without a JVM. Where nobody can tell, a run looks."""

    def __init__(self, source: Kind) -> None:
        self.source = source

    def measure(self, step: str, place: str, checkpoint: Checkpoint) -> Waiting:
        """What waits for a step. Args: place: of a table that is the source.

        Raises SourceError when the source is absent; anything else that it raises means "run".
        """
        return Waiting(StepBacklog(step), f"a {self.source.kind} source always has rows")

    def take(self, checkpoint: Checkpoint, hold: int) -> Arrivals | None:
        """Take what a queue names to a run that begins; None where no queue does.

        Args: hold: seconds for which nobody else gets it. Raises SourceError.
        """
        return None

    def note_listing(self, checkpoint: Checkpoint, began: datetime) -> None:
        """Note a listing that found nothing, where the next one then may wait."""

    def widen(self, chosen: Range, paths: set[str]) -> tuple[Range, list[str]]:
        """A range and more files, by their paths; those that are not there any more are named."""
        return chosen, []

    def select(self, where: str, time: EventTime | None, window: Window) -> Range:
        """What a backfill of a window reads: by default every record that is not too old for it.

        Args: where: the step, for messages. time: of the rows. Raises SpecError for a source that
        cannot be read again, and for a step without a time.
        """
        if self.source.why_trial:
            raise SpecError(
                "this source cannot be read again",
                where=f"{where}: source",
                value=self.source.kind,
                do="Backfill a step that reads files, a topic or a table",
            )
        if time is None:
            raise SpecError(
                "a backfill needs `event_time` to tell which rows belong to the range",
                where=where,
                do="Name the column that says when a row happened",
            )
        # A record is written after what it tells of, save for a clock that is ahead: by
        # `max_future` at most, or its row is refused.
        return Range(since=window.start - time.max_future)
