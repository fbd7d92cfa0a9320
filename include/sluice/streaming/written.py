"""What became of the rows that went into one write, counted by what did it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from ..errors import UnbalancedReport
from ..spark.tables import Commit


@dataclass(frozen=True)
class Given:
    """How many rows came to a write.

    `rows`: that went into the reduction. `keys`: that are left to write. `held`: copies of what
    the table holds that were left out before the write. `gone`: rows of the table that go.
    `groups`: of a step that is refreshed by them, how many by what became of them.
    """

    rows: int = 0
    keys: int = 0
    held: int = 0
    gone: int = 0
    groups: Mapping[str, int] = field(default_factory=dict)

    @property
    def copies(self) -> int:
        """Rows that were copies of another row of the batch."""
        return self.rows - self.keys - self.held


@dataclass(frozen=True)
class Unique:
    """Rows of a batch, one a key where the target remembers keys, and how many they are. `gone`:
    groups whose rows in the table go, one row each; None where none does. `span`: the oldest and
    the newest event time among them, epoch microseconds; None where nobody knows. `differing`: keys
    of which copies within the batch say different things; None where nobody counted them."""

    rows: DataFrame
    given: Given
    gone: DataFrame | None = None
    span: tuple[int | None, int | None] = (None, None)
    differing: int | None = None


@dataclass(frozen=True)
class Written:
    """The rows of one part of a batch.

    `given`: that came to it. `copies`: that were copies of another row of the batch, by the
    reduction. `held`: that were copies of what the table holds, by the write. `inserted`: that
    came in. `replaced`: rows of the table that gave way. `removed`: rows of a replaced range.
    `updated`: of those that came in, groups that were there before.
    """

    given: int = 0
    copies: int = 0
    held: int = 0
    inserted: int = 0
    replaced: int = 0
    removed: int = 0
    updated: int = 0

    @classmethod
    def of(cls, given: "Given", commit: Commit, place: str) -> "Written":
        """What a commit made of the rows that came to it.

        Raises UnbalancedReport where the write was given others than came out of the reduction.
        """
        check_same(given.keys, commit.given, "rows were to be written", "came to the write", place)
        held = given.held + commit.given - commit.inserted
        return cls(given.rows, given.copies, held, commit.inserted, commit.replaced, commit.removed)

    def take_over(self, updates: bool = False) -> "Written":
        """The same, with rows that took another's place as rows that came in.

        Args: updates: the other was what their group had been before.
        """
        came, held = self.inserted + self.replaced, self.held - self.replaced
        updated = self.replaced if updates else 0
        return replace(self, inserted=came, held=held, replaced=0, updated=updated)

    @property
    def duplicate(self) -> int:
        """Copies, of whichever kind."""
        return self.copies + self.held


def check_same(before: int, after: int, what: str, then: str, where: str) -> None:
    """Raise UnbalancedReport where a number of rows is not the one it was a step earlier."""
    if before != after:
        raise UnbalancedReport(
            f"{before:,} {what} and {after:,} {then}: rows were lost or doubled on the way",
            where=where,
            do="Keep the landing files and the checkpoint, and report this as a defect",
        )
