"""Refused rows: kept as they came, with every reason, once each."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, LongType, StringType, StructField, StructType, TimestampType

from ..backlog import is_hidden
from ..spec import is_remote, open_path
from .columns import DEFECT, RAW, REASONS, SOURCE, TIME, UNREADABLE, col
from .headers import why_unpackable
from .layouts import EMBEDDED
from .step_run import StepRun
from .tables import append, insert_new

SCHEMA = StructType([
    StructField("row", StringType()), StructField("raw", BinaryType()), StructField("reasons", ArrayType(StringType())), StructField("detail", StringType()),
    StructField(TIME, TimestampType()), StructField("_row_hash", StringType()), StructField("_run_id", StringType()), StructField("_batch_id", LongType()),
    StructField(SOURCE, StringType()), StructField("_ingested_at", TimestampType()),
])


def unreadable_among(run: StepRun, paths: list[str]) -> dict[str, str]:
    """The files of a batch that cannot be read, and why: those a reader failed on, those it finds no rows in, and those deleted since they were listed."""
    found = {path: why for path, why in run.unreadable.items() if path in paths}
    if run.step.source.format not in EMBEDDED:
        found |= {path: why for path in paths if path not in found and not is_hidden(path.rsplit("/", 1)[-1]) and (why := why_unpackable(path))}
    # A hidden name is gone as soon as its writer gives it the real one; it was no record anyway.
    named = [path for path in paths if path not in found and not is_hidden(path.rsplit("/", 1)[-1])]
    with ThreadPoolExecutor(16) as pool:
        there = list(pool.map(lambda path: open_path(path).exists() if is_remote(path) else os.path.exists(path), named))
    gone = [path for path, exists in zip(named, there, strict=True) if not exists]
    return found | dict.fromkeys(gone, "the file was deleted between listing and reading")


def _refused_rows(refused: DataFrame, business: StructType) -> DataFrame:
    """Rows with reasons -> row, raw, reasons, detail, _event_time, _row_hash, _source."""
    content = F.to_json(F.struct(*[col(c) for c in business.names]))
    valid = F.coalesce(F.is_valid_utf8(RAW), F.lit(True))
    row = F.when(valid, F.coalesce(F.col(RAW), content)).otherwise(F.make_valid_utf8(RAW))
    identity = F.when(F.col(DEFECT).isNull(), content.cast("binary")).otherwise(F.coalesce(F.col(RAW), content).cast("binary"))
    time = F.when(F.year(TIME) > 1, F.col(TIME))
    return refused.select(row.alias("row"), F.when(~valid, F.col(RAW).cast("binary")).alias("raw"), F.col(REASONS).alias("reasons"), F.col(DEFECT).alias("detail"),
                          time.alias("_event_time"), F.sha2(identity, 256).alias("_row_hash"), F.col(SOURCE))


def _unreadable_rows(spark: SparkSession, files: dict[str, str]) -> DataFrame:
    """One row a file that could not be read, in the shape of `_refused_rows`."""
    schema = StructType([SCHEMA[n] for n in ("row", "raw", "reasons", "detail", "_event_time", "_row_hash", "_source")])
    rows = [(None, None, [UNREADABLE], why, None, f"{UNREADABLE}:{path}", path) for path, why in sorted(files.items())]
    return spark.createDataFrame(rows, schema)


def write(run: StepRun, frame: DataFrame, batch: int, refused: int, files: dict[str, str]) -> int:
    """Write a batch's refused rows; a copy of one that is there already is not written again. Returns how many were new.

    Args: refused: how many rows of the frame have reasons. files: unreadable ones and why.
    """
    parts = [_refused_rows(frame.where(F.size(REASONS) > 0), run.business)] if refused else []
    parts += [_unreadable_rows(frame.sparkSession, files)] if files else []
    rows = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
    stamped = rows.withColumns({"_run_id": F.lit(run.run_ids[0]), "_batch_id": F.lit(batch).cast("bigint"), "_ingested_at": F.lit(datetime.now(UTC))})
    stamped = stamped.select(*SCHEMA.names)
    path, txn = run.paths.quarantine(run.step.name), run.transaction(batch)
    if run.step.dedup is None:
        append(path, stamped, txn)
        return refused + len(files)
    return insert_new(path, stamped.dropDuplicates(["_row_hash"]), "t._row_hash = s._row_hash", txn)[0]
