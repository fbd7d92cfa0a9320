"""Refused rows: kept as they came, with every reason, once each."""

from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
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

from ..spark.columns import DEFECT, RAW, REASONS, SOURCE, TIME, UNREADABLE, col
from ..spark.tables import append, insert_new
from .step_run import StepRun

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
        StructField(SOURCE, StringType()),
        StructField("_ingested_at", TimestampType()),
    ]
)


def _refused_rows(refused: DataFrame, business: StructType) -> DataFrame:
    """Rows with reasons -> row, raw, reasons, detail, _event_time, _row_hash, _source."""
    content = F.to_json(F.struct(*[col(c) for c in business.names]))
    valid = F.coalesce(F.is_valid_utf8(RAW), F.lit(True))
    row = F.when(valid, F.coalesce(F.col(RAW), content)).otherwise(F.make_valid_utf8(RAW))
    identity = F.when(F.col(DEFECT).isNull(), content.cast("binary")).otherwise(
        F.coalesce(F.col(RAW), content).cast("binary")
    )
    source = F.col(SOURCE)
    if isinstance(
        refused.schema[SOURCE].dataType, StructType
    ):  # a Kafka record: its bytes are in the row, and two keys without a value are two records
        identity = F.concat(
            F.coalesce(F.sha2(f"{SOURCE}.key", 256).cast("binary"), F.lit(b"")), identity
        )
        source = F.to_json(
            source.dropFields("value").withField(
                "key", F.make_valid_utf8(F.col(f"{SOURCE}.key").cast("string"))
            )
        )
    time = F.when(F.year(TIME) > 1, F.col(TIME))
    return refused.select(
        row.alias("row"),
        F.when(~valid, F.col(RAW).cast("binary")).alias("raw"),
        F.col(REASONS).alias("reasons"),
        F.col(DEFECT).alias("detail"),
        time.alias("_event_time"),
        F.sha2(identity, 256).alias("_row_hash"),
        source.alias(SOURCE),
    )


def _unreadable_rows(spark: SparkSession, files: dict[str, str]) -> DataFrame:
    """One row a file that could not be read, in the shape of `_refused_rows`."""
    schema = StructType(
        [
            SCHEMA[n]
            for n in ("row", "raw", "reasons", "detail", "_event_time", "_row_hash", "_source")
        ]
    )
    rows = [
        (None, None, [UNREADABLE], why, None, f"{UNREADABLE}:{path}", path)
        for path, why in sorted(files.items())
    ]
    return spark.createDataFrame(rows, schema)


def write(run: StepRun, frame: DataFrame, batch: int, refused: int, files: dict[str, str]) -> int:
    """Write a batch's refused rows; a copy of one that is there already is not written again. Returns how many were new.

    Args: refused: how many rows of the frame have reasons. files: unreadable ones and why.
    """
    parts = [_refused_rows(frame.where(F.size(REASONS) > 0), run.business)] if refused else []
    parts += [_unreadable_rows(frame.sparkSession, files)] if files else []
    rows = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
    stamped = rows.withColumns(
        {
            "_run_id": F.lit(run.run_ids[0]),
            "_batch_id": F.lit(batch).cast("bigint"),
            "_ingested_at": F.lit(datetime.now(UTC)),
        }
    )
    stamped = stamped.select(*SCHEMA.names)
    path, txn = run.paths.quarantine(run.step.name), run.transaction(batch)
    if run.step.dedup is None:
        append(path, stamped, txn)
        return refused + len(files)
    return insert_new(
        path, stamped.dropDuplicates(["_row_hash"]), "t._row_hash = s._row_hash", txn
    )[0]
