"""Records of a topic as Spark reads them -> the columns of a source, each record's origin and what
is wrong with it."""

from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ..spark.columns import DEFECT, RAW, RESCUED, SOURCE, col
from ..spec import KafkaSource
from .parse.avro_records import parse_avro
from .parse.headers import record_pattern
from .parse.text_records import decode, parse_text

_TOMBSTONE = "the record has no value (a tombstone)"


def read_records(frame: DataFrame, source: KafkaSource, folder: Path) -> DataFrame:
    """Columns of the schema, `_raw`, `_defect`, `_rescued` and `_source`. Args: folder: of the
    pipeline's YAML."""
    fields: list[str | Column] = [
        "topic",
        "partition",
        "offset",
        "timestamp",
        F.col("timestampType").alias("timestamp_type"),
        "key",
    ]
    fields += ["headers"] if source.headers else []
    fields += ["value"] if source.keep_value else []
    records = frame.select(
        F.col("value").alias("_value"),
        F.col("value").cast("string").alias(RAW),
        F.struct(*fields).alias(SOURCE),
    )
    parsed = _parse(records, source, folder)
    if source.tombstones == "quarantine":
        defect = F.when(F.col("_value").isNull(), F.lit(_TOMBSTONE)).otherwise(F.col(DEFECT))
    else:
        defect = F.when(F.col("_value").isNotNull(), F.col(DEFECT))
    columns = [col(c) for c in source.columns]
    return parsed.select(*columns, RAW, defect.alias(DEFECT), RESCUED, SOURCE)


def _parse(records: DataFrame, source: KafkaSource, folder: Path) -> DataFrame:
    nothing = F.lit(None).cast("string")
    if source.format == "bytes":
        return records.select(
            F.col("_value").alias("value"),
            "_value",
            RAW,
            nothing.alias(DEFECT),
            nothing.alias(RESCUED),
            SOURCE,
        )
    if source.format == "avro":
        return parse_avro(records, source, folder)
    if source.format == "csv":  # a line break that ends the record is none of it
        records = records.withColumn(RAW, F.regexp_replace(RAW, "\r?\n$", ""))
    parsed = parse_text(
        decode(records, source), source, {}, lambda paths: F.lit(True), SOURCE, "_value"
    )
    if source.format != "csv":
        return parsed
    # A value is one record: what stands in a second line would be passed over in silence.
    lines = F.when(
        F.col(RAW).rlike("[\\r\\n]") & ~F.col(RAW).rlike(f"^{record_pattern(source)}[\\r\\n]*$"),
        F.lit("more than one line"),
    )
    blank = F.when(F.btrim(F.col(RAW), F.lit(" \t\r\n")) == "", F.lit("the value is blank"))
    return parsed.withColumn(DEFECT, F.coalesce(blank, lines, F.col(DEFECT)))
