"""The unbounded frame of a landing folder: what Spark is told to read, and how its bytes become
rows."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ..errors import SpecError
from ..spark.columns import DEFECT, RAW, RESCUED, SOURCE, col
from ..spark.jvm import java_uri, jvm_of
from ..spec import FileSource
from .parse.embedded import read_embedded
from .parse.headers import NOT_UNPACKED
from .parse.layouts import EMBEDDED, Layout, reads_whole_files
from .parse.partitions import read_partitions
from .parse.text_records import parse_text, split_text

_FOR_EVER = "3650000d"
"""Spark otherwise never reads a file much older than the newest it has seen, whose clock may have
been a century ahead."""


@dataclass(frozen=True)
class Place:
    """What Spark lists: a path, which may hold globs, and the glob of the names there."""

    path: str
    pattern: str


def _reader_options(source: FileSource, pattern: str) -> dict[str, str]:
    """Options of the file stream; ours win where the meaning of a run hangs on them."""
    ours = {"recursiveFileLookup": "true", "pathGlobFilter": pattern}
    if source.max_files_per_batch:
        ours["maxFilesPerTrigger"] = str(source.max_files_per_batch)
    if source.max_bytes_per_batch:
        ours["maxBytesPerTrigger"] = str(source.max_bytes_per_batch)
    if source.latest_first:
        ours["latestFirst"] = "true"
    if source.format not in EMBEDDED:
        ours["wholetext"] = str(reads_whole_files(source)).lower()
    return {"maxFileAge": _FOR_EVER, **source.options, **ours}


def open_stream(
    spark: SparkSession,
    source: FileSource,
    layouts: dict[Layout, list[str]],
    without: Iterable[str],
    place: Place,
) -> DataFrame:
    """The unbounded frame of a file source.

    Args: layouts: the columns of the waiting files. without: files no reader can read. Raises
    SpecError for an encoding Java does not know.
    """
    if not jvm_of(spark).java.nio.charset.Charset.isSupported(source.encoding):
        raise SpecError(
            "no such encoding",
            where="source.encoding",
            value=source.encoding,
            do="Write UTF-8, ISO-8859-1, windows-1252 or UTF-16",
        )
    reader = spark.readStream.options(**_reader_options(source, place.pattern))
    metadata = [
        F.col("_metadata.file_path").alias(SOURCE),
        F.col("_metadata.file_name").alias("_name"),
    ]
    wanted = ~_among(spark, without) if without else F.lit(True)
    if source.format in EMBEDDED:
        frame = read_embedded(spark, reader, place.path, source, layouts, metadata).where(wanted)
    else:
        lines = reader.format("text").load(place.path)
        lines = lines.select(F.col("value").alias(RAW), *metadata).where(wanted)
        frame = parse_text(
            split_text(lines, source),
            source,
            layouts,
            lambda paths: _among(spark, paths),
            SOURCE,
            "_name",
        ).where(~_is_packed())
    frame = frame.where(_is_visible())
    if source.partition_columns:
        frame = read_partitions(frame, source)
    return frame.select(*[col(c) for c in source.declared], RAW, DEFECT, RESCUED, SOURCE)


def _is_packed() -> Column:
    """True for rows of files that are packed in a way that Spark does not unpack."""
    # Asked of each row: the last letter first, which costs next to nothing. Not by `lower`: its
    # first use in a JVM makes Spark ask ICU for the title case of every character there is, which
    # is 1 CPU-second and 3.5 GB of garbage.
    name = F.col("_name")
    last = {letter for end in NOT_UNPACKED for letter in (end[-1].lower(), end[-1].upper())}
    may_be = reduce(Column.__or__, [name.endswith(letter) for letter in sorted(last)])
    return may_be & name.rlike(rf"(?i)({'|'.join(map(re.escape, NOT_UNPACKED))})$")


def _is_visible() -> Column:
    """False for rows of files that are hidden or still being written."""
    name = F.col("_name")
    hidden = name.startswith("_") | name.startswith(".")
    return ~(hidden | name.endswith(".tmp") | name.endswith("._COPYING_"))


def _among(spark: SparkSession, paths: Iterable[str]) -> Column:
    """True for rows of some files; Spark does not open a file for which a filter on this says
    no."""
    return F.col(SOURCE).isin(*[uri for path in paths for uri in _spark_uris(spark, path)])


def _spark_uris(spark: SparkSession, path: str) -> list[str]:
    """A path as `_metadata.file_path` may write it: Java's escaping; a local file as `file:/x` or
    `file:///x`, depending on who listed it."""
    uri = java_uri(spark, path)
    return [uri] if "://" in uri else ["file:" + uri, "file://" + uri]
