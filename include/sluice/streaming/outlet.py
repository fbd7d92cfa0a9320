"""What the further sinks of a step are given: the rows of a batch, as the target holds them now."""

from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..checkpoint import Due, Position, split_key
from ..sinks import Delivery, Preparation, writer_of
from ..spark.columns import BATCH_KEY
from ..spark.tables import frame_of
from ..spec import SinkKind
from .mirror import find_change
from .written import check_same


def is_of_batch(key: str) -> Column:
    """Rows of a batch. By its number as well: the files' statistics know numbers, and of a text
    only its beginning, which many batches share."""
    number = int(key.rpartition("/")[2])
    return (F.col("_batch_id") == number) & (F.col(BATCH_KEY) == key)


def is_after(seen: dict[str, int]) -> Column:
    """Rows of the batches that come after the newest one of each checkpoint generation."""
    wanted = F.lit(False)
    for generation, number in seen.items():
        of_generation = F.col(BATCH_KEY).startswith(f"{generation}/")
        wanted = wanted | ((F.col("_batch_id") > number) & of_generation)
    return wanted


@dataclass(frozen=True)
class Taken:
    """What a sink has of a batch. `missing`: rows that the target has lost. `removed`: places of
    which it kept nothing."""

    rows: int = 0
    missing: int = 0
    removed: int = 0


@dataclass(frozen=True)
class Outlet:
    """A step's target as its further sinks follow it.

    `table`: where it lies; empty for none. `replaces`: a row may give way to one of a later batch.
    `schema`: of its rows, system columns among them. `columns`: the user's. `keys`: those of
    `dedup`. `folder`: of the pipeline's YAML. `root`: below which relative paths lie. `hidden`:
    columns whose values are never shown. `where`: the step, for messages. `whole`: each batch is
    the whole result. `mirrored`: the sinks become what the table is.
    """

    table: str
    replaces: bool
    schema: StructType
    columns: list[str]
    keys: tuple[str, ...]
    folder: Path
    root: str
    hidden: frozenset[str]
    where: str
    whole: bool = False
    mirrored: bool = False

    def rows_of(self, session: SparkSession, key: str) -> DataFrame:
        """The rows of a batch, as the table holds them now."""
        return frame_of(session, self.table).where(is_of_batch(key))

    def count_batches(self, session: SparkSession, wanted: Column) -> dict[str, int]:
        """Rows by batch key, of the rows that are wanted."""
        counts = frame_of(session, self.table).where(wanted).groupBy(BATCH_KEY).count()
        return {row[0]: row[1] for row in counts.collect() if row[0] is not None}

    def preparation(
        self, session: SparkSession, title: str = "", position: Position | None = None
    ) -> Preparation:
        """What a sink is told before it gets a row. Args: position: of one that follows."""
        had = position or Position(sink=title)

        return Preparation(
            session,
            self.schema,
            self.columns,
            self.folder,
            self.where,
            known={
                self.delivery(f"{home}/0").to(title).key: those
                for home, those in had.followed.items()
                if had.got
            },
            due=frozenset(self.delivery(due.key).to(title).token for due in had.due),
            mirror=self.mirrored,
            has_rows=lambda: not frame_of(session, self.table).isEmpty(),
            given_up=frozenset(self.delivery(b.key).to(title).token for b in had.given_up),
        )

    def delivery(self, key: str, again: bool = False) -> Delivery:
        """A batch on its way to a sink."""
        generation, number = split_key(key)
        return Delivery(
            f"sluice/{generation}",
            number,
            self.columns,
            self.folder,
            self.root,
            again=again,
            keys=self.keys,
            hidden=self.hidden,
            whole=self.whole,
            mirror=self.mirrored,
        )

    def send(
        self, session: SparkSession, sink: SinkKind, title: str, due: Due, fresh: bool
    ) -> Taken:
        """Give a sink a batch.

        Args: fresh: the target has just got the batch, so that nobody can have deleted of it.
        Raises what the sink raises, and UnbalancedReport where the rows are not the batch's.
        """
        if self.mirrored:
            return self._mirror(session, sink, title, due, fresh)
        rows = self.rows_of(session, due.key)
        held = self._count(rows, due.key)
        if (fresh and not self.replaces) or held > due.rows:
            check_same(due.rows, held, "rows were written", "were found to be delivered", title)
        if not held:
            return Taken(missing=0 if self.replaces else due.rows)
        given = writer_of(sink).deliver(rows, self.delivery(due.key, due.again).to(title))
        if fresh or given < held:  # a sink that got the batch before may have more of it
            check_same(held, given, "rows were written", f"came to {title}", self.where)
        return Taken(given, 0 if self.replaces else max(0, due.rows - given))

    def _mirror(
        self, session: SparkSession, sink: SinkKind, title: str, due: Due, fresh: bool
    ) -> Taken:
        """Make a sink what the target is in all that a batch changed."""
        writer, delivery = writer_of(sink), self.delivery(due.key, due.again).to(title)
        delivery = replace(delivery, keys=tuple(sink.mirrored_by or ()))
        with find_change(session, self.table, writer.places(self.schema), due, title) as change:
            count = change.rows.count()
            removed = change.gone.count() if change.gone is not None else 0
            if not (count or removed or due.whole or change.gone is None):
                return Taken()
            gone = change.gone if removed else None
            given = writer.deliver(change.rows, replace(delivery, whole=due.whole, gone=gone))
        if fresh or due.whole:  # else a sink may have got the batch as it was before
            check_same(count, given, "rows were to be sent", f"came to {title}", self.where)
        return Taken(given, removed=removed)

    def _count(self, rows: DataFrame, key: str) -> int:
        """Rows are found by the batch's key; that they are this batch's is counted."""
        own = F.coalesce(is_of_batch(key), F.lit(False))
        count, of_batch = rows.agg(F.count(F.lit(1)), F.count_if(own)).collect()[0]
        check_same(count, of_batch, "rows are to be delivered", "are of this batch", self.where)
        return count
