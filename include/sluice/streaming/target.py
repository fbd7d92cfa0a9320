"""The table a step writes: append, insert what is new, replace a range, or none at all."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ..errors import SpecError
from ..spark.kept import keep_rows
from ..spark.tables import Commit, Keyed, Transaction, find_commit, find_new, frame_of, without
from ..spark.writes import append, insert_new
from .copies import Copies
from .written import Given, Unique, Written, check_same


@dataclass(frozen=True)
class Target(ABC):
    """A step's table. `path`: empty for a step without one."""

    path: str

    @property
    def exists(self) -> bool:
        """True where there is a table."""
        return True

    def needs(self, given: Given) -> bool:
        """True where there is something to write."""
        return given.keys > 0

    @abstractmethod
    def write(self, unique: Unique, match: str, txn: Transaction) -> Commit:
        """Write a batch's rows; does nothing where the batch is there already.

        Args: match: SQL under which `s` is a copy of row `t` of the table; empty without copies.
        """

    def find(self, session: SparkSession, txn: Transaction) -> Commit | None:
        """The commit that a batch left in an earlier try; None where it left none."""
        return find_commit(session, self.path, txn)

    def count(self, given: Given, commit: Commit) -> Written:
        """What a commit made of the rows that came to it."""
        return Written.of(given, commit, self.path)

    def fresh(self, unique: Unique, match: str) -> DataFrame:
        """Those of a batch's rows that a write would bring into the table."""
        return unique.rows

    @contextmanager
    def prepare(self, unique: Unique, match: str) -> Iterator[Unique]:
        """The rows to write, with those counted that are left out before the write."""
        yield unique

    @property
    def replaces(self) -> bool:
        """True where a row may give way to one of a later batch."""
        return False


class Append(Target):
    """Every row of every batch."""

    def write(self, unique: Unique, match: str, txn: Transaction) -> Commit:
        return append(self.path, unique.rows, txn)


@dataclass(frozen=True)
class InsertNew(Target):
    """Rows whose key the table does not hold, and those that rank before the row it holds.

    `hidden`: columns whose values are never shown.
    """

    copies: Copies
    hidden: frozenset[str] = frozenset()

    @property
    def replaces(self) -> bool:
        return self.copies.replaces

    def write(self, unique: Unique, match: str, txn: Transaction) -> Commit:
        beats = self.copies.beats() if self.copies.replaces else None
        return insert_new(self.path, self._keyed(unique), match, txn, beats)

    def fresh(self, unique: Unique, match: str) -> DataFrame:
        stays = f" AND NOT ({self.copies.beats()})" if self.copies.replaces else ""
        table = frame_of(unique.rows.sparkSession, self.path)
        return find_new(table, self._keyed(unique), match + stays)

    def _keyed(self, unique: Unique) -> Keyed:
        keyed = self.copies.keyed(unique.rows, unique.given.keys, *unique.span)
        if self.copies.null_equals:
            return keyed  # of a whole row the time says enough
        return replace(keyed, shown=[key for key in keyed.keys if key not in self.hidden])


@dataclass(frozen=True)
class ReplaceRange(Target):
    """A range of event time, whose rows a batch replaces in one commit.

    Copies of rows that lie outside of the range stay out of it.
    """

    copies: Copies | None
    condition: str

    @property
    def replaces(self) -> bool:
        return self.copies is not None and self.copies.replaces

    def needs(self, given: Given) -> bool:
        return True  # a range of which nothing is left is emptied

    def write(self, unique: Unique, match: str, txn: Transaction) -> Commit:
        return append(self.path, unique.rows, txn, replace_where=self.condition)

    def rows_within(self, session: SparkSession) -> DataFrame:
        """The table's rows that go."""
        return frame_of(session, self.path).where(self.condition)

    def fresh(self, unique: Unique, match: str) -> DataFrame:
        rows = unique.rows
        if self.copies is None or not match:
            return rows
        return without(rows, self._outside(rows), match)

    @contextmanager
    def prepare(self, unique: Unique, match: str) -> Iterator[Unique]:
        """Leave out copies of rows outside of the range.

        Raises SpecError where a row of the range would have to take the place of one outside.
        """
        if self.copies is None or not unique.given.keys:
            yield unique
            return
        rows = unique.rows.alias("s")
        self._refuse_winners(rows, match)
        held = rows.join(self._outside(rows), F.expr(match), "left_semi").count()
        with keep_rows(self.fresh(unique, match)) as fresh:
            found = fresh.count()
            keys = unique.given.keys
            check_same(keys, held + found, "rows were one a key", "were held or fresh", self.path)
            yield Unique(fresh, replace(unique.given, keys=found, held=held))

    def _outside(self, rows: DataFrame) -> DataFrame:
        """The table's rows that stay, those without a time among them."""
        table = frame_of(rows.sparkSession, self.path)
        return table.where(f"NOT coalesce({self.condition}, false)").alias("t")

    def _refuse_winners(self, rows: DataFrame, match: str) -> None:
        if self.copies is None or not self.copies.replaces:
            return
        beats = f"{match} AND {self.copies.beats()}"
        count = rows.join(self._outside(rows), F.expr(beats), "left_semi").count()
        if count:
            raise SpecError(
                "rows of the range rank before rows outside of it that have the same key, and a "
                "replaced range leaves those where they are",
                where=self.path,
                value=f"{count} key(s)",
                do="Backfill with `--write merge`, where the winner takes the other row's place, "
                "or choose a range that holds both",
            )


class NoTarget(Target):
    """No table: the sinks beside it are the end, and get every row of every batch."""

    @property
    def exists(self) -> bool:
        return False

    def needs(self, given: Given) -> bool:
        return False

    def write(self, unique: Unique, match: str, txn: Transaction) -> Commit:
        raise NotImplementedError("a step without a table writes to its sinks only")

    def find(self, session: SparkSession, txn: Transaction) -> Commit | None:
        return None
