"""What Spark's failures mean for a user: which file, is it worth another try, what to do."""

import re
from contextlib import suppress

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException

from ..checkpoint import normalize_uri
from ..errors import SluiceError, SourceError, SpecError, TransientError
from .kafka_failure import explain_kafka

SPARK_FAILED = (PySparkException, Py4JJavaError)
"""What a call into Spark raises, except for a JVM that is gone."""


_MAY_PASS = re.compile(
    r"OutOfMemory|No space left|Too many open files|Input/output error|Stale file handle|Connect|Socket|SSL|UnknownHost|[Tt]imed ?out|Timeout|Interrupted"
    r"|Broken pipe|SlowDown|Throttl|Service Unavailable|InternalError|[Ss]tatus code: 5",
)
"""What a reader says when the machine or the network failed, not the file."""
_GONE = re.compile(r"FILE_NOT_EXIST|FileNotFoundException|does not exist")
_STORE = re.compile(r"software\.amazon\.awssdk|fs\.s3a\.AWS|SdkClientException|S3Exception")
"""What S3's client raises for anything but an absent object: never the file's own fault."""
_FILE = re.compile(
    r"(?:while reading file|File|reading file:?)\s+((?:file|s3a|hdfs|abfss?|gs):[^\s]+?)[.,]?(?:\s|$)"
)


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


def sql_message(error: Exception) -> str:
    """The first line of a Spark error: the sentence, without plan and Java stack.

    Delta's error classes are not in Spark's own list, so PySpark's `getMessage` may itself fail ("Cannot find main error class"): then Java's text is the sentence.
    """
    text = str(error)
    if isinstance(error, PySparkException):
        with suppress(Exception):
            text = error.getMessage() or text
    return " ".join(text.split("\n\nJVM")[0].split("; line")[0].split("\n;")[0].split())[:500]


def root_cause(error: Exception) -> str:
    """The innermost sentence of a Java error, or Spark's own."""
    causes = re.findall(
        r"(?:Caused by: |^: )([\w.$]+(?:Exception|Error)[^\n]*)", str(error), re.MULTILINE
    )
    return (causes[-1].strip() if causes else sql_message(error))[:400]


def explain_delivery(error: Exception, where: str) -> SluiceError:
    """One of our errors for one of Spark's: terminal where Spark says that it was asked for something it cannot do, else worth another try."""
    if isinstance(error, AnalysisException | IllegalArgumentException):
        return SpecError(
            f"Spark cannot write the batch: {sql_message(error)}",
            where=where,
            do="Mend the sink's options, or cast the column in the transform",
        )
    return TransientError(
        f"the batch could not be written: {root_cause(error)}",
        where=where,
        do="Run again: what the batch left is completed or removed",
    )


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
    if changed := re.search(
        r"\[DELTA_SOURCE_(?:TABLE_IGNORE_CHANGES|IGNORE_DELETE)\] ([^.\n]*)", text
    ):
        return SourceError(
            "rows of the source table were changed or removed, and a stream of rows cannot say so",
            where="source",
            value=changed[1][:200],
            do="Write `skip_change_commits: true` to pass over such commits, or `change_feed: true` to read them as changes",
        )
    if "CSV_HEADER" in text or "CSV header does not conform" in text:
        return SourceError(
            "a CSV header does not match the schema",
            where=named[1] if named else "",
            value=cause[:200],
            do="Mend the header or the schema",
        )
    if named and ("FAILED_READ_FILE" in text or _GONE.search(text)):
        return _explain_file(normalize_uri(named[1]), text, cause)
    if "No space left on device" in cause:
        return TransientError(
            f"the disk is full: {cause[:400]}",
            do="Make room, then run again: the batch comes again as it is",
        )
    return explain_kafka(text) or TransientError(
        f"Spark failed: {cause[:400]}",
        do="Run again; if it fails the same way, `sluice report` and the task's log have the rest",
    )


def _explain_file(path: str, text: str, cause: str) -> Exception:
    """What to make of a reader's failure on one file: leave the file out, or stop until a person or time has mended it."""
    if "Permission denied" in text or "AccessDeniedException" in text:
        return SourceError(
            "a file cannot be read",
            where=path,
            value="permission denied",
            do="Give the user that runs the pipeline read access",
        )
    if _GONE.search(text):
        return UnreadableFile(path, "the file was deleted between listing and reading")
    if _STORE.search(text):
        return TransientError(
            f"a file could not be read this time: {cause[:300]}", where=path, do="Run again"
        )
    if re.search(
        r"TYPE_MISMATCH|SchemaColumnConvertNotSupported|CONVERT_DATA_TYPE|IncompatibleSchema|Cannot convert Avro|SchemaEvolution",
        text,
    ):
        return SourceError(
            "a file's column has another type than the schema says",
            where=path,
            value=cause[:200],
            do="Mend the schema, or move the file out of the landing folder",
        )
    if re.search(r"duplicate field", text):
        return SourceError(
            "a file has two columns whose names differ only in case",
            where=path,
            value=cause[:200],
            do="Move the file out of the landing folder",
        )
    if _MAY_PASS.search(cause):
        return TransientError(
            f"a file could not be read this time: {cause[:300]}", where=path, do="Run again"
        )
    return UnreadableFile(path, f"cannot be read: {cause[:200]}")
