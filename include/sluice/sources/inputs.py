"""All inputs of a step as a run takes from them; of one input they say what it says."""

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ..checkpoint import Checkpoint
from ..errors import SourceError
from ..report import BatchReport
from ..spark.failure import UnreadableFile
from .intake import BatchInput, Intake, Room
from .static import StaticTable
from .static_topic import StaticTopic

Statics = dict[str, StaticTable | StaticTopic]
"""What is read as a whole in each run, by name."""

_WHOLE = 1000
"""What an input counts for, of several that are counted in units of their own."""


@dataclass
class Inputs:
    """Where a step's rows come from. `intakes`: of each stream, in the order in which Spark numbers
    their sources. `named`: the file tells them apart. `statics`: what is read anew in each
    run, by name. `told`: what a person should know beside what they say."""

    named: bool
    intakes: dict[str, Intake]
    statics: Statics = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    @property
    def only(self) -> Intake | None:
        """The one intake of a step that has one; None where several are told apart."""
        return next(iter(self.intakes.values())) if len(self.intakes) == 1 else None

    @property
    def versions(self) -> dict[str, int | None]:
        """Each of several by name; of a table that is read as a whole its version."""
        if not self.named:
            return {}
        streams: dict[str, int | None] = dict.fromkeys(self.intakes)
        return {**streams, **{name: table.version for name, table in self.statics.items()}}

    @property
    def positions(self) -> dict[str, Any]:
        """Up to where each static input is read."""
        return {name: one.position for name, one in self.statics.items()}

    @property
    def warnings(self) -> list[str]:
        """What a person should know, filled in as they are opened."""
        if self.only is not None:
            return [*self.only.warnings, *self.told]
        named = [f"{name}: {w}" for name, intake in self.intakes.items() for w in intake.warnings]
        return [*named, *self.told]

    @property
    def partitions(self) -> int:
        """Parts that are read at the same time for as long as a continuous query runs."""
        return sum(intake.partitions for intake in self.intakes.values())

    @property
    def total(self) -> int:
        """How much waits, in the unit of `BatchInput.amount`; 0 when it is not known."""
        if self.only is not None:
            return self.only.total
        return _WHOLE * sum(intake.total > 0 for intake in self.intakes.values())

    @property
    def is_empty(self) -> bool:
        """True where Spark could not even begin, because what an input begins with is not there
        yet."""
        return any(intake.is_empty for intake in self.intakes.values())

    def cut(self, room: Room) -> bool:
        """Read what waits in batches of about that size; returns whether any input does."""
        share = room // len(self.intakes)
        cut = [intake.cut(share) for intake in self.intakes.values()]  # each of them is asked
        return any(cut)

    def has_overfull(self, checkpoint: Checkpoint, batch: int) -> bool:
        """True where a planned batch is larger than one may be now, and its plan can be taken
        back."""
        found = [
            intake.has_overfull(checkpoint.of_source(number), batch)
            for number, intake in enumerate(self.intakes.values())
        ]
        return None not in found and any(found)

    def take_whole(self) -> None:
        """Read what waits in one batch."""
        for intake in self.intakes.values():
            intake.source = intake.source.in_one_batch()

    def open(self, spark: SparkSession) -> dict[str, DataFrame]:
        """The unbounded frame of each stream, as `Intake.open` gives it."""
        return {name: intake.open(spark) for name, intake in self.intakes.items()}

    def inspect(self, checkpoint: Checkpoint, batch: int) -> BatchInput:
        """What a batch reads that Spark has planned."""
        taken = {
            name: intake.inspect(checkpoint.of_source(number), batch)
            for number, (name, intake) in enumerate(self.intakes.items())
        }
        if not self.named:
            return next(iter(taken.values()))
        both = reduce(_add, taken.values())
        amount = sum(self._share(name, one) for name, one in taken.items())
        # The records are read beside the rows that are made of them, so twice.
        return replace(both, amount=amount, parts=taken, scan="unknown")

    def _share(self, name: str, taken: BatchInput) -> int:
        total = self.intakes[name].total
        if self.only is not None:
            return taken.amount
        return round(_WHOLE * taken.amount / total) if total else 0

    def has_again(self, taken: BatchInput) -> bool:
        """Whether the records of a batch can be read once more."""
        return all(
            intake.has_again(taken.parts.get(name, taken)) for name, intake in self.intakes.items()
        )

    def review(self, batches: list[BatchReport]) -> list[str]:
        """What a person should know of batches, after they were read."""
        told = [line for intake in self.intakes.values() for line in intake.review(batches)]
        return list(dict.fromkeys(told))

    def absorb(self, error: Exception) -> None:
        """Make the next try go on without what made this one fail; raises the error where none of
        the inputs can, SourceError for a file of none of them."""
        everyone = list(self.intakes.values())
        able = self._owners(error) if isinstance(error, UnreadableFile) else everyone
        for last, intake in enumerate(able, 1):
            try:
                intake.absorb(error)
            except type(error):
                if last == len(able):
                    raise
            else:
                return

    def _owners(self, error: UnreadableFile) -> list[Intake]:
        """The streams that a file may be of, by what it lies below next. Raises SourceError for one
        of a static table, or of a table of the step's own."""
        streams = {name: one.depth(error.path) for name, one in self.intakes.items()}
        statics = {name: one.depth(error.path) for name, one in self.statics.items()}
        deepest = max([1, *streams.values(), *statics.values()])
        of = next((f"static input {n}" for n, depth in statics.items() if depth == deepest), "")
        found = [self.intakes[name] for name, depth in streams.items() if depth == deepest]
        if of or not found:
            raise SourceError(
                f"a file of {of or 'a table that the step reads'}: {error.why}",
                where=error.path,
                do="Restore the file, or the table (`RESTORE`, or write it anew), and run again",
            )
        return found


def _add(first: BatchInput, second: BatchInput) -> BatchInput:
    return BatchInput(
        files=first.files + second.files,
        bytes=first.bytes + second.bytes,
        ranges={**first.ranges, **second.ranges},
        lost={**first.lost, **second.lost},
        names=(*first.names, *second.names),
        costly=first.costly or second.costly,
        large=first.large or second.large,
        fetched=first.fetched or second.fetched,
    )
