"""What Spark's failures mean for a user: which file, is it worth another try, what to do."""

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException

from ..checkpoint import normalize_uri
from ..errors import (
    PreflightError,
    SinkError,
    SluiceError,
    SourceError,
    SpecError,
    TransientError,
)
from .fault import MAY_PASS, Fault, read_fault, sql_message
from .function_failure import explain_function
from .kafka_failure import explain_kafka

SPARK_FAILED = (PySparkException, Py4JJavaError)
"""What a call into Spark raises, except for a JVM that is gone."""


_CHANGED = re.compile(r"\[DELTA_SOURCE_(?:TABLE_IGNORE_CHANGES|IGNORE_DELETE)\] ([^.\n]*)")
_OTHER_TABLE = re.compile(
    r"DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE|DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE"
    r"|DELTA_MISSING_CHANGE_DATA|DELTA_MISSING_FILES_UNEXPECTED_VERSION"
    r"|DELTA_VERSIONS_NOT_CONTIGUOUS|DELTA_TRUNCATED_TRANSACTION_LOG"
)
_STATE_CHANGED = re.compile(
    r"STATE_STORE_(?:(?:KEY|VALUE)_(?:SCHEMA_NOT_COMPATIBLE|ROW_FORMAT_VALIDATION_FAILURE)"
    r"|INVALID_VALUE_SCHEMA_EVOLUTION|INVALID_VARIABLE_TYPE_CHANGE|INVALID_CONFIG_AFTER_RESTART"
    r"|COLUMN_FAMILY_SCHEMA_INCOMPATIBLE)|STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"
)
_REFUSED = ("0A", "21", "42")
"""Classes of SQLSTATE: not supported, cardinality, what a name or a type forbids."""
_PASSES = {"DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS"}
"""Refusals that a second try does not meet."""
_GONE = re.compile(r"FILE_NOT_EXIST|FileNotFoundException|does not exist")
_STORE = re.compile(r"software\.amazon\.awssdk|fs\.s3a\.AWS|SdkClientException|S3Exception")
"""What S3's client raises for anything but an absent object: never the file's own fault."""
_FILE = re.compile(
    r"(?:while reading file|File|reading file:?)"
    r"\s+((?:file|s3a|hdfs|abfss?|gs):[^\s]+?)[.,]?(?:\s|$)"
)


class UnreadableFile(Exception):
    """Raised when a reader failed on a file that trying again cannot mend."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path, self.why = path, why


class ChangedTable(Exception):
    """Raised when a source table got other columns in the middle of the stream.

    The stream has noted them and goes on when it is built again.
    """


class UnplannedFiles(Exception):
    """Raised for a batch with files that landed after the columns of the waiting files were read.

    It matters only where the plan depends on these columns.
    """

    def __init__(self, paths: list[str]) -> None:
        super().__init__(", ".join(paths))
        self.paths = paths


def explain_delivery(error: Exception, where: str) -> SluiceError:
    """One of our errors for one of Spark's.

    Terminal where Spark was asked for something that it cannot do, else worth another try.
    """
    if isinstance(error, AnalysisException):
        return SpecError(
            f"Spark cannot write the batch: {sql_message(error)}",
            where=where,
            do="Mend the sink's options, or cast the column in the transform",
        )
    fault = read_fault(error)
    if fault.is_about_rows and not _is_user_code(fault):
        return _explain_value(fault, where)
    if isinstance(error, IllegalArgumentException):
        return SpecError(
            f"Spark cannot write the batch: {fault.sentence}",
            where=where,
            do="Mend the sink's options, or cast the column in the transform",
        )
    return TransientError(
        f"the batch could not be written: {fault.sentence}",
        where=where,
        do="Run again: what the batch left is completed or removed",
    )


def explain(error: Exception, own_state: bool = False) -> Exception:
    """Turn a failure of Spark into one of ours: which file, whether to try again, one sentence.

    Args: own_state: the query keeps a state of the user's own, whose functions see the same rows
    and the same state however often a batch comes.
    """
    if not isinstance(error, PySparkException | Py4JJavaError):
        return error
    text, fault = str(error), read_fault(error)
    named = _FILE.search(text)
    if "DELTA_STREAMING_METADATA_EVOLUTION" in text:
        return ChangedTable()
    if "CSV_HEADER" in text or "CSV header does not conform" in text:
        return SourceError(
            "a CSV header does not match the schema",
            where=named[1] if named else "",
            value=fault.sentence[:200],
            do="Mend the header or the schema",
        )
    if named and ("FAILED_READ_FILE" in text or _GONE.search(text)):
        return _explain_file(normalize_uri(named[1]), text, fault.sentence)
    if "No space left on device" in fault.sentence:
        return TransientError(
            f"the disk is full: {fault.sentence}",
            do="Make room where the tables lie and in Spark's local folders (`spark.local.dir`; by "
            "default those for temporary files), or lower `max_bytes_per_batch`. Then run again",
        )
    return (
        explain_kafka(text)
        or (explain_function(text, fault) if own_state else None)
        or _explain_table(text, fault)
        or _explain_for_good(error, fault)
        or TransientError(
            f"Spark failed: {fault.sentence}",
            do="Run again; if it fails the same way, `sluice report` and the task's log have the "
            "rest",
        )
    )


def _explain_table(text: str, fault: Fault) -> SluiceError | None:
    """The error for what Delta says of a source table; None where it is about something else."""
    if changed := _CHANGED.search(text):
        return SourceError(
            "rows of the source table were changed or removed, and a stream of rows cannot say so",
            where="source",
            value=changed[1][:200],
            do="To lose nothing read the table anew: move this step's checkpoint away (without "
            "`dedup` its table as well), and run again. `skip_change_commits: true` goes on behind "
            "such commits, without the rows that they insert",
        )
    if _OTHER_TABLE.search(text):
        return SourceError(
            "the source is not what was read before: the table was made anew, or commits that were "
            "not read yet are cleaned from its log",
            where="source",
            value=fault.sentence[:200],
            do="Put the table back that was read, or read this one: move this step's checkpoint "
            "away (without `dedup` its table as well, or its rows come twice), and run again",
        )
    return None


def _explain_for_good(error: Exception, fault: Fault) -> SluiceError | None:
    """The error for what comes again however often the batch does; None for what may pass."""
    if _STATE_CHANGED.search(fault.condition):
        return PreflightError(
            "the state that this step keeps was written by another version of its transform",
            where="checkpoint",
            value=fault.condition,
            do="Put the transform back as it was, or give the step a new name: it then begins "
            "with a checkpoint and a table of its own",
        )
    if fault.is_about_rows:
        return None if _is_user_code(fault) else _explain_value(fault, "")
    refused = isinstance(error, AnalysisException) or fault.state.startswith(_REFUSED)
    if not refused or fault.condition in _PASSES:
        return None
    said = sql_message(error) if isinstance(error, AnalysisException) else fault.sentence
    return SpecError(
        f"Spark cannot do what the step asks for: {said}",
        do="Mend the columns, the keys or the transform that it names; "
        "`sluice validate --spark` checks most of it without data",
    )


def _explain_value(fault: Fault, where: str) -> SluiceError:
    """The error for a value that is refused whenever it comes; the value stays where it is."""
    if "CONSTRAINT" in fault.condition:
        return SinkError(
            f"the table refuses a row: {fault.sentence}",
            where=where,
            do="Write the same as a rule with `on_fail: quarantine`, or change the constraint",
        )
    return SpecError(
        f"a row has a value that cannot be computed: {fault.sentence}",
        where=where,
        do="Let the transform expect it: `try_cast`, `try_divide`, or a WHERE that leaves it out",
    )


def _is_user_code(fault: Fault) -> bool:
    """True for what the user's Python or Java raised: it may have asked a server that is away."""
    return fault.state.startswith(("38", "39")) or fault.condition == "PYTHON_EXCEPTION"


def _explain_file(path: str, text: str, cause: str) -> Exception:
    """What to make of a reader's failure on one file.

    It is left out, or the run stops until a person or time has mended it.
    """
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
        r"TYPE_MISMATCH|SchemaColumnConvertNotSupported|CONVERT_DATA_TYPE|IncompatibleSchema"
        r"|Cannot convert Avro|SchemaEvolution",
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
    if MAY_PASS.search(cause):
        return TransientError(
            f"a file could not be read this time: {cause[:300]}", where=path, do="Run again"
        )
    return UnreadableFile(path, f"cannot be read: {cause[:200]}")
