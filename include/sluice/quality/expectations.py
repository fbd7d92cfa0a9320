"""Table-level rules: evaluated by Great Expectations itself on a frame, in one validation."""

import importlib
import logging
import os
import threading
import warnings
from collections.abc import Iterator, Set
from contextlib import contextmanager
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from ..errors import SpecError
from ..report.model import RuleResult
from ..spec import RuleSpec
from .literals import in_utc
from .names import check_type, rule_name
from .table_result import failure, read_result, tell, wants_samples

_SAMPLES = 5
_COUNTS_ONLY = {"result_format": "BASIC", "partial_unexpected_count": 0}
"""As cheap as BOOLEAN_ONLY (asking for zero values runs no job), and it says what was seen."""
_WITH_SAMPLES = {"result_format": "BASIC", "partial_unexpected_count": _SAMPLES}
_ALONE = threading.Lock()
"""Great Expectations has one context, and logging one set of levels, for the whole process."""
_LOUD = ("great_expectations", "DataFrameQueryContextLogger", "py4j")


def import_in_background() -> threading.Thread:
    """Start importing Great Expectations (4 CPU-seconds) while the JVM starts.

    An import that fails is reported by the rules that need it.
    """
    thread = threading.Thread(target=_import, name="import-great-expectations", daemon=True)
    thread.start()
    return thread


def _import() -> None:
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    importlib.import_module("great_expectations.expectations")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what libraries log about a rule out of the run's log: the rule's result says it. Steps
    that run at once take turns."""
    with _ALONE, warnings.catch_warnings():
        levels = {name: logging.getLogger(name).level for name in _LOUD}
        warnings.simplefilter("ignore")
        for name in _LOUD:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            for name, level in levels.items():
                logging.getLogger(name).setLevel(level)


def check_expectations(rules: list[RuleSpec]) -> None:
    """Raise SpecError for the first table-level rule whose kwargs are refused.

    Imports Great Expectations; runs no job.
    """
    _import()
    with _quiet():
        for rule in rules:
            _build(rule, 0)


def validate_table(
    frame: DataFrame, rules: list[RuleSpec], hide: Set[str] = frozenset()
) -> list[RuleResult]:
    """Evaluate table-level rules on a frame, in the order given.

    A rule that could not be evaluated is an error, never a pass. What is cached is released again.

    Args:
        frame: the rows.
        rules: the table-level ones.
        hide: columns whose values are neither sampled nor observed.
    """
    if not rules:
        return []
    results: dict[int, RuleResult] = {}
    try:
        _import()
    except ImportError as error:
        return [failure(rule, f"Great Expectations cannot be imported: {error}") for rule in rules]
    expectations: dict[int, Any] = {}
    with _quiet():
        for number, rule in enumerate(rules):
            try:
                expectations[number] = _build(rule, number)
            except SpecError as error:
                results[number] = failure(rule, str(error))
        with cached(frame):
            found = _validate(frame, expectations, _COUNTS_ONLY)
            again = {
                n: expectations[n]
                for n, result in found.items()
                if wants_samples(rules[n], result, hide)
            }
            found |= _validate(frame, again, _WITH_SAMPLES)
    for number in expectations:
        results[number] = read_result(rules[number], found[number], hide)
    return [results[number] for number in range(len(rules))]


@contextmanager
def cached(frame: DataFrame) -> Iterator[None]:
    """Hold a frame in memory while several jobs read it, unless its owner does so already."""
    if frame.storageLevel != StorageLevel.NONE:
        yield
        return
    frame.persist()
    try:
        yield
    finally:
        frame.unpersist()


def _build(rule: RuleSpec, number: int) -> Any:
    """The expectation of a rule. Raises SpecError.

    Its `number` comes back with its result, because results come back in another order.
    """
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    check_type(rule)
    try:
        return ExpectationConfiguration(
            type=rule.type, kwargs=in_utc(rule.kwargs), meta={"rule": number}
        ).to_domain_obj()
    except Exception as error:  # noqa: BLE001 - its pydantic may raise anything
        reason = "; ".join(line.strip() for line in str(error).splitlines()[1:]) or str(error)
        raise SpecError(
            f"Great Expectations refuses the kwargs: {reason}",
            where=f"rule {rule_name(rule)}",
            value=rule.kwargs,
            do=f"Its documentation of {rule.type} names them",
        ) from None


def _validate(
    frame: DataFrame, expectations: dict[int, Any], result_format: dict
) -> dict[int, Any]:
    """One validation. Number -> its result, or the error that kept all from being evaluated."""
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
        )  # it would never unpersist; `cached` does
        batch = (
            source.add_dataframe_asset("rows")
            .add_batch_definition_whole_dataframe("all")
            .get_batch({"dataframe": frame})
        )
        suite = gx.ExpectationSuite(name="rules", expectations=list(expectations.values()))
        results: list[Any] = batch.validate(suite, result_format=result_format).results
        found = {result.expectation_config.meta["rule"]: result for result in results}
    except Exception as error:  # noqa: BLE001 - an outcome of its own
        return dict.fromkeys(expectations, tell(error))
    return {
        number: found.get(number, "Great Expectations returned no result")
        for number in expectations
    }
