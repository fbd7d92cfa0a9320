"""A replaced range never loses a row that is not read again."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..backlog.probe import Range
from ..backlog.probes import probe_of
from ..checkpoint import normalize_uri
from ..errors import SourceError
from ..spark.columns import SOURCE
from ..spark.table_setup import table_exists
from ..spark.tables import frame_of
from ..spec import Step
from .plan import Plan
from .run import Run
from .target import ReplaceRange

_MERGE = "Backfill with `--write merge`, which deletes nothing"


def widen_range(run: Run, step: Step, chosen: Range, target: str) -> Range:
    """Files of a range by their names, and those that gave a row of the range to the table: a late
    row comes in the file of another day.

    Raises SourceError where such a file is gone.
    """
    condition = run.mode.range_condition(step)
    if not run.mode.replaces or condition is None or not chosen.files:
        return chosen
    if not table_exists(run.spark, target):
        return chosen
    rows = frame_of(run.spark, target).where(condition).where(F.col(SOURCE).isNotNull())
    given = {normalize_uri(row[0]) for row in rows.select(SOURCE).distinct().collect()}
    wider, gone = probe_of(next(iter(step.streams.values())).source).widen(chosen, given)
    if gone:
        raise SourceError(
            f"rows of the range came from {len(gone)} file(s) that are not there any more, so "
            "replacing the range would lose them",
            where=run.where(step),
            value=gone[0],
            do=f"Put them back into the landing folder, or choose another range. {_MERGE}",
        )
    return wider


def refuse_unread(plan: Plan, rows: DataFrame) -> None:
    """Raise SourceError where the range holds rows of records that this batch has not read."""
    if not isinstance(plan.target, ReplaceRange):
        return
    held = plan.target.rows_within(rows.sparkSession)
    record = _record(rows)
    there, read = held.select(record.alias("record")), rows.select(record.alias("record"))
    count = there.join(read.distinct(), "record", "left_anti").count()
    if count:
        raise SourceError(
            f"{count:,} row(s) of the range came from records that were not read again (they "
            "expired, or lie outside of what a backfill of this range reads), so replacing the "
            "range would lose them",
            where=plan.where,
            value=plan.target.condition,
            do=f"{_MERGE}, or choose a range whose records are all there",
        )


def _record(rows: DataFrame) -> Column:
    """What a row came from: a file, whichever way its URI is written; an offset; a table."""
    if isinstance(rows.schema[SOURCE].dataType, StructType):
        parts = ("topic", "partition", "offset")
        return F.struct(*[F.col(f"{SOURCE}.{name}") for name in parts])
    return F.regexp_replace(F.col(SOURCE), "^file:/+", "/")
