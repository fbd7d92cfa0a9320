"""Runs one query until the backlog is gone, its end has come or the time is up."""

import re
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Lock

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from ..backlog import normalize_uri
from ..errors import SourceError, TransientError
from ..spec import AVAILABLE_NOW, Trigger
from .jvm import JVM_GONE
from .kafka_failure import explain_kafka
from .transform import sql_message
from .trigger import trigger_options

_MAY_PASS = re.compile(
    r"OutOfMemory|No space left|Too many open files|Input/output error|Stale file handle|Connect|Socket|SSL|UnknownHost|[Tt]imed ?out|Timeout|Interrupted"
    r"|Broken pipe|SlowDown|Throttl|Service Unavailable|InternalError|[Ss]tatus code: 5",
)
"""What a reader says when the machine or the network failed, not the file."""
_GONE = re.compile(r"FILE_NOT_EXIST|FileNotFoundException|does not exist")
_STORE = re.compile(r"software\.amazon\.awssdk|fs\.s3a\.AWS|SdkClientException|S3Exception")
"""What S3's client raises for anything but an absent object: never the file's own fault."""
_FILE = re.compile(r"(?:while reading file|File|reading file:?)\s+((?:file|s3a|hdfs|abfss?|gs):[^\s]+?)[.,]?(?:\s|$)")


class OutOfTime(Exception):
    """Raised between two batches when the run's time budget is spent."""


class UnreadableFile(Exception):
    """Raised when a reader failed on a file that trying again cannot mend."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path, self.why = path, why


class ChangedTable(Exception):
    """Raised when a source table got other columns in the middle of the stream, which now has noted them: it goes on when it is built again."""


class UnplannedFiles(Exception):
    """Raised for a batch with files that landed after the columns of the waiting files were read, where the plan depends on them."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(", ".join(paths))
        self.paths = paths


class _Batches:
    """Calls `process` with each batch until `last`, a `time.monotonic()`; knows whether one is on its way."""

    def __init__(self, process: Callable[[DataFrame, int], None], last: float) -> None:
        self.process, self.last = process, last
        self.failures: list[Exception] = []
        self._lock, self._running, self._newest = Lock(), False, -1

    def __call__(self, frame: DataFrame, batch: int) -> None:
        try:
            with self._lock:  # who asks after `last` either sees this batch or keeps it from starting
                if time.monotonic() > self.last:
                    raise OutOfTime
                self._newest, self._running = batch, True
            self.process(frame, batch)
        except Exception as error:  # some of the JVM's come as py4j's own error
            self.failures.append(error)
            raise
        finally:
            self._running = False

    def are_settled(self, query: StreamingQuery) -> bool:
        """True when no batch is in work and Spark has committed the newest: its progress is told after that."""
        with self._lock:
            running = self._running
        return not running and (self._newest < 0 or (query.lastProgress or {"batchId": -1})["batchId"] >= self._newest)


def drain(stream: DataFrame, checkpoint: str, process: Callable[[DataFrame, int], None], deadline: float, raise_if_lost: Callable[[], None] = lambda: None,
          grace: float = 120.0, trigger: Trigger = AVAILABLE_NOW, end: float | None = None, mode: str = "append") -> bool:
    """Run a stream until its query ends by itself, or between two batches at `end`; returns whether it ended by itself.

    Args: checkpoint: folder of Spark's checkpoint. process: called with each batch and its id. deadline, end: by `time.monotonic()`; no batch starts after
    either, and one that then runs longer than `grace` seconds more is cut off and comes again. raise_if_lost: asked every second. mode: append or update.
    Raises OutOfTime at the deadline (unless that is `end`), UnreadableFile and what `process` raised.
    """
    last = deadline if end is None else min(end, deadline)
    batches = _Batches(process, last)
    query = stream.writeStream.foreachBatch(batches).outputMode(mode).option("checkpointLocation", checkpoint).trigger(**trigger_options(trigger)).start()
    try:
        while not query.awaitTermination(1 if end is None else min(1.0, max(0.1, last - time.monotonic()))):
            raise_if_lost()
            over = time.monotonic() - last
            if over > grace:
                raise OutOfTime
            if end is not None and over > 0 and batches.are_settled(query):
                return False
        return True
    except PySparkException as error:
        first = batches.failures[-1] if batches.failures else error
        if isinstance(first, OutOfTime) and end is not None:
            return False
        raise explain(first) from None
    except JVM_GONE as error:
        raise TransientError("the JVM ended in the middle of the run, most often for want of memory",
                             do="Raise `spark.driver.memory` under `spark:`, or lower `max_bytes_per_batch`") from error
    finally:
        _stop(query)


def _stop(query: StreamingQuery) -> None:
    with suppress(*JVM_GONE):
        if query.isActive:
            query.stop()


def explain(error: Exception) -> Exception:
    """Turn a failure of Spark into one of ours: which file, is it worth another try, one sentence."""
    if not isinstance(error, PySparkException | Py4JJavaError):
        return error
    text = str(error)
    causes = re.findall(r"(?:Caused by: |^)([\w.$]+(?:Exception|Error)[^\n]*)", text, re.MULTILINE)
    cause = causes[-1].strip() if causes else sql_message(error)
    named = _FILE.search(text)
    if "DELTA_STREAMING_METADATA_EVOLUTION" in text:
        return ChangedTable()
    if changed := re.search(r"\[DELTA_SOURCE_(?:TABLE_IGNORE_CHANGES|IGNORE_DELETE)\] ([^.\n]*)", text):
        return SourceError("rows of the source table were changed or removed, and a stream of rows cannot say so", where="source", value=changed[1][:200],
                           do="Write `skip_change_commits: true` to pass over such commits, or `change_feed: true` to read them as changes")
    if "CSV_HEADER" in text or "CSV header does not conform" in text:
        return SourceError("a CSV header does not match the schema", where=named[1] if named else "", value=cause[:200], do="Mend the header or the schema")
    if named and ("FAILED_READ_FILE" in text or _GONE.search(text)):
        return _explain_file(normalize_uri(named[1]), text, cause)
    if "No space left on device" in cause:
        return TransientError(f"the disk is full: {cause[:400]}", do="Make room, then run again: the batch comes again as it is")
    return explain_kafka(text) or TransientError(f"Spark failed: {cause[:400]}", do="Run again; if it fails the same way, `sluice report` and the task's log have the rest")


def _explain_file(path: str, text: str, cause: str) -> Exception:
    """What to make of a reader's failure on one file: leave the file out, or stop until a person or time has mended it."""
    if "Permission denied" in text or "AccessDeniedException" in text:
        return SourceError("a file cannot be read", where=path, value="permission denied", do="Give the user that runs the pipeline read access")
    if _GONE.search(text):
        return UnreadableFile(path, "the file was deleted between listing and reading")
    if _STORE.search(text):
        return TransientError(f"a file could not be read this time: {cause[:300]}", where=path, do="Run again")
    if re.search(r"TYPE_MISMATCH|SchemaColumnConvertNotSupported|CONVERT_DATA_TYPE|IncompatibleSchema|Cannot convert Avro|SchemaEvolution", text):
        return SourceError("a file's column has another type than the schema says", where=path, value=cause[:200],
                           do="Mend the schema, or move the file out of the landing folder")
    if re.search(r"duplicate field", text):
        return SourceError("a file has two columns whose names differ only in case", where=path, value=cause[:200], do="Move the file out of the landing folder")
    if _MAY_PASS.search(cause):
        return TransientError(f"a file could not be read this time: {cause[:300]}", where=path, do="Run again")
    return UnreadableFile(path, f"cannot be read: {cause[:200]}")
