"""Rules -> columns: row-level expectations evaluated in one pass over a batch.

Their verdicts are those that Great Expectations gives.
"""

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from ..errors import SpecError, suggest
from ..report.model import Outcome, RuleResult
from ..spec import RuleSpec
from .condition import check_condition, row_condition
from .literals import Arguments, HandToGX
from .names import check_names, check_type, rule_name
from .row_rules import DECIDED_BY_TYPE, ROW_TYPES, RowType, has_declared_type

_ANNOTATIONS = frozenset({"meta", "notes", "description", "severity"})
_CONDITION = frozenset({"row_condition", "condition_parser"})
_SHAPE_TYPES = frozenset(
    {
        "expect_column_to_exist",
        "expect_table_columns_to_match_ordered_list",
        "expect_table_columns_to_match_set",
    }
)
"""Expectations about which columns there are: naming a missing one is their point."""


@dataclass(frozen=True, eq=False)
class RowRule:
    """A row-level rule as two boolean columns, never NULL; `unexpected` implies `evaluated`."""

    name: str
    spec: RuleSpec
    evaluated: Column
    unexpected: Column
    input: str = ""
    """The input whose records it judges; empty of a rule on the rows that the step makes."""
    verdict: bool | None = None
    """The verdict where the schema alone decides it, whatever the rows."""


def compile_rules(
    rules: list[RuleSpec], fields: dict[str, DataType]
) -> tuple[list[RowRule], list[RuleSpec]]:
    """Split rules into row-level ones, compiled for these fields, and table-level ones.


    Needs an active Spark session. Raises SpecError for an unknown type, a missing column, kwargs
    that cannot work, and for `on_fail: quarantine` on a rule that is not row-level.
    """
    check_names(rules)
    compiled: list[RowRule] = []
    for_table: list[RuleSpec] = []
    for spec in rules:
        check_type(spec)
        try:
            compiled.append(_compile(spec, fields))
        except HandToGX as reason:
            if spec.on_fail == "quarantine":
                raise _not_row_level(spec, str(reason)) from None
            _check_columns(spec, fields)
            for_table.append(spec)
    return compiled, for_table


def is_table_level(rule: RuleSpec) -> bool:
    """True when a rule needs Great Expectations by its type.

    A few row-level ones need it for their kwargs, which `compile_rules` finds out.
    """
    return rule.type not in ROW_TYPES


def _compile(spec: RuleSpec, fields: dict[str, DataType]) -> RowRule:
    """One rule as columns. Raises HandToGX where only Great Expectations can evaluate it."""
    row_type = ROW_TYPES.get(spec.type)
    if row_type is None:
        raise HandToGX(f"{spec.type} looks at the whole table")
    _check_kwargs(spec, row_type)
    args = _read_arguments(spec, row_type, fields)
    expected = row_type.expected(args)
    evaluated = _evaluated(args, row_type)
    condition = row_condition(args)
    if condition is not None:
        evaluated = evaluated & condition
    # A condition that is NULL counts as expected, as in Great Expectations' own sum over Spark.
    rule = RowRule(
        rule_name(spec),
        spec,
        evaluated,
        evaluated & F.coalesce(~expected, F.lit(False)),
        verdict=_constant_verdict(args, spec),
    )
    if condition is not None:
        check_condition([rule.evaluated, rule.unexpected], args, fields)
    return rule


def _check_kwargs(spec: RuleSpec, row_type: RowType) -> None:
    where = f"rule {rule_name(spec)}"
    needed = {*row_type.columns, *row_type.required}
    known = needed | {"mostly", *row_type.optional} | _CONDITION | _ANNOTATIONS
    unknown, missing = sorted(set(spec.kwargs) - known), sorted(needed - set(spec.kwargs))
    if unknown:
        raise SpecError(
            f"{spec.type} has no kwarg {', '.join(unknown)}",
            where=where,
            do=f"It takes {', '.join(sorted(known - _ANNOTATIONS - _CONDITION))}",
        )
    if missing:
        raise SpecError(
            f"{spec.type} needs {', '.join(missing)}", where=where, do="Write it under `kwargs:`"
        )
    if any(isinstance(value, dict) and "$PARAMETER" in value for value in spec.kwargs.values()):
        raise SpecError(
            "suite parameters have no meaning here",
            where=where,
            value=spec.kwargs,
            do="Write the value itself, or ${NAME} for an environment variable",
        )
    mostly = spec.kwargs.get("mostly", 1)
    if isinstance(mostly, bool) or not isinstance(mostly, (int, float)) or not 0 <= mostly <= 1:
        raise SpecError(
            "mostly is not a share between 0 and 1",
            where=where,
            value=mostly,
            do="Write 0.95 for 95 %",
        )


def _read_arguments(spec: RuleSpec, row_type: RowType, fields: dict[str, DataType]) -> Arguments:
    names = [spec.kwargs[key] for key in row_type.columns]
    found = [_find_column(name, fields, f"rule {rule_name(spec)}") for name in names]
    return Arguments(
        [column for column, _ in found],
        names,
        [type_ for _, type_ in found],
        spec.kwargs,
        f"rule {rule_name(spec)}",
    )


def _find_column(name: object, fields: dict[str, DataType], where: str) -> tuple[Column, DataType]:
    if name not in fields:
        raise SpecError(
            "no such column",
            where=where,
            value=name,
            do=f"{suggest(str(name), fields)}There are: {', '.join(fields)}",
        )
    return F.col("`" + name.replace("`", "``") + "`"), fields[name]


def _check_columns(spec: RuleSpec, fields: dict[str, DataType]) -> None:
    """Raise SpecError when a table-level rule names a column the frame lacks."""
    if spec.type in _SHAPE_TYPES:
        return
    listed = spec.kwargs.get("column_list") or []
    for name in [
        *(spec.kwargs[key] for key in ("column", "column_A", "column_B") if key in spec.kwargs),
        *listed,
    ]:
        _find_column(name, fields, f"rule {rule_name(spec)}")


def _evaluated(args: Arguments, row_type: RowType) -> Column:
    """Which rows the expectation looks at."""
    if row_type.looks_at_null:
        return F.lit(True)
    if len(args.columns) == 1:
        return args.columns[0].isNotNull()
    first, second = (column.isNull() for column in args.columns)
    ignored = {
        "both_values_are_missing": first & second,
        "either_value_is_missing": first | second,
        "neither": F.lit(False),
    }
    policy = args.kwargs.get("ignore_row_if") or "both_values_are_missing"
    if policy not in ignored:
        raise args.refuse("unknown ignore_row_if", policy, f"Write one of {', '.join(ignored)}")
    return ~ignored[policy]


def _constant_verdict(args: Arguments, spec: RuleSpec) -> bool | None:
    return None if spec.type not in DECIDED_BY_TYPE else has_declared_type(args)


def _not_row_level(spec: RuleSpec, reason: str) -> SpecError:
    known = ", ".join(sorted(name.removeprefix("expect_") for name in ROW_TYPES))
    return SpecError(
        f"only row-level rules can quarantine, and {reason}",
        where=f"rule {rule_name(spec)}",
        value=spec.type,
        do=f"Write on_fail: warn or stop, or use a row-level type (expect_...): {known}",
    )


def row_result(rule: RowRule, evaluated: int, unexpected: int, samples: list[str]) -> RuleResult:
    """What a rule found, from its counts over a run.

    `mostly` is the least share of evaluated rows that must be as expected.
    """
    passed = rule.verdict
    if passed is None:
        passed = evaluated == 0 or (evaluated - unexpected) / evaluated >= rule.spec.kwargs.get(
            "mostly", 1
        )
    return RuleResult(
        name=rule.name,
        type=rule.spec.type,
        level="row",
        on_fail=rule.spec.on_fail,
        outcome=Outcome.PASSED if passed else Outcome.FAILED,
        evaluated=evaluated,
        unexpected=unexpected,
        samples=samples,
    )
