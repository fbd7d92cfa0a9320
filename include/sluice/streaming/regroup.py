"""The table of a step with `groups`: what was computed is compared with what it holds, and groups
that differ are replaced."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..spark.columns import col, quote
from ..spark.kept import keep_rows
from ..spark.pruning import Spans
from ..spark.tables import FEW_ROWS, Commit, Transaction, frame_of
from ..spark.writes import append, replace_groups
from .comparing import HELD, MISSING, SURPLUS, WANTED, compare_groups
from .target import Target
from .written import Given, Unique, Written, check_same

_DIFFERS, _KNOWN = "_differs", "_known"


@dataclass(frozen=True)
class Touched:
    """The groups that a batch computes, one row each by the names of the result's columns."""

    rows: DataFrame
    spans: Spans

    @property
    def count(self) -> int:
        """How many they are."""
        return self.spans.count

    @property
    def few(self) -> bool:
        """True where every executor can hold them."""
        return self.count <= FEW_ROWS


def only_groups(rows: DataFrame, groups: DataFrame, few: bool) -> DataFrame:
    """The rows of some groups, which are told by all of their columns. Args: few: every executor
    can hold them."""
    return join_groups(rows, groups, groups.columns, few, "left_semi")


def join_groups(
    rows: DataFrame, groups: DataFrame, names: Sequence[str], few: bool, how: str
) -> DataFrame:
    """Rows `r` beside the group `g` that they belong to, NULL being one as well."""
    same = [F.col(f"r.{quote(name)}").eqNullSafe(F.col(f"g.{quote(name)}")) for name in names]
    named = groups.alias("g")
    named = F.broadcast(named) if few else named
    return rows.alias("r").join(named, reduce(Column.__and__, same), how)


@dataclass(frozen=True)
class RefreshGroups(Target):
    """Groups that were computed again. `groups`: the columns that tell them. `columns`: that are
    compared. `touched`: those of the batch at work; None where all were computed."""

    groups: tuple[str, ...]
    columns: tuple[str, ...]
    touched: Touched | None = None

    @property
    def replaces(self) -> bool:
        return True

    def needs(self, given: Given) -> bool:
        return True  # a group of which nothing is left goes, and the commit tells the versions

    @contextmanager
    def prepare(self, unique: Unique, match: str) -> Iterator[Unique]:
        """Those of the rows whose group differs from what the table holds, and which groups go.

        Raises UnbalancedReport for rows of a group that was not to be computed.
        """
        with keep_rows(self._compare(unique.rows)) as compared:
            found = compared.agg(*_measures()).collect()[0].asDict()
            check_same(
                unique.given.rows, found["new"], "rows were computed", "were compared", self.path
            )
            touched = found["groups"]
            if self.touched is not None:
                touched = self.touched.count
                strange = found["strange"]
                check_same(0, strange, "other groups were touched", "were computed", self.path)
            fates = {name: found[name] for name in ("inserted", "updated", "deleted")}
            fates["unchanged"] = touched - sum(fates.values())
            changed = compared.where(_DIFFERS)
            given = replace(
                unique.given,
                keys=found["come"],
                held=found["new"] - found["come"],
                gone=found["go"],
                groups={"touched": touched, **fates},
            )
            come = changed.where(f"{WANTED} > 0").select(*map(col, self.groups))
            few = found["groups"] <= FEW_ROWS
            rows = only_groups(unique.rows, come, few) if found["come"] else unique.rows.limit(0)
            gone = changed.where(f"{HELD} > 0").select(*map(col, self.groups))
            yield Unique(rows, given, gone if found["go"] else None)

    def write(self, unique: Unique, match: str, txn: Transaction) -> Commit:
        if unique.gone is None:
            return append(self.path, unique.rows, txn)
        spans = Spans.of(unique.gone)
        where = spans.of_columns(self._named, self._table(unique.rows).schema, alias="t")
        return replace_groups(self.path, unique.rows, unique.gone, where, txn)

    def count(self, given: Given, commit: Commit) -> Written:
        what = "rows of changed groups were to be written"
        check_same(given.keys, commit.inserted, what, "came in", self.path)
        check_same(
            given.gone, commit.deleted, "rows of changed groups were there", "went", self.path
        )
        return Written(given.rows, held=given.held, inserted=commit.inserted)

    @property
    def _named(self) -> dict[str, str]:
        """How the groups follow from a row of the table: they are columns of it."""
        return {name: name for name in self.groups}

    def _table(self, rows: DataFrame) -> DataFrame:
        return frame_of(rows.sparkSession, self.path)

    def _held(self, rows: DataFrame) -> DataFrame:
        """What the table holds of the groups."""
        table = self._table(rows)
        if self.touched is not None:
            table = table.where(self.touched.spans.of_columns(self._named, table.schema))
            table = only_groups(table, self.touched.rows, self.touched.few)
        return table.select(*map(col, self.columns))

    def _compare(self, rows: DataFrame) -> DataFrame:
        """Each group with how many rows it has now and had, and whether they differ as
        multisets."""
        wanted = rows.select(*map(col, self.columns))
        found = compare_groups(wanted, self._held(rows), self.groups)
        found = found.withColumn(_DIFFERS, F.col(MISSING) + F.col(SURPLUS) > 0)
        if self.touched is None:
            return found.withColumn(_KNOWN, F.lit(True))
        touched = self.touched.rows.withColumn(_KNOWN, F.lit(True))
        both = join_groups(found, touched, self.groups, self.touched.few, "left")
        return both.select("r.*", f"g.{_KNOWN}")


def _measures() -> list[Column]:
    """What became of the groups, and of their rows."""
    new, old, differs = F.col(WANTED) > 0, F.col(HELD) > 0, F.col(_DIFFERS)

    def total(name: str, where: Column) -> Column:
        return F.coalesce(F.sum(F.when(where, F.col(name))), F.lit(0))

    return [
        F.count(F.lit(1)).alias("groups"),
        F.count_if(new & ~old).alias("inserted"),
        F.count_if(new & old & differs).alias("updated"),
        F.count_if(~new).alias("deleted"),
        F.count_if(F.col(_KNOWN).isNull()).alias("strange"),
        total(WANTED, F.lit(True)).alias("new"),
        total(WANTED, differs).alias("come"),
        total(HELD, differs).alias("go"),
    ]
