"""What a rule is called, and which expectation types Great Expectations has.

Known without importing it, which costs seconds.
"""

import difflib
import re
from collections import Counter

from ..errors import SpecError
from ..spec import RuleSpec, rule_columns
from ..spec.expectations import EXPECTATIONS, NOT_ON_SPARK
from .malformed import MAX_MALFORMED

RESERVED_NAMES = frozenset(
    {
        "malformed",
        "null_key",
        "null_time",
        "future_time",
        "unreadable_file",
        MAX_MALFORMED,
    }
)
"""Reasons of the quarantine table, and the limit on one of them: no rule may take them as its
name."""

_PREFIX = re.compile(
    r"^expect_(column_pair_values_|column_values_|column_|compound_columns_|multicolumn_"
    r"|select_column_values_)?(to_)?"
)


def rule_name(rule: RuleSpec) -> str:
    """The rule's own name, else its columns and the short type: `amount.be_between`."""
    if rule.name:
        return rule.name
    columns = rule_columns(rule)
    return (
        ",".join(columns) + "." + _PREFIX.sub("", rule.type)
        if columns
        else rule.type.removeprefix("expect_")
    )


def check_type(rule: RuleSpec) -> None:
    """Raise SpecError when no such expectation exists, or when it cannot run on Spark.

    The nearest names are told.
    """
    where = f"rule {rule_name(rule)}"
    if rule.type not in EXPECTATIONS:
        near = difflib.get_close_matches(rule.type, EXPECTATIONS, n=3, cutoff=0.5)
        raise SpecError(
            "Great Expectations has no such expectation",
            where=where,
            value=rule.type,
            do=f"Did you mean {' or '.join(near)}?" if near else "Its gallery lists what there is",
        )
    if rule.type in NOT_ON_SPARK:
        raise SpecError(
            "Great Expectations cannot evaluate this on Spark",
            where=where,
            value=rule.type,
            do=f"Instead, {NOT_ON_SPARK[rule.type]}",
        )


def check_names(rules: list[RuleSpec]) -> None:
    """Raise SpecError when two rules share a name, or one takes a name of the quarantine table."""
    for name, times in Counter(rule_name(rule) for rule in rules).items():
        if times > 1:
            raise SpecError(
                f"{times} rules are named {name!r}",
                where="rules",
                do="Give each its own `name:`; reports and quarantined rows tell them apart by it",
            )
        if name in RESERVED_NAMES:
            raise SpecError(
                "this name is one that reports and the quarantine table use themselves",
                where="rules",
                value=name,
                do="Give the rule another `name:`",
            )
