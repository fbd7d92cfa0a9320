"""What a failure of Spark becomes: a sentence without a value of a row.

And the right answer to whether a second try helps.
"""

import pytest
from pyspark.errors import AnalysisException, PySparkException
from sluice.errors import PreflightError, SinkError, SpecError, TransientError
from sluice.spark.failure import explain, explain_delivery
from sluice.spark.fault import read_fault, sql_message

STREAM = (
    "[STREAM_FAILED] Query [id = e661223e-43cb, runId = c25b9049-b365] terminated with exception: "
)
TAIL = (
    " SQLSTATE: XXKST\n=== Streaming Query ===\nIdentifier: [id = e661223e]\nLogical Plan:\nWrite"
)
STACK = "\n\tat org.apache.spark.scheduler.Task.run(Task.scala:147)\n"
CAST = (
    '[CAST_INVALID_INPUT] The value \'123-45-6789\' of the type "STRING" cannot be cast to "INT" '
    "because it is malformed. "
    "Correct the value as per the syntax, or change its target type. SQLSTATE: 22018\n"
    "== SQL (line 2, position 3) ==\n  CAST(ssn AS INT) AS ssn,\n  ^^^^^^^^^^^^^^^^\n"
)
PYTHON = (
    "[PYTHON_EXCEPTION] An exception was thrown from the Python worker: "
    "Traceback (most recent call last):\n"
    '  File "/pipelines/clean.py", line 17, in number\n    return int(ssn)\n           ^^^^^^^^\n'
    "ValueError: invalid literal for int() with base 10: '123-45-6789'\n SQLSTATE: 38000"
)
WRITE = (
    "An error occurred while calling o144.save.\n: org.apache.spark.SparkException: "
    "[TASK_WRITE_FAILED] Task failed while writing rows "
    f"to file:/tables/t. SQLSTATE: 58030{STACK}Caused by: "
)
TOLD = {
    "cast": (STREAM + CAST + TAIL, "CAST_INVALID_INPUT in CAST(ssn AS INT)"),
    "cast in a batch": (CAST, "CAST_INVALID_INPUT in CAST(ssn AS INT)"),
    "cast while writing": (
        f"{WRITE}org.apache.spark.SparkNumberFormatException: {CAST}{STACK}",
        "CAST_INVALID_INPUT in CAST(ssn AS INT)",
    ),
    "cast by a frame": (
        CAST.partition("== SQL")[0]
        + '== DataFrame ==\n"cast" was called from\n/pipelines/clean.py:34\n',
        "CAST_INVALID_INPUT in cast (clean.py:34)",
    ),
    "overflow": (
        '[CAST_OVERFLOW] The value 123456789L of the type "BIGINT" cannot be cast to "TINYINT". '
        "SQLSTATE: 22003",
        "CAST_OVERFLOW",
    ),
    "raised": (
        "[USER_RAISED_EXCEPTION] bad 123-45-6789 SQLSTATE: P0001\n== SQL (line 1, position 8) ==\n"
        "SELECT raise_error(concat('bad ', ssn)) FROM source\n"
        "       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n",
        "USER_RAISED_EXCEPTION in raise_error(concat('bad ', ssn))",
    ),
    "python": (STREAM + PYTHON + TAIL, "ValueError in number (clean.py:17)"),
    "python over an RDD": (
        "Job aborted: Lost task 0.0 (host executor driver): "
        "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        '  File "/pipelines/write.py", line 4, in process\n    send(row)\n'
        f"OSError: no answer for 123-45-6789\n{STACK}",
        "OSError in process (write.py:4)",
    ),
    "constraint": (
        f"{WRITE}org.apache.spark.sql.delta.schema.DeltaInvariantViolationException: "
        "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK "
        "constraint short (length(ssn) < 9) violated by row with values:\n"
        f" - ssn : 123-45-6789{STACK}",
        "CHECK constraint short (length(ssn) < 9)",
    ),
    "java": (
        "Job aborted: Lost task 0.0 (host executor driver): "
        f"java.time.format.DateTimeParseException: Text '123-45-6789' is no date{STACK}",
        "java.time.format.DateTimeParseException (its text may quote a row: it is in the log)",
    ),
    "function of java": (
        "[FAILED_EXECUTE_UDF] User defined function failed due to: "
        f'java.lang.NumberFormatException: For input string: "123-45-6789". SQLSTATE: 39000{STACK}',
        "FAILED_EXECUTE_UDF",
    ),
}


@pytest.mark.parametrize(("text", "told"), TOLD.values(), ids=TOLD)
def test_of_a_value_that_fails_the_place_is_told_and_the_value_is_not(text, told):
    assert read_fault(PySparkException(text)).sentence == told
    for error in (explain(PySparkException(text)), explain_delivery(PySparkException(text), "s")):
        assert told in str(error)
        assert "123" not in str(error)


@pytest.mark.parametrize("name", ["cast", "overflow", "raised"])
def test_a_value_that_cannot_be_computed_is_no_reason_to_try_again(name):
    error = explain(PySparkException(TOLD[name][0]))
    assert (type(error), "`try_cast`" in str(error)) == (SpecError, True)
    assert type(explain_delivery(PySparkException(TOLD[name][0]), "sink")) is SpecError


def test_a_row_that_breaks_a_constraint_of_the_table_is_no_reason_to_try_again():
    assert type(explain(PySparkException(TOLD["constraint"][0]))) is SinkError


@pytest.mark.parametrize("name", ["python", "function of java", "java"])
def test_what_the_users_own_code_raised_may_pass(name):
    assert type(explain(PySparkException(TOLD[name][0]))) is TransientError


@pytest.mark.parametrize(
    "text",
    [
        "java.io.IOException: No space left on device",
        "java.net.ConnectException: Connection refused: 10.0.0.7:9000",
        "org.apache.hadoop.fs.s3a.AWSStatus500Exception: Status Code: 500, Request ID: 4711",
        "java.lang.OutOfMemoryError: Java heap space",
    ],
)
def test_what_the_machine_or_the_network_says_is_told_and_tried_again(text):
    error = explain(PySparkException(f"{WRITE}{text}{STACK}"))
    assert (type(error), text in str(error)) == (TransientError, True)


@pytest.mark.parametrize(
    "error",
    [
        AnalysisException(
            "[UNSUPPORTED_FEATURE.SET_OPERATION_ON_MAP_TYPE] The feature is not supported: "
            "Cannot have MAP type columns in DataFrame "
            "which calls set operations (INTERSECT, EXCEPT, etc.), but the type of column `m` is "
            '"MAP<INT, INT>". SQLSTATE: 0A000;\nDeduplicate [m#753]'
        ),
        AnalysisException("[DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE] Cannot resolve `m` = `m`"),
        PySparkException(
            f"{STREAM}[UNSUPPORTED_FEATURE.SET_OPERATION_ON_MAP_TYPE] "
            f"Cannot have MAP type columns. SQLSTATE: 0A000{TAIL}"
        ),
        PySparkException(
            f"{STREAM}[UNRESOLVED_COLUMN.WITH_SUGGESTION] "
            f"A column `m` cannot be resolved. SQLSTATE: 42703{TAIL}"
        ),
    ],
)
def test_what_spark_cannot_do_at_all_is_terminal_and_says_what(error):
    explained = explain(error)
    assert type(explained) is SpecError
    assert "`m`" in str(explained) or "MAP type" in str(explained)
    assert "Deduplicate" not in str(explained) and "sluice validate" in str(explained)


@pytest.mark.parametrize(
    "condition",
    [
        "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
        "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
        "STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION",
        "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
    ],
)
def test_a_state_of_another_shape_is_terminal_and_says_what_to_do(condition):
    text = (
        f"{STREAM}[{condition}] Provided key schema does not match existing state key schema.\n"
        f"SQLSTATE: XXKST{TAIL}"
    )
    error = explain(PySparkException(text))
    assert type(error) is PreflightError
    assert condition in str(error) and "a new name" in str(error)


def test_a_schema_that_changed_while_the_batch_was_planned_may_pass():
    error = AnalysisException("[DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS] The schema has changed")
    assert type(explain(error)) is TransientError


class _DeltaError(PySparkException):
    """PySpark knows the sentences of Spark's own conditions only."""

    def getMessage(self) -> str:
        raise ValueError("Cannot find main error class 'DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES'")


def test_the_sentence_of_a_condition_of_deltas_own_is_told():
    said = (
        "[DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES] "
        "Found invalid character(s) among ' ,;{}()' in the column names"
    )
    assert sql_message(_DeltaError(f"{said}\n; line 1 pos 0")) == said
