"""Tables of groups that change: each batch replaces those that changed, or all of them."""

from dataclasses import dataclass, replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

from ..errors import SpecError
from ..spark.columns import col, quote
from ..spark.tables import Commit, Keyed, Transaction
from ..spark.writes import append, insert_new
from .target import Target
from .times import within_times
from .written import Given, Unique, Written

_TIMES = (TimestampType, TimestampNTZType, DateType)


def _oldest(name: str) -> Column:
    return F.min(F.unix_micros(col(name).cast("timestamp")))


def _newest(name: str) -> Column:
    return F.max(F.unix_micros(col(name).cast("timestamp")))


def _untimed(name: str) -> Column:
    """Rows without a time, which lie in any file."""
    return F.count_if(col(name).isNull())


@dataclass(frozen=True)
class ReplaceGroups(Target):
    """Groups that changed, one row each: they take the place of what they were (`mode: update`).

    `keys`: columns by which a group is known.
    """

    keys: tuple[str, ...]

    @property
    def replaces(self) -> bool:
        return True

    def write(self, unique: Unique, match: str, txn: Transaction) -> Commit:
        keyed = Keyed(unique.rows, unique.given.keys, self.keys)
        return insert_new(self.path, keyed, self._match(unique), txn, beats="TRUE")

    def count(self, given: Given, commit: Commit) -> Written:
        return super().count(given, commit).take_over(updates=True)

    def _match(self, unique: Unique) -> str:
        """SQL under which row `t` of the table is what the group of row `s` was before. Of the
        table only files are read that the batch's times may lie in.

        Raises SpecError where one group came in several rows, which want one place.
        """
        rows, expected = unique.rows, unique.given.keys
        kinds = {name: rows.schema[name].dataType for name in self.keys}
        times = [name for name, kind in kinds.items() if isinstance(kind, _TIMES)]
        seen = [measure(name) for name in times for measure in (_oldest, _newest, _untimed)]
        group = F.struct(*[col(key) for key in self.keys])
        groups, *found = rows.agg(F.count_distinct(group), *seen).collect()[0]
        if groups != expected:
            raise SpecError(
                f"a batch brings {expected:,} rows of {groups:,} groups: `keys` do not tell the "
                "groups of the transform apart",
                where=self.path,
                value=", ".join(self.keys),
                do="Write every column that the transform groups by as `keys` of the sink",
            )
        terms = [f"t.{quote(key)} <=> s.{quote(key)}" for key in self.keys]
        for place, name in enumerate(times):
            oldest, newest, untimed = found[3 * place : 3 * place + 3]
            if not untimed:
                terms.append(within_times(f"t.{quote(name)}", kinds[name], oldest, newest))
        return " AND ".join(terms)


class ReplaceAll(Target):
    """The whole result, in place of what the table held (`mode: complete`)."""

    @property
    def replaces(self) -> bool:
        return True

    def needs(self, given: Given) -> bool:
        return True  # a result of no rows empties the table

    def write(self, unique: Unique, match: str, txn: Transaction) -> Commit:
        return append(self.path, unique.rows, txn, replace_where="TRUE")

    def count(self, given: Given, commit: Commit) -> Written:
        # That the result before goes is what the mode says, batch by batch, and no news.
        return replace(super().count(given, commit), removed=0)
