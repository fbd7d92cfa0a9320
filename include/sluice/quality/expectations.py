"""Table-level rules: evaluated by Great Expectations itself on a frame, in one validation."""

import importlib
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from ..errors import SpecError
from ..report.model import Outcome, RuleResult
from ..spark.fault import read_fault
from ..spec import RuleSpec, rule_columns
from .literals import in_utc
from .names import check_type, rule_name

_SAMPLES = 5
_COUNTS_ONLY = {"result_format": "BASIC", "partial_unexpected_count": 0}
"""As cheap as BOOLEAN_ONLY (asking for zero values runs no job), and it still says what was observed."""
_WITH_SAMPLES = {"result_format": "BASIC", "partial_unexpected_count": _SAMPLES}
_LOUD = ("great_expectations", "DataFrameQueryContextLogger", "py4j")
_HIDDEN = "hidden: the rule names a column marked pii"


def import_in_background() -> threading.Thread:
    """Start importing Great Expectations (4 CPU-seconds) while the JVM starts. An import that fails is reported by the rules that need it."""
    thread = threading.Thread(target=_import, name="import-great-expectations", daemon=True)
    thread.start()
    return thread


def _import() -> None:
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    importlib.import_module("great_expectations.expectations")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what Great Expectations and Spark log about a rule out of the run's log: the rule's result says it."""
    levels = {name: logging.getLogger(name).level for name in _LOUD}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in _LOUD:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            for name, level in levels.items():
                logging.getLogger(name).setLevel(level)


def check_expectations(rules: list[RuleSpec]) -> None:
    """Raise SpecError for the first table-level rule whose kwargs Great Expectations refuses. Imports it; runs no job."""
    _import()
    with _quiet():
        for rule in rules:
            _build(rule, 0)


def validate_table(
    frame: DataFrame, rules: list[RuleSpec], hide: set[str] = frozenset()
) -> list[RuleResult]:
    """Evaluate table-level rules on a frame, in the order given; a rule that could not be evaluated is an error, never a pass.

    Args: hide: columns whose values are neither sampled nor observed. What is cached for it is released again.
    """
    if not rules:
        return []
    results: dict[int, RuleResult] = {}
    try:
        _import()
    except ImportError as error:
        return [_failure(rule, f"Great Expectations cannot be imported: {error}") for rule in rules]
    expectations: dict[int, object] = {}
    with _quiet():
        for number, rule in enumerate(rules):
            try:
                expectations[number] = _build(rule, number)
            except SpecError as error:
                results[number] = _failure(rule, str(error))
        with _cached(frame):
            found = _validate(frame, expectations, _COUNTS_ONLY)
            again = {
                n: expectations[n]
                for n, result in found.items()
                if _wants_samples(rules[n], result, hide)
            }
            found |= _validate(frame, again, _WITH_SAMPLES)
    for number in expectations:
        results[number] = _result(rules[number], found[number], hide)
    return [results[number] for number in range(len(rules))]


@contextmanager
def _cached(frame: DataFrame) -> Iterator[None]:
    """Hold a frame in memory while several jobs read it, unless its owner does so already."""
    if frame.storageLevel != StorageLevel.NONE:
        yield
        return
    frame.persist()
    try:
        yield
    finally:
        frame.unpersist()


def _build(rule: RuleSpec, number: int) -> object:
    """The expectation of a rule; `number` comes back with its result, because results come back in another order. Raises SpecError."""
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    check_type(rule)
    try:
        return ExpectationConfiguration(
            type=rule.type, kwargs=in_utc(rule.kwargs), meta={"rule": number}
        ).to_domain_obj()
    except Exception as error:  # noqa: BLE001 - whatever its pydantic raises is an error in the rule
        reason = "; ".join(line.strip() for line in str(error).splitlines()[1:]) or str(error)
        raise SpecError(
            f"Great Expectations refuses the kwargs: {reason}",
            where=f"rule {rule_name(rule)}",
            value=rule.kwargs,
            do=f"Its documentation of {rule.type} names them",
        ) from None


def _validate(
    frame: DataFrame, expectations: dict[int, object], result_format: dict
) -> dict[int, object]:
    """One validation. Number -> its result, or the text of the error that kept all of them from being evaluated."""
    if not expectations:
        return {}
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    try:
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(
            globally=False, metric_calculations=False
        )
        source = context.data_sources.add_spark(
            "run", persist=False
        )  # it would never unpersist; `_cached` does
        batch = (
            source.add_dataframe_asset("rows")
            .add_batch_definition_whole_dataframe("all")
            .get_batch({"dataframe": frame})
        )
        suite = gx.ExpectationSuite(name="rules", expectations=list(expectations.values()))
        found = {
            result.expectation_config.meta["rule"]: result
            for result in batch.validate(suite, result_format=result_format).results
        }
    except Exception as error:  # noqa: BLE001 - a rule that could not be evaluated is an outcome of its own
        return dict.fromkeys(expectations, _first_line(error))
    return {
        number: found.get(number, "Great Expectations returned no result")
        for number in expectations
    }


def _error_of(result: object) -> str | None:
    """Why a rule could not be evaluated; None when it was."""
    if isinstance(result, str):
        return result
    info = result.exception_info or {}
    entries = [info] if "raised_exception" in info else list(info.values())
    raised = [
        entry for entry in entries if isinstance(entry, dict) and entry.get("raised_exception")
    ]
    return _first_line(raised[0].get("exception_message") or "unknown error") if raised else None


def _first_line(error: object) -> str:
    """Why, in a line that quotes no value: a job of a rule computes the whole row, not only the columns that the rule names."""
    raised = error if isinstance(error, Exception) else Exception(error)
    return read_fault(raised).sentence[:300] or type(error).__name__


def _reveals(rule: RuleSpec, hide: set[str]) -> bool:
    """True when values of hidden columns might show: the rule names one, or reads the table by a query of its own."""
    return bool(hide) and (bool(hide & set(rule_columns(rule))) or "query" in rule.type)


def _wants_samples(rule: RuleSpec, result: object, hide: set[str]) -> bool:
    return (
        _error_of(result) is None
        and not result.success
        and "unexpected_count" in result.result
        and not _reveals(rule, hide)
    )


def _result(rule: RuleSpec, result: object, hide: set[str]) -> RuleResult:
    """What one expectation found, without values that must not be shown."""
    hidden, error = _reveals(rule, hide), _error_of(result)
    if error is not None:
        return _failure(
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


def _failure(rule: RuleSpec, message: str) -> RuleResult:
    return RuleResult(
        name=rule_name(rule),
        type=rule.type,
        level="table",
        on_fail=rule.on_fail,
        outcome=Outcome.ERROR,
        message=message,
    )
