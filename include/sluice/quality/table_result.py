"""What Great Expectations found, as a result of a rule without values that must not be shown."""

from collections.abc import Set
from typing import Any

from ..report.model import Outcome, RuleResult
from ..spark.fault import read_fault
from ..spec import RuleSpec, rule_columns
from .names import rule_name

_HIDDEN = "hidden: the rule names a column marked pii"


def read_result(rule: RuleSpec, result: Any, hide: Set[str]) -> RuleResult:
    """What one expectation found, without values that must not be shown."""
    hidden, error = _reveals(rule, hide), _error_of(result)
    if error is not None:
        return failure(
            rule, f"Great Expectations could not evaluate it ({_HIDDEN})" if hidden else error
        )
    detail = result.result
    counted = "unexpected_count" in detail and "element_count" in detail
    evaluated = detail["element_count"] - (detail.get("missing_count") or 0) if counted else None
    unexpected = (detail["unexpected_count"] or 0) if counted else None
    observed = (
        str(detail["observed_value"])[:300]
        if detail.get("observed_value") is not None
        else f"{unexpected} of {evaluated} unexpected"
        if counted
        else None
    )
    samples = [str(value)[:80] for value in detail.get("partial_unexpected_list") or []]
    return RuleResult(
        name=rule_name(rule),
        type=rule.type,
        level="table",
        on_fail=rule.on_fail,
        outcome=Outcome.PASSED if result.success else Outcome.FAILED,
        evaluated=evaluated,
        unexpected=unexpected,
        observed=_HIDDEN if hidden and not counted else observed,
        samples=[] if hidden else samples,
    )


def wants_samples(rule: RuleSpec, result: Any, hide: Set[str]) -> bool:
    """True for a rule that failed on rows of which some may be shown."""
    return (
        _error_of(result) is None
        and not result.success
        and "unexpected_count" in result.result
        and not _reveals(rule, hide)
    )


def _reveals(rule: RuleSpec, hide: Set[str]) -> bool:
    """True when values of hidden columns might show.

    The rule names one, or reads the table by a query of its own.
    """
    return bool(hide) and (bool(hide & set(rule_columns(rule))) or "query" in rule.type)


def _error_of(result: Any) -> str | None:
    """Why a rule could not be evaluated; None when it was."""
    if isinstance(result, str):
        return result
    info = result.exception_info or {}
    entries = [info] if "raised_exception" in info else list(info.values())
    raised = [
        entry for entry in entries if isinstance(entry, dict) and entry.get("raised_exception")
    ]
    return tell(raised[0].get("exception_message") or "unknown error") if raised else None


def tell(error: object) -> str:
    """Why, in a line that quotes no value: the job of a rule computes whole rows."""
    raised = error if isinstance(error, Exception) else Exception(error)
    return read_fault(raised).sentence[:300] or type(error).__name__


def idle(rule: RuleSpec) -> RuleResult:
    """The result of a rule that no row came to."""
    return RuleResult(
        name=rule_name(rule),
        type=rule.type,
        level="table",
        on_fail=rule.on_fail,
        outcome=Outcome.PASSED,
        evaluated=0,
        unexpected=0,
    )


def failure(rule: RuleSpec, message: str) -> RuleResult:
    """The result of a rule that could not be evaluated."""
    return RuleResult(
        name=rule_name(rule),
        type=rule.type,
        level="table",
        on_fail=rule.on_fail,
        outcome=Outcome.ERROR,
        message=message,
    )
