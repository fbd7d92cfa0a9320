"""Text records -> columns: decoded, split where a value holds several records, parsed; what does
not fit keeps its text and a defect.

In: `_raw` (bytes as text) and `_source`. Out: the schema's columns and `_raw`, `_defect`,
`_rescued`, `_source`.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...spark.columns import DEFECT, RAW, RESCUED
from ...spec import Records
from .csv_records import parse_csv, split_records
from .json_records import parse_json, split_documents
from .layouts import Layout, reads_whole_files
from .reading import Reading
from .xml_records import parse_xml, split_elements

_BLANK = " \t\r\n"
_BREAK = r"(?>\r\n|\r|\n)"
"""A line's end as a whole: half of one would otherwise do where the next line does not fit."""


def _is_utf8(source: Records) -> bool:
    return source.encoding.upper() in ("UTF-8", "UTF8")


def split_text(lines: DataFrame, source: Records) -> DataFrame:
    """Lines or whole files -> records, decoded.

    Blank ones are no records; text that is not valid in its encoding is kept and marked. Out: also
    `_valid`.
    """
    lines = _split(decode(lines, source), source)
    raw = F.col(RAW)
    # Nearly every record begins with a sign beyond the blank ones, which costs nothing to see; of
    # the others it is asked whether they are valid text.
    told = (raw >= "!") | (F.btrim(raw, F.lit(_BLANK)) != "")
    return lines.where(told | ~F.col("_valid"))


def parse_text(
    lines: DataFrame,
    source: Records,
    layouts: dict[Layout, list[str]],
    among: Callable[[list[str]], Column],
    *kept: str,
) -> DataFrame:
    """Records -> columns.

    Args: among: true for rows of some files. kept: further columns that stay.
    """
    if source.format == "text":
        nothing = F.lit(None).cast("string")
        reading = Reading(lines, [F.col(RAW).alias("value")], nothing, nothing)
    elif source.format == "json":
        reading = parse_json(lines, source)
    elif source.format == "xml":
        reading = parse_xml(lines, source)
    else:
        reading = parse_csv(lines, source, layouts, among)
    invalid = F.when(~F.col("_valid"), F.lit(f"not valid {source.encoding}"))
    return reading.records.select(
        *reading.fields,
        RAW,
        invalid.otherwise(reading.defect).alias(DEFECT),
        reading.rescued.cast("string").alias(RESCUED),
        *kept,
    )


def decode(lines: DataFrame, source: Records) -> DataFrame:
    """Bytes -> text; what is not valid stays as it came. Out: `_raw`, `_valid`."""
    if _is_utf8(source):
        return lines.withColumn("_valid", F.is_valid_utf8(RAW))
    lines = lines.withColumn("_text", F.decode(F.col(RAW).cast("binary"), source.encoding))
    lines = lines.withColumn("_valid", ~F.col("_text").contains("\ufffd"))
    return lines.withColumn(RAW, F.when(F.col("_valid"), F.col("_text")).otherwise(F.col(RAW)))


def _split(lines: DataFrame, source: Records) -> DataFrame:
    """Whole files -> records.

    A file that is not valid text is one record; by lines, Spark has split already (and taken the
    byte order mark off).
    """
    if not reads_whole_files(source):
        return lines
    lines = lines.withColumn(
        RAW, F.when(F.col("_valid"), F.ltrim(F.col(RAW), F.lit("\ufeff"))).otherwise(F.col(RAW))
    )
    if not source.spans_lines:
        records = F.split(RAW, "\r\n|\r|\n")
    elif source.record_start is not None:
        return _split_at_starts(lines, source, source.record_start)
    elif source.format == "text":
        records = F.array(RAW)
    elif source.format == "xml":
        records = split_elements(RAW, source)
    else:
        records = (
            split_documents(RAW, "_valid")
            if source.format == "json"
            else split_records(RAW, source)
        )
    lines = lines.withColumn(
        RAW, F.explode(F.when(F.col("_valid"), records).otherwise(F.array(RAW)))
    )
    return lines.withColumn(
        RAW, F.coalesce(RAW, F.lit("null"))
    )  # JSON's null among an array's elements


def _split_at_starts(lines: DataFrame, source: Records, start: str) -> DataFrame:
    """Whole files -> records whose first lines begin as `start` says.

    In UTF-8 a file that is not valid is split as well, so that only the records that are not are
    lost: as Latin-1, in which every byte is a character, and back.
    """

    def split(text: Column) -> Column:
        whole = F.regexp_replace(text, rf"{_BREAK}\z", "")
        return F.split(whole, rf"(?m){_BREAK}(?=(?:{start}))")

    broken = F.array(RAW)
    if _is_utf8(source):
        characters = F.decode(F.col(RAW).cast("binary"), "ISO-8859-1")
        broken = F.transform(
            split(characters), lambda text: F.encode(text, "ISO-8859-1").cast("string")
        )
    records = F.when(F.col("_valid"), split(F.col(RAW))).otherwise(broken)
    lines = lines.withColumn(RAW, F.explode(records))
    return lines.withColumn("_valid", F.is_valid_utf8(RAW)) if _is_utf8(source) else lines
