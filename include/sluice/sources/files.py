"""Files of a folder as a source: listed by us, read by Spark, each by its own columns; a file that nobody can read is one quarantined record."""

import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ..backlog import LandedFile, is_hidden, list_files, source_root
from ..checkpoint import Checkpoint
from ..errors import SpecError, TransientError
from ..spark.columns import DEFECT, RAW, RESCUED, SOURCE, col
from ..spark.failure import UnplannedFiles, UnreadableFile
from ..spec import FileSource
from ..storage import is_remote, open_path
from .intake import BatchInput, Intake
from .parse.embedded import read_embedded
from .parse.headers import NOT_UNPACKED, why_unpackable
from .parse.layouts import EMBEDDED, Layout, find_layouts, has_layouts, reads_whole_files
from .parse.text_records import parse_text, split_text

KEPT_BYTES = 64 * 10**6
"""Size of a batch's files up to which its parsed rows are kept in memory between the passes (survey, quarantine, MERGE, conflicts)."""
_FOR_EVER = "3650000d"  # Spark otherwise never reads a file much older than the newest it has seen, whose clock may have been a century ahead


class FileIntake(Intake):
    """Files that wait in a folder. `path`, `pattern`: narrower than the source's, for a backfill."""

    def __init__(
        self,
        source: FileSource,
        files: list[LandedFile],
        path: str | None = None,
        pattern: str | None = None,
    ) -> None:
        super().__init__(source)
        self.path, self.pattern, self.unreadable = path, pattern, {}
        self._expect(files)

    def _expect(self, files: list[LandedFile]) -> None:
        self.files, self.sizes = files, {f.path: f.size for f in files}

    @property
    def total(self) -> int:
        """Bytes."""
        return sum(self.sizes.values())

    def open(self, spark: SparkSession) -> DataFrame:
        """Every record of every file. Raises SpecError for an encoding Java does not know, SourceError where files contradict the schema."""
        layouts = find_layouts(self.files, self.source)
        self.warnings = _drift_warnings(layouts, self.source)
        return _open_stream(spark, self.source, layouts, self.unreadable, self.path, self.pattern)

    def inspect(self, checkpoint: Checkpoint, batch: int) -> BatchInput:
        """The files of a planned batch. Raises UnplannedFiles for one whose columns were not known when the stream was built."""
        paths = [f.path for f in checkpoint.batch_files(batch)]
        unplanned = [path for path in paths if path not in self.sizes and not _is_hidden(path)]
        if unplanned and has_layouts(self.source):
            raise UnplannedFiles(unplanned)
        size = sum(self.sizes.get(path, 0) for path in paths)
        return BatchInput(
            amount=size,
            files=len(paths),
            bytes=size,
            names=tuple(paths),
            scan=self._scan,
            lost=self._unreadable_among(paths),
            small=0 < size <= KEPT_BYTES,
        )

    @property
    def _scan(self) -> Literal["exact", "at least", "unknown"]:
        """A line of text may be blank, a header or a comment; a whole file may hold many records."""
        if self.source.format in EMBEDDED:
            return "exact"
        return "unknown" if reads_whole_files(self.source) else "at least"

    def _unreadable_among(self, paths: list[str]) -> dict[str, str]:
        """Files that cannot be read, and why: those a reader failed on, those it finds no rows in, and those deleted since they were listed."""
        found = {path: why for path, why in self.unreadable.items() if path in paths}
        if self.source.format not in EMBEDDED:
            found |= {
                path: why
                for path in paths
                if path not in found and not _is_hidden(path) and (why := why_unpackable(path))
            }
        # A hidden name is gone as soon as its writer gives it the real one; it was no record anyway.
        named = [path for path in paths if path not in found and not _is_hidden(path)]
        with ThreadPoolExecutor(16) as pool:
            there = list(
                pool.map(
                    lambda path: (
                        open_path(path).exists() if is_remote(path) else os.path.exists(path)
                    ),
                    named,
                )
            )
        gone = [path for path, exists in zip(named, there, strict=True) if not exists]
        return found | dict.fromkeys(gone, "the file was deleted between listing and reading")

    def absorb(self, error: Exception) -> None:
        """Leave out a file that no reader can read; expect one that landed meanwhile."""
        if isinstance(error, UnreadableFile):
            if error.path in self.unreadable:
                raise TransientError(
                    error.why,
                    where=error.path,
                    do="Move the file out of the landing folder if it stays so",
                ) from None
            self.unreadable[error.path] = error.why
        elif isinstance(error, UnplannedFiles):
            listed = {f.path: f for f in list_files(self.source)}
            self._expect(
                [*self.files, *(listed.get(path, LandedFile(path, 0, 0.0)) for path in error.paths)]
            )
        else:
            raise error


def _is_hidden(path: str) -> bool:
    return is_hidden(path.rsplit("/", 1)[-1])


def _drift_warnings(layouts: dict[Layout, list[str]], source: FileSource) -> list[str]:
    """What changed in the headers: columns that are absent read as NULL, unknown ones are rescued."""
    warnings = []
    for layout, paths in layouts.items():
        for names, verdict in (
            (layout.missing(source.columns), "lack and read as NULL"),
            (layout.unknown, "have beside the schema"),
        ):
            if names:
                shown = ", ".join(n if len(n) <= 80 else n[:80] + "…" for n in names[:20]) + (
                    f" and {len(names) - 20} more" if len(names) > 20 else ""
                )
                warnings.append(
                    f"columns that {len(paths)} file(s) {verdict}: {shown} (first: {paths[0].rsplit('/', 1)[-1]})"
                )
    return warnings


def _reader_options(source: FileSource, pattern: str | None = None) -> dict[str, str]:
    """Options of the file stream; ours win where the meaning of a run hangs on them."""
    ours = {"recursiveFileLookup": "true", "pathGlobFilter": pattern or source.pattern}
    if source.max_files_per_batch:
        ours["maxFilesPerTrigger"] = str(source.max_files_per_batch)
    if source.max_bytes_per_batch:
        ours["maxBytesPerTrigger"] = str(source.max_bytes_per_batch)
    if source.format not in EMBEDDED:
        ours["wholetext"] = str(reads_whole_files(source)).lower()
    return {"maxFileAge": _FOR_EVER, **source.options, **ours}


def _open_stream(
    spark: SparkSession,
    source: FileSource,
    layouts: dict[Layout, list[str]],
    without: Iterable[str] = (),
    path: str | None = None,
    pattern: str | None = None,
) -> DataFrame:
    """The unbounded frame of a file source.

    Args: layouts: the columns of the waiting files. without: files no reader can read. path, pattern: narrower than the source's, for a backfill.
    Raises SpecError for an encoding Java does not know.
    """
    if not spark._jvm.java.nio.charset.Charset.isSupported(source.encoding):
        raise SpecError(
            "no such encoding",
            where="source.encoding",
            value=source.encoding,
            do="Write UTF-8, ISO-8859-1, windows-1252 or UTF-16",
        )
    reader = spark.readStream.options(**_reader_options(source, pattern))
    location = path or source_root(source)
    metadata = [
        F.col("_metadata.file_path").alias(SOURCE),
        F.col("_metadata.file_name").alias("_name"),
    ]
    wanted = ~_among(spark, without) if without else F.lit(True)
    if source.format in EMBEDDED:
        frame = read_embedded(spark, reader, location, source, layouts, metadata).where(wanted)
    else:
        lines = reader.format("text").load(location).select(F.col("value").alias(RAW), *metadata)
        frame = parse_text(
            split_text(lines.where(wanted), source),
            source,
            layouts,
            lambda paths: _among(spark, paths),
            SOURCE,
            "_name",
        )
    if source.format not in EMBEDDED:
        frame = frame.where(
            ~F.lower("_name").rlike(rf"({'|'.join(map(re.escape, NOT_UNPACKED))})$")
        )
    visible = ~(
        F.col("_name").startswith("_")
        | F.col("_name").startswith(".")
        | F.col("_name").endswith(".tmp")
        | F.col("_name").endswith("._COPYING_")
    )
    return frame.where(visible).select(
        *[col(c) for c in source.columns], RAW, DEFECT, RESCUED, SOURCE
    )


def _among(spark: SparkSession, paths: Iterable[str]) -> Column:
    """True for rows of some files; Spark does not open a file for which a filter on this says no."""
    return F.col(SOURCE).isin(*[uri for path in paths for uri in _spark_uris(spark, path)])


def _spark_uris(spark: SparkSession, path: str) -> list[str]:
    """A path as `_metadata.file_path` may write it: Java's escaping; a local file as `file:/x` or `file:///x`, depending on who listed it."""
    uri = spark._jvm.org.apache.hadoop.fs.Path(path).toUri().toString()
    return [uri] if "://" in uri else ["file:" + uri, "file://" + uri]
