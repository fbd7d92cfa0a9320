"""Refused rows: kept as they came, with every reason, once each."""

from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ..spark.columns import (
    BATCH_KEY,
    COPIES,
    DEFECT,
    RAW,
    REASONS,
    RESCUED,
    SOURCE,
    TIME,
    UNREADABLE,
    col,
    source_text,
)
from ..spark.kept import keep_rows
from ..spark.tables import Keyed, Transaction
from ..spark.writes import append, insert_new
from .apart import Refused
from .plan import Plan
from .tries import unfinished
from .written import Given, Written

SCHEMA = StructType(
    [
        StructField("row", StringType()),
        StructField("raw", BinaryType()),
        StructField("reasons", ArrayType(StringType())),
        StructField("detail", StringType()),
        StructField(TIME, TimestampType()),
        StructField("_row_hash", StringType()),
        StructField("_run_id", StringType()),
        StructField("_batch_id", LongType()),
        StructField(BATCH_KEY, StringType()),
        StructField(SOURCE, StringType()),
        StructField("_ingested_at", TimestampType()),
    ]
)
_PARTS = ("row", "raw", "reasons", "detail", TIME, "_row_hash", SOURCE)
_MANY = 250_000
"""Rows that one task may get: a broken producer can have sent one record as often."""
_TO_THE_MICROSECOND = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}


def _refused_rows(refused: DataFrame, columns: StructType) -> DataFrame:
    """Rows with reasons -> row, raw, reasons, detail, _event_time, _row_hash, _source."""
    made = F.struct(*[col(c) for c in columns.names])
    content = F.to_json(made)
    valid = F.coalesce(F.is_valid_utf8(RAW), F.lit(True))
    row = F.when(valid, F.coalesce(F.col(RAW), content)).otherwise(F.make_valid_utf8(RAW))
    time = F.when(F.year(TIME) > 1, F.col(TIME))
    return refused.select(
        row.alias("row"),
        F.when(~valid, F.col(RAW).cast("binary")).alias("raw"),
        F.col(REASONS).alias("reasons"),
        F.col(DEFECT).alias("detail"),
        time.alias(TIME),
        F.sha2(_identity(refused, F.to_json(made, _TO_THE_MICROSECOND)), 256).alias("_row_hash"),
        source_text(refused.schema[SOURCE].dataType).alias(SOURCE),
    )


def _identity(refused: DataFrame, content: Column) -> Column:
    """The bytes by which two refused rows are the same: the record as it came, what the transform
    made of it, the fields nobody declared; of a Kafka record its key as well, because two keys
    without a value are two records."""
    parts = [F.col(RAW), content, F.col(RESCUED)]
    told = [F.coalesce(part.cast("binary"), F.lit(b"\x00")) for part in parts]
    if isinstance(refused.schema[SOURCE].dataType, StructType):
        key = F.sha2(f"{SOURCE}.key", 256).cast("binary")
        told.insert(0, F.coalesce(key, F.lit(b"")))
    between = [piece for part in told for piece in (part, F.lit(b"\x1f"))]
    return F.concat(*between)


def _unreadable_rows(spark: SparkSession, files: dict[str, str]) -> DataFrame:
    """One row a file that could not be read, in the shape of `_refused_rows`."""
    schema = StructType([SCHEMA[name] for name in _PARTS])
    rows = [
        (None, None, [UNREADABLE], why, None, f"{UNREADABLE}:{path}", path)
        for path, why in sorted(files.items())
    ]
    return spark.createDataFrame(rows, schema)


def _reduce(rows: DataFrame, many: bool) -> DataFrame:
    """One of the rows that are the same, of the first source by name. Out: `_copies` beside.

    By a window, which sorts their texts once: an aggregation sorts and copies them before the
    shuffle and behind it (measured, 143,000 refused of 3,000,000 orders: 91.9 and not 94.3
    CPU-seconds of a run, two pairs; of 10,000 orders 15.5 and not 16.5, medians of five). Of many
    rows by that all the same: of one record that came a million times each task passes one on,
    where a window gives all to one task.
    """
    if many:
        others = [name for name in _PARTS if name not in ("_row_hash", SOURCE)]
        least = F.min(F.struct(SOURCE, *others)).alias("least")
        once = rows.groupBy("_row_hash").agg(least, F.count(F.lit(1)).alias(COPIES))
        return once.select("_row_hash", "least.*", COPIES)
    same = Window.partitionBy("_row_hash").orderBy(SOURCE)
    every = same.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    marks = {"_rank": F.row_number().over(same), COPIES: F.count(F.lit(1)).over(every)}
    return rows.withColumns(marks).where("_rank = 1").drop("_rank")


def write_refused(
    plan: Plan, refused: Refused, files: dict[str, str], number: int, txn: Transaction
) -> Written:
    """Write the refused rows of a judged batch; a copy of one that is there already is not
    written again.

    Args:
        files: unreadable ones and why; each is one row.
        number: of the batch. txn: the key of this try; its note names the run.
    """
    session = refused.rows.sparkSession
    rows = _refused_rows(refused.rows, plan.columns)
    if files:
        rows = rows.unionByName(_unreadable_rows(session, files))
    stamps = {
        "_run_id": F.lit(txn.note["run_id"]),
        "_batch_id": F.lit(number).cast("bigint"),
        BATCH_KEY: F.lit(plan.batch_key(number)),
        "_ingested_at": F.lit(datetime.now(UTC)),
    }
    path = plan.place.quarantine
    if plan.step.dedup is None and plan.refresh is None:
        commit = append(path, rows.withColumns(stamps).select(*SCHEMA.names), txn)
        return Written(given=commit.given, inserted=commit.inserted)
    many = refused.crowding or refused.count > _MANY
    once = _reduce(rows, many).withColumns(stamps)
    with keep_rows(once, on_disk=refused.crowding) as kept_rows:
        given, keys = kept_rows.agg(F.sum(COPIES), F.count(F.lit(1))).collect()[0]
        new = Keyed(kept_rows.select(*SCHEMA.names), keys, ["_row_hash"])
        abandoned = unfinished(plan, path, session)
        commit = insert_new(path, new, "t._row_hash = s._row_hash", txn, abandoned)
        return Written.of(Given(given or 0, keys), commit, path).take_over()
