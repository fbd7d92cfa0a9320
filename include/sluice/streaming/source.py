"""Opens the stream: every record of every file, with its raw text where the format has one.

Out: the schema's columns and `_raw`, `_defect`, `_rescued`, `_source`.
"""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ..backlog import source_root
from ..spec import FileSource
from .columns import DEFECT, RAW, RESCUED, SOURCE, col, quote
from .layouts import Layout

_TEXT_FORMATS = ("json", "csv", "text")
_READER_ONLY = {"linesep", "compression", "modifiedafter", "modifiedbefore", "maxfileage", "latestfirst", "basepath"}
_BLANK = " \t\r\n"
_FOR_EVER = "36500d"  # Spark otherwise never reads a file much older than the newest one it has seen


def reader_options(source: FileSource, pattern: str | None = None) -> dict[str, str]:
    """Options of the file stream; ours win where the meaning of a run hangs on them."""
    ours = {"recursiveFileLookup": "true", "pathGlobFilter": pattern or source.pattern}
    if source.max_files_per_batch:
        ours["maxFilesPerTrigger"] = str(source.max_files_per_batch)
    if source.max_bytes_per_batch:
        ours["maxBytesPerTrigger"] = str(source.max_bytes_per_batch)
    if source.format in _TEXT_FORMATS and not _native_csv(source):
        ours["wholetext"] = str(source.format == "json" and source.multi_line).lower()
        if source.encoding.upper() not in ("UTF-8", "UTF8"):
            ours |= {"encoding": source.encoding, "lineSep": source.options.get("lineSep", "\n")}
    return {"maxFileAge": _FOR_EVER, **source.options, **ours}


def _native_csv(source: FileSource) -> bool:
    return source.format == "csv" and source.multi_line


def schema_ddl(columns: dict[str, str], *, corrupt: bool = False) -> str:
    """`a` bigint, `b` string [, `_defect` string]."""
    fields = [f"{quote(name)} {type_}" for name, type_ in columns.items()]
    return ", ".join(fields + ([f"{DEFECT} string"] if corrupt else []))


def open_stream(spark: SparkSession, source: FileSource, layouts: dict[Layout, list[str]], without: Iterable[str] = (),
                path: str | None = None, pattern: str | None = None) -> DataFrame:
    """The unbounded frame of a file source.

    Args: layouts: CSV headers. without: files no reader can read. path, pattern: narrower than the source's, for a backfill.
    """
    reader = spark.readStream.options(**reader_options(source, pattern))
    location = path or source_root(source)
    metadata = [F.col("_metadata.file_path").alias(SOURCE), F.col("_metadata.file_name").alias("_name")]
    if _native_csv(source):
        reader = reader.options(header=source.header, multiLine=True, enforceSchema=False, mode="PERMISSIVE", columnNameOfCorruptRecord=DEFECT)
        frame = reader.schema(schema_ddl(source.columns, corrupt=True)).format("csv").load(location).select("*", *metadata).where(_readable(spark, without))
        frame = frame.withColumn(RAW, F.col(DEFECT)).withColumn(DEFECT, F.when(F.col(DEFECT).isNotNull(), F.lit("not a CSV record of this schema")))
        frame = frame.withColumn(RESCUED, F.lit(None).cast("string"))
    elif source.format in _TEXT_FORMATS:
        lines = reader.format("text").load(location).select(F.col("value").alias(RAW), *metadata)
        frame = _parse_text(lines.where(_readable(spark, without)), source, layouts)
    else:
        frame = reader.schema(schema_ddl(source.columns)).format(source.format).load(location).select("*", *metadata)
        frame = frame.where(_readable(spark, without)).withColumns({RAW: F.lit(None).cast("string"), DEFECT: F.lit(None).cast("string"), RESCUED: F.lit(None).cast("string")})
    visible = ~(F.col("_name").startswith("_") | F.col("_name").startswith(".") | F.col("_name").endswith(".tmp") | F.col("_name").endswith("._COPYING_"))
    return frame.where(visible).select(*[col(c) for c in source.columns], RAW, DEFECT, RESCUED, SOURCE)


def _parse_text(lines: DataFrame, source: FileSource, layouts: dict[Layout, list[str]]) -> DataFrame:
    """Lines -> columns. Blank lines are no records; text that is not valid in its encoding is kept and marked."""
    if source.encoding.upper() not in ("UTF-8", "UTF8"):
        lines = lines.withColumn(RAW, F.decode(F.col(RAW).cast("binary"), source.encoding))
    lines = lines.withColumn("_valid", F.is_valid_utf8(RAW))
    if source.format == "json" and source.multi_line:
        lines = lines.withColumn(RAW, F.when(F.col("_valid"), F.ltrim(F.col(RAW), F.lit("\ufeff"))).otherwise(F.col(RAW)))  # by line, Hadoop does it
        elements = F.when(F.btrim(F.col(RAW), F.lit(_BLANK)).startswith("["), F.coalesce(F.from_json(RAW, "array<string>"), F.array(RAW))).otherwise(F.array(RAW))
        lines = lines.withColumn(RAW, F.explode(F.when(F.col("_valid"), elements).otherwise(F.array(RAW))))
    lines = lines.where(F.col(RAW).isNull() | ~F.col("_valid") | (F.btrim(F.col(RAW), F.lit(_BLANK)) != ""))
    if source.format == "text":
        parsed = lines.withColumn("_parsed", F.struct(F.col(RAW).alias("value"), _null().alias(DEFECT), _null().alias(RESCUED)))
    elif source.format == "json":
        parsed = _parse_json(lines, source)
    else:
        parsed = _parse_csv(lines, source, layouts)
    defect = F.when(~F.col("_valid"), F.lit(f"not valid {source.encoding}")).otherwise(F.col(f"_parsed.{DEFECT}"))
    return parsed.select(*[F.col(f"_parsed.{quote(c)}").alias(c) for c in source.columns], RAW, defect.alias(DEFECT), f"_parsed.{RESCUED}", SOURCE, "_name")


def _readable(spark: SparkSession, without: Iterable[str]) -> Column:
    """False for rows of files that are left out; Spark then does not open them."""
    return ~_among(spark, without) if without else F.lit(True)


def _null() -> Column:
    return F.lit(None).cast("string")


def _parse_json(lines: DataFrame, source: FileSource) -> DataFrame:
    """One parse into the schema; a second into names and texts finds fields nobody declared and names written twice."""
    options = {**source.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": DEFECT}
    typed = F.from_json(RAW, schema_ddl(source.columns, corrupt=True), options)
    lines = lines.withColumn("_typed", typed)
    broken = F.when(F.col(f"_typed.{DEFECT}").isNotNull() | F.col("_typed").isNull(), F.lit("not a JSON record of this schema"))
    if source.unknown_fields == "ignore":
        rescued, defect = _null(), broken
    else:
        lines = lines.withColumn("_fields", F.from_json(RAW, "map<string,string>"))
        names = F.map_keys("_fields")
        unknown = F.map_filter("_fields", lambda name, _: ~name.isin(*source.columns))
        twice = F.size(F.array_distinct(names)) < F.size(names)
        defect = F.coalesce(broken, F.when(twice, F.lit("a field is written twice")))
        rescued = F.when(defect.isNull() & (F.size(unknown) > 0), F.to_json(unknown))
    fields = [F.col(f"_typed.{quote(c)}").alias(c) for c in source.columns]
    return lines.withColumn("_parsed", F.struct(*fields, defect.alias(DEFECT), rescued.alias(RESCUED)))


def _parse_csv(lines: DataFrame, source: FileSource, layouts: dict[Layout, list[str]]) -> DataFrame:
    """Parse by the header of each row's file; the header lines themselves are no records.

    Each parse is a column of its own: taken apart in the same projection, Spark would parse once for every field.
    """
    plain = Layout("", tuple(source.columns), tuple(source.columns))
    kinds = list(layouts) if source.header and layouts else [plain]
    parsed, is_header = None, F.lit(False)
    for number, layout in enumerate(kinds):
        here = _among(lines.sparkSession, layouts[layout]) if number else F.lit(True)
        lines = lines.withColumn(f"_row_{number}", F.when(here, _csv_row(source, layout)))
        fields = _csv_struct(source, layout, f"_row_{number}")
        parsed = F.when(here, fields).otherwise(parsed) if number else fields
        is_header = F.when(here, F.col(RAW) == layout.line).otherwise(is_header) if layout.line else is_header
    return lines.where(~is_header | ~F.col("_valid")).withColumn("_parsed", parsed)


def _csv_row(source: FileSource, layout: Layout) -> Column:
    """A line parsed in the order of its file's header."""
    types = {c or f"_unknown_{i}": source.columns[c] if c else "string" for i, c in enumerate(layout.columns)}
    options = {**{k: v for k, v in source.options.items() if k.lower() not in _READER_ONLY}, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": DEFECT}
    return F.from_csv(RAW, schema_ddl(types, corrupt=True), options)


def _csv_struct(source: FileSource, layout: Layout, row: str) -> Column:
    """The columns by name, the rest of the row as JSON, and a defect when the row does not fit its header."""
    fields = [(F.col(f"{row}.{quote(c)}") if c in layout.columns else F.lit(None).cast(t)).alias(c) for c, t in source.columns.items()]
    if not any(layout.columns):
        return F.struct(*fields, F.lit("the file's first line names none of the schema's columns").alias(DEFECT), _null().alias(RESCUED))
    unknown = [F.col(f"{row}._unknown_{i}").alias(layout.names[i]) for i, c in enumerate(layout.columns) if c is None]
    rescued = F.to_json(F.struct(*unknown)) if unknown and source.unknown_fields != "ignore" else _null()
    defect = F.when(F.col(f"{row}.{DEFECT}").isNotNull(), F.lit("not a CSV record of this schema"))
    return F.struct(*fields, defect.alias(DEFECT), F.when(defect.isNull(), rescued).alias(RESCUED))


def _among(spark: SparkSession, paths: Iterable[str]) -> Column:
    """True for rows of some files."""
    return F.col(SOURCE).isin(*[uri for path in paths for uri in _spark_uris(spark, path)])


def _spark_uris(spark: SparkSession, path: str) -> list[str]:
    """A path as `_metadata.file_path` may write it: Java's escaping; a local file as `file:/x` or `file:///x`, depending on who listed it."""
    uri = spark._jvm.org.apache.hadoop.fs.Path(path).toUri().toString()
    return [uri] if "://" in uri else ["file:" + uri, "file://" + uri]
