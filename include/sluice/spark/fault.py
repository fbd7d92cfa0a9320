"""Reads what Spark says of a failure: its sentence, its SQLSTATE, the place in the user's text.

What was raised while rows were computed may quote a value (`The value '123-45-6789' ... cannot be
cast`), and what is said here ends in reports and in the scheduler. So of such a failure its name
and its place are told, and what it says is not.
"""

import re
from contextlib import suppress
from dataclasses import dataclass

from pyspark.errors import PySparkException

_ABOUT_ROWS = ("22", "23", "38", "39", "P0")
"""Classes of SQLSTATE: data, constraints, the user's functions, `raise_error`."""
_ABOUT_SETTINGS = {"INVALID_CONF_VALUE", "NULL_DATA_SOURCE_OPTION", "INVALID_TIMEZONE"}
"""Conditions of these classes that speak of what a person configured."""
_WRAPPERS = {"STREAM_FAILED", "TASK_WRITE_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR"}
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:\.[A-Z0-9_]+)*)\] ")
_STATE = re.compile(r"SQLSTATE: (\w{5})")
_CAUSE = re.compile(r"(?:Caused by: |^: |^)((?:[a-z]\w*\.)+[\w$]*(?:Exception|Error)\b)", re.M)
_THROWN = re.compile(r"((?:[a-z]\w*\.)+[A-Z][\w$]*(?:Exception|Error))(?=:|$)", re.M)
_MACHINE = re.compile(
    r"(?:java\.(?:io|nio|net|util\.concurrent)|javax\.net"
    r"|org\.apache\.(?:hadoop|kafka|parquet|orc|avro|spark)"
    r"|com\.github\.luben\.zstd|io\.delta|software\.amazon|com\.amazonaws|org\.rocksdb|py4j)\."
    r"|java\.lang\.(?:OutOfMemory|StackOverflow|Interrupted|NoClassDefFound|NoSuchMethod"
    r"|ClassNotFound|UnsatisfiedLink)"
)
"""Classes that speak of files, networks and the machine; the text of any other may hold a value."""
MAY_PASS = re.compile(
    r"OutOfMemory|No space left|Too many open files|Input/output error|Stale file handle|Connect"
    r"|Socket|SSL|UnknownHost|[Tt]imed ?out|Timeout|Interrupted"
    r"|Broken pipe|SlowDown|Throttl|Service Unavailable|InternalError|[Ss]tatus code: 5",
)
"""What a reader says when the machine or the network failed, not the file."""
_QUERY = re.compile(r"== SQL[^\n]*==\n(.*?)(?=\n\s*\n|\n SQLSTATE|\n\tat |\Z)", re.DOTALL)
_PLAN = re.compile(r"\n\nJVM|; line|\n;|;\n")
"""Where a sentence ends and the plan that it is about begins."""
_CALLED = re.compile(r'== DataFrame ==\n"(\w+)" was called from\n\s*(\S+)')
PYTHON = re.compile(r"thrown from the Python worker|api\.python\.PythonException")
"""Said of whatever came out of Python on a worker."""
"""Said of whatever came out of Python on a worker."""
_FRAME = re.compile(r'^ +File "([^"]+)", line (\d+), in (\S+)', re.M)
_RAISED = re.compile(r"(?:\n +.*)*\n([\w.]+)")
"""What follows a frame: its code, the frames that it called, and what was raised."""
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/pyspark\.zip/|/lib/python3")
_CONSTRAINT = re.compile(
    r"((?:CHECK|NOT NULL) constraint [^\n]*?) violated(?: by row|( for column: \S+))"
)


@dataclass(frozen=True)
class Fault:
    """What Spark says of a failure."""

    condition: str
    """The name that Spark or Delta gives it; empty when it has none."""
    state: str
    """Its SQLSTATE; empty when it is not told."""
    sentence: str
    """One sentence without a value of a row."""

    @property
    def is_about_rows(self) -> bool:
        """True where a value of a row is what could not be computed or written."""
        return _is_about_rows(self.condition, self.state)


def sql_message(error: Exception) -> str:
    """The first line of an error raised before any row was read: without plan and Java stack.

    Delta's error classes are not in Spark's own list, so PySpark's `getMessage` may itself fail
    ("Cannot class"): then Java's text is the sentence.
    """
    text = str(error)
    if isinstance(error, PySparkException):
        with suppress(Exception):
            text = error.getMessage() or text
    return " ".join(_PLAN.split(text, maxsplit=1)[0].split())[:500]


def read_fault(error: Exception) -> Fault:
    """What Spark says of a failure at run time, of its innermost cause."""
    text = str(error).partition("\n=== Streaming Query ===")[0]
    cause = _innermost(text)
    condition, state = _find_condition(cause)
    if not condition:
        condition, state = _find_condition(text)
    if _is_about_rows(condition, state) or PYTHON.search(text):
        return Fault(condition or "PYTHON_EXCEPTION", state, _without_values(text, condition))
    thrown = _THROWN.match(cause)
    if thrown and not _MACHINE.match(thrown[1]):
        return Fault(condition, state, f"{thrown[1]} (its text may quote a row: it is in the log)")
    said = sql_message(error) if cause == text else " ".join(cause.split())
    return Fault(condition, state, said.split(" SQLSTATE: ")[0][:400])


def _innermost(text: str) -> str:
    """The innermost cause without its stack; the whole text where no class is named."""
    causes = list(_CAUSE.finditer(text))
    cause = text[causes[-1].start(1) :].partition("\n\tat ")[0] if causes else text
    thrown = list(_THROWN.finditer(cause))
    return cause[thrown[-1].start() :] if thrown else cause


def _find_condition(text: str) -> tuple[str, str]:
    """The last condition that is no wrapper, and its SQLSTATE."""
    found = [match for match in _CONDITION.finditer(text) if match[1] not in _WRAPPERS]
    if not found:
        return "", ""
    state = _STATE.search(text, found[-1].end())
    return found[-1][1], state[1] if state else ""


def _is_about_rows(condition: str, state: str) -> bool:
    if condition in _ABOUT_SETTINGS:
        return False
    return state.startswith(_ABOUT_ROWS) or "CONSTRAINT" in condition


def _without_values(text: str, condition: str) -> str:
    """The condition and the place in the user's own text."""
    if violated := _CONSTRAINT.search(text):
        return f"{violated[1]}{violated[2] or ''}"
    if told := _tell_frame(text, condition):
        return told
    if called := _CALLED.search(text):
        return f"{condition} in {called[1]} ({called[2].rpartition('/')[2]})"
    fragment = _fragment(text)
    return f"{condition} in {fragment}" if fragment else condition


def _tell_frame(text: str, condition: str) -> str:
    """What was raised, and the last place in the user's own Python that it came through; empty
    where no Python is named, and where PySpark itself has a name for it."""
    frames = list(_FRAME.finditer(text))
    own = [frame for frame in frames if not _LIBRARY.search(frame[1])]
    if not frames or (condition and not own):
        return ""
    file, line, function = (own or frames)[-1].groups()
    raised = _RAISED.match(text, frames[-1].end())
    what = raised[1] if raised else "an error"
    return f"{what} in {function} ({file.rpartition('/')[2]}:{line})"


def _fragment(text: str) -> str:
    """What Spark underlines of the user's SQL."""
    query = _QUERY.search(text)
    if query is None:
        return ""
    lines = query[1].split("\n")
    marked = [
        above[len(below) - len(below.lstrip()) : len(below.rstrip())]
        for above, below in zip(lines, lines[1:], strict=False)
        if below.strip() and not below.strip(" ^")
    ]
    return " ".join(" ".join(marked).split())[:160]
