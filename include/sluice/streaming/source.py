"""Opens the stream: every record of every file, with its raw text where the format has one.

Out: the schema's columns and `_raw`, `_defect`, `_rescued`, `_source`.
"""

import re
from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ..backlog import source_root
from ..errors import SpecError
from ..spec import FileSource
from .columns import DEFECT, RAW, RESCUED, SOURCE, col, quote
from .embedded import read_embedded
from .headers import NOT_UNPACKED
from .layouts import EMBEDDED, Layout
from .parse_csv import parse_csv, split_records
from .parse_json import parse_json, split_documents

_BLANK = " \t\r\n"
_FOR_EVER = "3650000d"  # Spark otherwise never reads a file much older than the newest it has seen, whose clock may have been a century ahead


def _is_utf8(source: FileSource) -> bool:
    return source.encoding.upper() in ("UTF-8", "UTF8")


def reads_whole_files(source: FileSource) -> bool:
    """True where a record may span lines, and where a line break is more than one byte: such a file is one value in memory before it is split."""
    return source.format not in EMBEDDED and (source.multi_line or source.encoding.upper().startswith(("UTF-16", "UTF-32", "UTF16", "UTF32")))


def reader_options(source: FileSource, pattern: str | None = None) -> dict[str, str]:
    """Options of the file stream; ours win where the meaning of a run hangs on them."""
    ours = {"recursiveFileLookup": "true", "pathGlobFilter": pattern or source.pattern}
    if source.max_files_per_batch:
        ours["maxFilesPerTrigger"] = str(source.max_files_per_batch)
    if source.max_bytes_per_batch:
        ours["maxBytesPerTrigger"] = str(source.max_bytes_per_batch)
    if source.format not in EMBEDDED:
        ours["wholetext"] = str(reads_whole_files(source)).lower()
    return {"maxFileAge": _FOR_EVER, **source.options, **ours}


def open_stream(spark: SparkSession, source: FileSource, layouts: dict[Layout, list[str]], without: Iterable[str] = (),
                path: str | None = None, pattern: str | None = None) -> DataFrame:
    """The unbounded frame of a file source.

    Args: layouts: the columns of the waiting files. without: files no reader can read. path, pattern: narrower than the source's, for a backfill.
    Raises SpecError for an encoding Java does not know.
    """
    if not spark._jvm.java.nio.charset.Charset.isSupported(source.encoding):
        raise SpecError("no such encoding", where="source.encoding", value=source.encoding, do="Write UTF-8, ISO-8859-1, windows-1252 or UTF-16")
    reader = spark.readStream.options(**reader_options(source, pattern))
    location = path or source_root(source)
    metadata = [F.col("_metadata.file_path").alias(SOURCE), F.col("_metadata.file_name").alias("_name")]
    wanted = ~_among(spark, without) if without else F.lit(True)
    if source.format in EMBEDDED:
        frame = read_embedded(spark, reader, location, source, layouts, metadata).where(wanted)
    else:
        lines = reader.format("text").load(location).select(F.col("value").alias(RAW), *metadata)
        frame = _parse_text(lines.where(wanted), source, layouts)
    if source.format not in EMBEDDED:
        frame = frame.where(~F.lower("_name").rlike(rf"({'|'.join(map(re.escape, NOT_UNPACKED))})$"))
    visible = ~(F.col("_name").startswith("_") | F.col("_name").startswith(".") | F.col("_name").endswith(".tmp") | F.col("_name").endswith("._COPYING_"))
    return frame.where(visible).select(*[col(c) for c in source.columns], RAW, DEFECT, RESCUED, SOURCE)


def _parse_text(lines: DataFrame, source: FileSource, layouts: dict[Layout, list[str]]) -> DataFrame:
    """Lines or whole files -> columns. Blank lines are no records; text that is not valid in its encoding is kept and marked."""
    lines = _split(_decode(lines, source), source)
    lines = lines.where(~F.col("_valid") | (F.btrim(F.col(RAW), F.lit(_BLANK)) != ""))
    if source.format == "text":
        parsed = lines.withColumn("_parsed", F.struct(F.col(RAW).alias("value"), F.lit(None).alias(DEFECT), F.lit(None).alias(RESCUED)))
    elif source.format == "json":
        parsed = parse_json(lines, source)
    else:
        parsed = parse_csv(lines, source, layouts, lambda paths: _among(lines.sparkSession, paths))
    defect = F.when(~F.col("_valid"), F.lit(f"not valid {source.encoding}")).otherwise(F.col(f"_parsed.{DEFECT}"))
    columns = [F.col(f"_parsed.{quote(c)}").alias(c) for c in source.columns]
    return parsed.select(*columns, RAW, defect.alias(DEFECT), F.col(f"_parsed.{RESCUED}").cast("string").alias(RESCUED), SOURCE, "_name")


def _decode(lines: DataFrame, source: FileSource) -> DataFrame:
    """Bytes -> text; what is not valid stays as it came. Out: `_raw`, `_valid`."""
    if _is_utf8(source):
        return lines.withColumn("_valid", F.is_valid_utf8(RAW))
    lines = lines.withColumn("_text", F.decode(F.col(RAW).cast("binary"), source.encoding))
    lines = lines.withColumn("_valid", ~F.col("_text").contains("\ufffd"))
    return lines.withColumn(RAW, F.when(F.col("_valid"), F.col("_text")).otherwise(F.col(RAW)))


def _split(lines: DataFrame, source: FileSource) -> DataFrame:
    """Whole files -> records. A file that is not valid text is one record; by lines, Spark has split already (and taken the byte order mark off)."""
    if not reads_whole_files(source):
        return lines
    lines = lines.withColumn(RAW, F.when(F.col("_valid"), F.ltrim(F.col(RAW), F.lit("\ufeff"))).otherwise(F.col(RAW)))
    if not source.multi_line:
        records = F.split(RAW, "\r\n|\r|\n")
    elif source.format == "text":
        records = F.array(RAW)
    else:
        records = split_documents(RAW, "_valid") if source.format == "json" else split_records(RAW, source)
    lines = lines.withColumn(RAW, F.explode(F.when(F.col("_valid"), records).otherwise(F.array(RAW))))
    return lines.withColumn(RAW, F.coalesce(RAW, F.lit("null")))  # JSON's null among an array's elements


def _among(spark: SparkSession, paths: Iterable[str]) -> Column:
    """True for rows of some files; Spark does not open a file for which a filter on this says no."""
    return F.col(SOURCE).isin(*[uri for path in paths for uri in _spark_uris(spark, path)])


def _spark_uris(spark: SparkSession, path: str) -> list[str]:
    """A path as `_metadata.file_path` may write it: Java's escaping; a local file as `file:/x` or `file:///x`, depending on who listed it."""
    uri = spark._jvm.org.apache.hadoop.fs.Path(path).toUri().toString()
    return [uri] if "://" in uri else ["file:" + uri, "file://" + uri]
