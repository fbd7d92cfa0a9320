"""Spark's settings under which rows would be lost or miscounted without a word."""

from collections.abc import Iterable

from .model import FieldError

_ASYNC = (
    "Spark then notes progress behind the batches' backs, so that several batches may come again "
    "after a kill, and refuses it under availableNow"
)
_PASSED_OVER = "what cannot be read is then passed over without a word, and not counted"
_UNCHECKED = "Spark then starts queries whose results are wrong"

REFUSED = {
    "spark.sql.files.ignorecorruptfiles": _PASSED_OVER,
    "spark.sql.files.ignoremissingfiles": _PASSED_OVER,
    "spark.sql.streaming.unsupportedoperationcheck": _UNCHECKED,
    "spark.sql.streaming.statefuloperator.checkcorrectness.enabled": _UNCHECKED,
    "spark.sql.streaming.multiplewatermarkpolicy": "write `watermark_policy` at the step, which "
    "the report knows as well",
}
"""Setting in lower case -> why a pipeline cannot have it."""


def why_refused(name: str) -> str:
    """Why a setting, or an option of a stream, cannot be; empty for one that can."""
    lower = name.lower()
    return _ASYNC if "asyncprogresstracking" in lower else REFUSED.get(lower, "")


def check_settings(names: Iterable[str]) -> None:
    """Raise FieldError for a setting that a pipeline cannot have, or that Spark does not know for
    one of its own."""
    for name in names:
        if why := why_refused(name):
            raise FieldError(f"Spark's {name} breaks a promise: {why}; leave it out", name)
        if not name.startswith("spark."):
            raise FieldError(
                f"{name} is no setting of Spark's, which would pass over it; write each in a line "
                "by its whole name: `spark.executor.memory: 4g`",
                name,
            )
