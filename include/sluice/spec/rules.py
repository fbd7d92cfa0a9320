"""What a row, or a table, is expected to be."""

from typing import Literal

from pydantic import Field

from .model import Spec

ROW_LEVEL = frozenset(
    f"expect_column_{name}"
    for name in (
        "pair_values_a_to_be_greater_than_b",
        "pair_values_to_be_equal",
        "value_lengths_to_be_between",
        "value_lengths_to_equal",
        "values_to_be_between",
        "values_to_be_in_set",
        "values_to_be_in_type_list",
        "values_to_be_null",
        "values_to_be_of_type",
        "values_to_match_regex",
        "values_to_match_regex_list",
        "values_to_match_strftime_format",
        "values_to_not_be_in_set",
        "values_to_not_be_null",
        "values_to_not_match_regex",
        "values_to_not_match_regex_list",
    )
)
"""Types that are evaluated row by row; every other one looks at the whole table."""


class RuleSpec(Spec):
    """One Great Expectations expectation and what its failure does."""

    type: str = Field(pattern=r"^expect_[a-z_]+$")
    kwargs: dict = {}
    on_fail: Literal["warn", "quarantine", "stop"] = "warn"
    name: str = ""
    """Shown in reports and kept as a quarantined row's reason; by default the columns and the
    type."""


def rule_columns(rule: RuleSpec) -> list[str]:
    """The columns a rule's kwargs name."""
    kwargs = rule.kwargs
    single = [
        kwargs[k] for k in ("column", "column_A", "column_B") if isinstance(kwargs.get(k), str)
    ]
    return single + list(kwargs.get("column_list") or []) + list(kwargs.get("column_set") or [])
