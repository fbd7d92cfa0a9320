"""What a rule is called, and which expectation types Great Expectations has.

Known without importing it, which costs seconds.
"""

import difflib
import re
from collections import Counter

from ..errors import SpecError
from ..spec import RuleSpec, rule_columns

RESERVED_NAMES = frozenset({"malformed", "null_key", "null_time", "future_time", "unreadable_file"})
"""Reasons of the quarantine table that no rule may take as its name."""

NOT_ON_SPARK = {
    "expect_column_values_to_be_dateutil_parseable": (
        "name the format: expect_column_values_to_match_strftime_format"
    ),
    "expect_column_values_to_match_like_pattern": (
        "write it as a regular expression: expect_column_values_to_match_regex"
    ),
    "expect_column_values_to_match_like_pattern_list": (
        "write regular expressions: expect_column_values_to_match_regex_list"
    ),
    "expect_column_values_to_not_match_like_pattern": (
        "write it as a regular expression: expect_column_values_to_not_match_regex"
    ),
    "expect_column_values_to_not_match_like_pattern_list": (
        "write regular expressions: expect_column_values_to_not_match_regex_list"
    ),
    "expect_query_results_to_match_comparison": (
        "compare in the step's SQL transform and put a rule on the result"
    ),
    "expect_table_row_count_to_equal_other_table": (
        "bound the count: expect_table_row_count_to_be_between"
    ),
}
"""Expectations without an implementation for Spark, and what to write instead."""

EXPECTATIONS = frozenset(NOT_ON_SPARK) | frozenset(
    f"expect_{name}"
    for name in """
    column_distinct_values_to_be_in_set column_distinct_values_to_contain_set
    column_distinct_values_to_equal_set column_kl_divergence_to_be_less_than
    column_max_to_be_between column_mean_to_be_between column_median_to_be_between
    column_min_to_be_between column_most_common_value_to_be_in_set
    column_pair_values_a_to_be_greater_than_b column_pair_values_to_be_equal
    column_pair_values_to_be_in_set column_proportion_of_non_null_values_to_be_between
    column_proportion_of_unique_values_to_be_between column_quantile_values_to_be_between
    column_stdev_to_be_between column_sum_to_be_between column_to_exist column_type_to_be
    column_unique_value_count_to_be_between column_value_lengths_to_be_between
    column_value_lengths_to_equal column_value_z_scores_to_be_less_than
    column_values_to_be_between column_values_to_be_decreasing column_values_to_be_in_set
    column_values_to_be_in_type_list column_values_to_be_increasing
    column_values_to_be_json_parseable column_values_to_be_null column_values_to_be_of_type
    column_values_to_be_unique column_values_to_match_json_schema column_values_to_match_regex
    column_values_to_match_regex_list column_values_to_match_strftime_format
    column_values_to_not_be_in_set column_values_to_not_be_null column_values_to_not_match_regex
    column_values_to_not_match_regex_list column_values_to_not_be_outliers
    compound_columns_to_be_unique multicolumn_sum_to_equal multicolumn_values_to_be_equal
    select_column_values_to_be_unique_within_record table_column_count_to_be_between
    table_column_count_to_equal table_columns_to_match_ordered_list table_columns_to_match_set
    table_row_count_to_be_between table_row_count_to_equal
    """.split()  # noqa: SIM905
)
"""The types that Great Expectations 1.24 registers; a test holds the list to its registry."""

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
                "this name is a reason the quarantine table uses itself",
                where="rules",
                value=name,
                do="Give the rule another `name:`",
            )
