"""The table of a step with `groups`: what was computed is compared with what it holds, and groups
that differ are replaced."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..spark.columns import col
from ..spark.kept import keep_rows
from ..spark.pruning import Spans
from ..spark.tables import FEW_ROWS, Commit, Transaction, frame_of
from ..spark.writes import append, replace_groups
from .target import Target
from .written import Given, Unique, Written, check_same

_SIDE, _NEW, _OLD, _DIFFERS = "_side", "_new", "_old", "_differs"
_KNOWN = "_known"


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


def same_group(names: tuple[str, ...], left: str, right: str) -> Column:
    """True for rows of one group, NULL being one as well."""
    terms = [F.col(f"{left}.`{name}`").eqNullSafe(F.col(f"{right}.`{name}`")) for name in names]
    return reduce(Column.__and__, terms)


def only_groups(rows: DataFrame, groups: DataFrame, few: bool = True) -> DataFrame:
    """The rows of some groups. Args: few: every executor can hold them."""
    same = same_group(tuple(groups.columns), "r", "g")
    named = groups.alias("g")
    return rows.alias("r").join(F.broadcast(named) if few else named, same, "left_semi")


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
            come = changed.where(f"{_NEW} > 0").select(*map(col, self.groups))
            few = found["groups"] <= FEW_ROWS
            rows = only_groups(unique.rows, come, few) if found["come"] else unique.rows.limit(0)
            gone = changed.where(f"{_OLD} > 0").select(*map(col, self.groups))
            yield Unique(rows, given, gone if found["go"] else None)

    def write(self, unique: Unique, match: str, txn: Transaction) -> Commit:
        if unique.gone is None:
            return append(self.path, unique.rows, txn)
        spans = Spans.of(unique.gone)
        where = spans.of_columns(
            dict(zip(self.groups, self.groups, strict=True)),
            self._table(unique.rows).schema,
            alias="t",
        )
        return replace_groups(self.path, unique.rows, unique.gone, where, txn)

    def count(self, given: Given, commit: Commit) -> Written:
        what = "rows of changed groups were to be written"
        check_same(given.keys, commit.inserted, what, "came in", self.path)
        check_same(
            given.gone, commit.deleted, "rows of changed groups were there", "went", self.path
        )
        return Written(given.rows, held=given.held, inserted=commit.inserted)

    def _table(self, rows: DataFrame) -> DataFrame:
        return frame_of(rows.sparkSession, self.path)

    def _held(self, rows: DataFrame) -> DataFrame:
        """What the table holds of the groups."""
        table = self._table(rows)
        if self.touched is not None:
            named = dict(zip(self.groups, self.groups, strict=True))
            table = table.where(self.touched.spans.of_columns(named, table.schema))
            table = only_groups(table, self.touched.rows, self.touched.few)
        return table.select(*map(col, self.columns))

    def _compare(self, rows: DataFrame) -> DataFrame:
        """Each group with how many rows it has now and had, and whether they differ as
        multisets."""
        new = rows.select(*map(col, self.columns)).withColumn(_SIDE, F.lit(1))
        old = self._held(rows).withColumn(_SIDE, F.lit(-1))
        sides = [F.sum(_SIDE).alias(_DIFFERS), F.count_if(F.col(_SIDE) > 0).alias(_NEW)]
        sides.append(F.count_if(F.col(_SIDE) < 0).alias(_OLD))
        by_row = new.unionByName(old).groupBy(*map(col, self.columns)).agg(*sides)
        by_group = by_row.groupBy(*map(col, self.groups)).agg(
            F.max(F.col(_DIFFERS) != 0).alias(_DIFFERS),
            F.sum(_NEW).alias(_NEW),
            F.sum(_OLD).alias(_OLD),
        )
        if self.touched is None:
            return by_group.withColumn(_KNOWN, F.lit(True))
        touched = self.touched.rows.withColumn(_KNOWN, F.lit(True))
        same = same_group(self.groups, "r", "g")
        named = touched.alias("g")
        named = F.broadcast(named) if self.touched.few else named
        both = by_group.alias("r").join(named, same, "left")
        return both.select("r.*", f"g.{_KNOWN}")


def _measures() -> list[Column]:
    """What became of the groups, and of their rows."""
    new, old, differs = F.col(_NEW) > 0, F.col(_OLD) > 0, F.col(_DIFFERS)

    def total(name: str, where: Column) -> Column:
        return F.coalesce(F.sum(F.when(where, F.col(name))), F.lit(0))

    return [
        F.count(F.lit(1)).alias("groups"),
        F.count_if(new & ~old).alias("inserted"),
        F.count_if(new & old & differs).alias("updated"),
        F.count_if(~new).alias("deleted"),
        F.count_if(F.col(_KNOWN).isNull()).alias("strange"),
        total(_NEW, F.lit(True)).alias("new"),
        total(_NEW, differs).alias("come"),
        total(_OLD, differs).alias("go"),
    ]
