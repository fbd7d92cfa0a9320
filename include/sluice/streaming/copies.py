"""What a copy is, and which of several copies stays.

Two rows are copies when their keys are equal and their event times lie at most `within` apart. Keys
compare as SQL does: -0.0 equals 0.0, NaN equals NaN, text by its characters. NULL equals NULL only
where the key is the whole row (`*`), which then holds the fields nobody declared as well; with
named keys a NULL refuses the row. With `order_by` a key is one row, however far apart its rows
lie: the winner of a key can then not depend on which rows came together. An event time given as
text counts as the moment it reads as.

The table is the memory: a batch is compared with it, pruned to the event times in which a copy of
its rows can lie.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from ..spark.columns import CONTENT, COPIES, DIFFERS, RESCUED, TIME, col, quote
from ..spark.tables import Keyed
from ..spec import Step
from ..spec.dedup import split_order
from .times import within_times

_TO_THE_MICROSECOND = "map('timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\")"


@dataclass(frozen=True)
class Copies:
    """Which rows of a step are copies of each other."""

    keys: tuple[str, ...]
    columns: StructType
    """The user's columns, and `_rescued` where it is kept."""
    order: tuple[tuple[str, bool], ...] = ()
    """(column, descending) of each term of `order_by`."""
    replaces: bool = False
    """A row may take the place of its copy in the table."""
    time: str = ""
    """The column of the event time."""
    reach: int | None = None
    """How far apart copies may lie, microseconds; None without a bound."""
    null_equals: bool = False

    @classmethod
    def of(cls, step: Step, keys: Sequence[str], columns: StructType) -> "Copies | None":
        """What a step says of copies; None where the target does not remember keys."""
        dedup = step.dedup
        if dedup is None or dedup.memory != "table" or step.event_time is None:
            return None
        order = tuple(split_order(dedup.order_by))
        bound = None if isinstance(dedup.within, str) or order else dedup.within
        everything = dedup.keys == "*"
        named = [*keys, *([RESCUED] if everything and RESCUED in columns.names else [])]
        return cls(
            tuple(named),
            columns,
            order,
            bool(order) and not dedup.first_arrives_first and not set(named) >= set(columns.names),
            step.event_time.column,
            None if bound is None else int(bound.total_seconds() * 1_000_000),
            everything,
        )

    @property
    def are_equal(self) -> bool:
        """True when copies are equal in every column, so that any of them may stand for all."""
        return set(self.keys) >= set(self.columns.names)

    def reduce(self, rows: DataFrame, spread: int, last: Column | None = None) -> DataFrame:
        """Keep one row a key: the first by `order_by`, then by content, so that no cut of the
        backlog changes it. Where rows of a key lie more than `within` apart, each side of the gap
        keeps one.

        Args:
            spread: microseconds between the oldest and the newest row; with less than `within`
                no gap is looked for.
            last: rows that stand behind all others.
        Out: the same columns, `_copies`, and `_content`, `_differs` (another row of the key said
        something else).
        """
        if self.are_equal:
            return self._count_equal(rows)
        ranks = [col(n).desc() if down else col(n).asc() for n, down in self.order]
        columns = [col(key) for key in self.keys]
        if self.reach is not None and spread > self.reach:
            in_time = Window.partitionBy(*columns).orderBy(F.col(TIME))
            micros = F.unix_micros(TIME)
            gap = F.coalesce(
                (micros - F.lag(micros).over(in_time) > self.reach).cast("int"), F.lit(0)
            )
            rows = rows.withColumn("_gap", gap)
            rows = rows.withColumn("_era", F.sum("_gap").over(in_time))
            columns = [*columns, F.col("_era")]
        same_key = Window.partitionBy(*columns)
        behind = [last.asc()] if last is not None else []
        order = same_key.orderBy(*behind, *ranks, F.col(CONTENT))
        marked = rows.withColumn(CONTENT, F.expr(self.content()))
        ranked = marked.withColumns(
            {
                "_rank": F.row_number().over(order),
                DIFFERS: F.min(CONTENT).over(same_key) != F.max(CONTENT).over(same_key),
                COPIES: F.count(F.lit(1)).over(same_key),
            }
        )
        return ranked.where("_rank = 1").drop("_rank", "_gap", "_era")

    def _count_equal(self, rows: DataFrame) -> DataFrame:
        """One of each group of equal rows: its other columns are those of any of them."""
        others = [name for name in rows.columns if name not in self.keys]
        kept = [F.first(col(name)).alias(name) for name in others]
        grouped = rows.groupBy(*[col(key) for key in self.keys])
        found = grouped.agg(*kept, F.count(F.lit(1)).alias(COPIES))
        return found.withColumns({CONTENT: F.lit(0), DIFFERS: F.lit(False)})

    def mark_alone(self, rows: DataFrame) -> DataFrame:
        """Rows of keys that no other row has, as `reduce` marks them."""
        return rows.withColumns(
            {CONTENT: F.expr(self.content()), DIFFERS: F.lit(False), COPIES: F.lit(1)}
        )

    def content(self, row: str = "") -> str:
        """SQL: one number for what a row says, in which the place of a NULL counts."""
        terms: list[str] = []
        for field in self.columns.fields:
            name = f"{row}{quote(field.name)}"
            terms += [_comparable(name, field.dataType), f"{name} IS NULL"]
        return f"xxhash64({', '.join(terms) or 'NULL'})"

    def beats(self) -> str:
        """SQL under which row `s` ranks before row `t` of the table, in the very order of `reduce`
        (NULL first ascending, last descending)."""
        verdict = f"{self.content('s.')} < {self.content('t.')}"
        for name, descending in reversed(self.order):
            s, t = f"s.{quote(name)}", f"t.{quote(name)}"
            first = (
                f"coalesce({s} > {t}, {t} IS NULL)"
                if descending
                else f"coalesce({s} < {t}, {s} IS NULL)"
            )
            verdict = f"CASE WHEN {s} <=> {t} THEN {verdict} ELSE {first} END"
        return verdict

    def match(self, oldest: int, newest: int) -> str:
        """SQL under which row `s` is a copy of row `t` of the table.

        Args: oldest, newest: the batch's event times, epoch microseconds.
        """
        equals = "<=>" if self.null_equals else "="
        terms = [f"t.{quote(key)} {equals} s.{quote(key)}" for key in self.keys]
        if self.reach is None:
            return " AND ".join(terms)
        kind, name = self.columns[self.time].dataType, quote(self.time)
        terms += filter(None, [self.reached(oldest, newest, "t.")])
        if self.time not in self.keys:
            # Row by row as well: what counts as a copy must not depend on how far apart other rows
            # of the batch are.
            t, s = (f"unix_micros({_moment(f'{side}.{name}', kind)})" for side in "ts")
            terms.append(f"abs({t} - {s}) <= {self.reach}")
        return " AND ".join(terms)

    def reached(self, oldest: int, newest: int, row: str = "") -> str:
        """SQL for the rows of the table that lie where copies of a batch's may; empty where that
        may be all of them. Args: oldest, newest: as `match` has them. row: before names."""
        kind, name = self.columns[self.time].dataType, quote(self.time)
        if self.reach is None or isinstance(kind, StringType):
            return ""  # the file statistics of text say nothing of its time
        return within_times(f"{row}{name}", kind, oldest - self.reach, newest + self.reach)

    def keyed(self, rows: DataFrame, count: int, oldest: int | None, newest: int | None) -> Keyed:
        """Rows of a reduced batch, to be compared with a table. Args: oldest, newest: as `match`
        has them; None where nobody knows."""
        if oldest is None or newest is None:
            return Keyed(rows, count, self.keys)
        return Keyed(rows, count, self.keys, self.reached(oldest, newest))

    def find_conflicts(self, unique: DataFrame, table: DataFrame | None, match: str) -> Row:
        """Keys of a reduced batch that came with differing content, in the batch or in the table
        as it was before.

        Out: `conflicts`, how many; `first` and `last`, two of them as text; `overtaken`, how many
        rank before their row in the table.
        """
        differs, overtaken = F.col(f"s.{DIFFERS}"), F.lit(False)
        rows = unique.alias("s")
        if table is not None:
            held = f"t.{quote(self.keys[0])} IS NOT NULL"
            # Not `_content`: Spark would make it of all rows before it asks which of them have one.
            other = F.expr(f"{held} AND {self.content('t.')} <> {self.content('s.')}")
            rows = rows.join(table.alias("t"), F.expr(match), "left")
            differs, overtaken = differs | other, other & F.expr(self.beats())
        keys = [F.col(f"s.{quote(key)}").cast("string") for key in self.keys]
        text = F.substring(F.concat_ws(", ", *keys), 1, 80)
        counted = [F.count("*").alias("conflicts"), F.count_if(overtaken).alias("overtaken")]
        counted += [F.min(text).alias("first"), F.max(text).alias("last")]
        return rows.where(differs).agg(*counted).collect()[0]


def _comparable(name: str, kind: DataType) -> str:
    """SQL for a value whose hash tells apart what differs: of nested values as text to the
    microsecond, in which a NULL has its place, a map in the order of its keys."""
    if isinstance(kind, MapType):
        name = f"array_sort(map_entries({name}))"
    nested = isinstance(kind, ArrayType | MapType | StructType)
    return f"to_json(struct({name} AS v), {_TO_THE_MICROSECOND})" if nested else name


def _moment(name: str, kind: DataType) -> str:
    """SQL for the moment that a column stands for."""
    return (
        f"try_to_timestamp({name})"
        if isinstance(kind, StringType)
        else f"CAST({name} AS TIMESTAMP)"
    )
