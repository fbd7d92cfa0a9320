"""Runs one query until the backlog is gone or the time is up."""

import re
import time
from collections.abc import Callable

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from ..backlog import normalize_uri
from ..errors import SluiceError, SourceError, TransientError
from .transform import sql_message

_CORRUPT = re.compile(
    r"EOFException|ZipException|Unexpected end of|not in gzip format|incorrect (?:header|data) check|is not a Parquet file|bad block header|invalid block type"
    r"|Invalid (?:code|stored|distance|literal|bit)|[Cc]orrupt|Malformed ORC|not a data file|Unknown frame descriptor|stream end|crc error|Not a valid|Truncated",
)
_GONE = re.compile(r"FILE_NOT_EXIST|FileNotFoundException|does not exist")
_FILE = re.compile(r"(?:while reading file|File|reading file:?)\s+((?:file|s3a|hdfs|abfss?|gs):[^\s]+?)[.,]?(?:\s|$)")


class OutOfTime(Exception):
    """Raised between two batches when the run's time budget is spent."""


class UnreadableFile(Exception):
    """Raised when a reader failed on a file that trying again cannot mend."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path, self.why = path, why


def drain(stream: DataFrame, checkpoint: str, process: Callable[[DataFrame, int], None], deadline: float, grace: float = 120.0) -> list[dict]:
    """Run a stream with `availableNow` until its backlog is gone.

    Args: checkpoint: folder of Spark's checkpoint. process: called with each batch and its id. deadline: `time.monotonic()` after which no batch starts;
    a batch that then runs longer than `grace` seconds more is cut off and comes again. Returns Spark's progress events.
    Raises OutOfTime, UnreadableFile and what `process` raised.
    """
    failures: list[Exception] = []

    def guarded(frame: DataFrame, batch: int) -> None:
        try:
            if time.monotonic() > deadline:
                raise OutOfTime
            process(frame, batch)
        except (SluiceError, OutOfTime, PySparkException) as error:
            failures.append(error)
            raise

    query = stream.writeStream.foreachBatch(guarded).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    try:
        if not query.awaitTermination(max(1.0, deadline + grace - time.monotonic())):
            raise OutOfTime
        return [dict(progress) for progress in query.recentProgress]
    except PySparkException as error:
        raise explain(failures[-1] if failures else error) from None
    finally:
        _stop(query)


def _stop(query: StreamingQuery) -> None:
    if query.isActive:
        query.stop()


def explain(error: Exception) -> Exception:
    """Turn a failure of Spark into one of ours: which file, is it worth another try, one sentence."""
    if isinstance(error, SluiceError | OutOfTime):
        return error
    text = str(error)
    causes = re.findall(r"(?:Caused by: |^)([\w.$]+(?:Exception|Error)[^\n]*)", text, re.MULTILINE)
    cause = causes[-1].strip() if causes else sql_message(error)
    named = _FILE.search(text)
    if "CSV_HEADER" in text or "CSV header does not conform" in text:
        return SourceError("a CSV header does not match the schema", where=named[1] if named else "", value=cause[:200], do="Mend the header or the schema")
    if named and ("FAILED_READ_FILE" in text or _GONE.search(text)):
        path = normalize_uri(named[1])
        if _GONE.search(text) and "Permission denied" not in text:
            return UnreadableFile(path, "the file was deleted between listing and reading")
        if _CORRUPT.search(text):
            return UnreadableFile(path, f"cannot be read: {cause[:200]}")
        if "Permission denied" in text:
            return SourceError("a file cannot be read", where=path, value="permission denied", do="Give the user that runs the pipeline read access")
        if "TYPE_MISMATCH" in text or "SchemaColumnConvertNotSupported" in text or "CONVERT_DATA_TYPE" in text:
            return SourceError("a file's column has another type than the schema says", where=path, value=cause[:200], do="Mend the schema, or move the file out of the landing folder")
    return TransientError(f"Spark failed: {cause[:400]}", do="If it fails the same way again, `sluice report` and the task's log have the rest")
