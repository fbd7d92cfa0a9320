"""Great Expectations' expectations: which there are, what each takes, and which cannot run here.

Known without importing it, which costs seconds.
"""

from ..errors import suggest
from .rules import ROW_LEVEL, RuleSpec

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

_BOUNDS = ("min_value", "max_value", "strict_min", "strict_max")
_KWARGS = """
    column_distinct_values_to_be_in_set: column value_set
    column_distinct_values_to_contain_set: column value_set
    column_distinct_values_to_equal_set: column value_set
    column_kl_divergence_to_be_less_than: column partition_object? threshold? \
        internal_weight_holdout? tail_weight_holdout? bucketize_data? min_value? max_value?
    column_max_to_be_between: column bounds
    column_mean_to_be_between: column bounds
    column_median_to_be_between: column bounds
    column_min_to_be_between: column bounds
    column_most_common_value_to_be_in_set: column value_set ties_okay?
    column_pair_values_a_to_be_greater_than_b: column_A column_B mostly? or_equal? ignore_row_if?
    column_pair_values_to_be_equal: column_A column_B mostly? ignore_row_if?
    column_pair_values_to_be_in_set: column_A column_B mostly? value_pairs_set ignore_row_if?
    column_proportion_of_non_null_values_to_be_between: column bounds
    column_proportion_of_unique_values_to_be_between: column bounds
    column_quantile_values_to_be_between: column quantile_ranges allow_relative_error?
    column_stdev_to_be_between: column bounds
    column_sum_to_be_between: column bounds
    column_to_exist: column column_index?
    column_type_to_be: column type_
    column_unique_value_count_to_be_between: column bounds
    column_value_lengths_to_be_between: column mostly? bounds
    column_value_lengths_to_equal: column mostly? value
    column_value_z_scores_to_be_less_than: column mostly? threshold double_sided
    column_values_to_be_between: column mostly? bounds
    column_values_to_be_dateutil_parseable: column mostly?
    column_values_to_be_decreasing: column mostly? strictly?
    column_values_to_be_in_set: column mostly? value_set
    column_values_to_be_in_type_list: column mostly? type_list
    column_values_to_be_increasing: column mostly? strictly?
    column_values_to_be_json_parseable: column mostly?
    column_values_to_be_null: column mostly?
    column_values_to_be_of_type: column mostly? type_
    column_values_to_be_unique: column mostly?
    column_values_to_match_json_schema: column mostly? json_schema
    column_values_to_match_like_pattern: column mostly? like_pattern escape?
    column_values_to_match_like_pattern_list: column mostly? like_pattern_list match_on? escape?
    column_values_to_match_regex: column mostly? regex
    column_values_to_match_regex_list: column mostly? regex_list match_on?
    column_values_to_match_strftime_format: column mostly? strftime_format
    column_values_to_not_be_in_set: column mostly? value_set
    column_values_to_not_be_null: column mostly?
    column_values_to_not_be_outliers: column mostly? method? multiplier?
    column_values_to_not_match_like_pattern: column mostly? like_pattern escape?
    column_values_to_not_match_like_pattern_list: column mostly? like_pattern_list escape?
    column_values_to_not_match_regex: column mostly? regex
    column_values_to_not_match_regex_list: column mostly? regex_list
    compound_columns_to_be_unique: column_list mostly? ignore_row_if?
    multicolumn_sum_to_equal: column_list mostly? ignore_row_if? sum_total
    multicolumn_values_to_be_equal: column_list mostly? ignore_row_if?
    query_results_to_match_comparison: base_query comparison_data_source_name \
        comparison_query mostly?
    select_column_values_to_be_unique_within_record: column_list mostly? ignore_row_if?
    table_column_count_to_be_between: min_value? max_value?
    table_column_count_to_equal: value
    table_columns_to_match_ordered_list: column_list?
    table_columns_to_match_set: column_set? exact_match?
    table_row_count_to_be_between: bounds
    table_row_count_to_equal: value
    table_row_count_to_equal_other_table: other_table_name
"""
"""What each takes, `?` behind what may be left out; `bounds` are the four of `_BOUNDS`."""

_OF_ALL = frozenset({"meta", "notes", "description", "severity"}) | frozenset(
    {"row_condition", "condition_parser", "result_format", "catch_exceptions", "id", "batch_id"}
    | {"rendered_content", "windows", "library_metadata"}
)
"""What every expectation takes, or takes without a use here."""


def _read_table() -> dict[str, tuple[str, ...]]:
    lines = (line.split(":") for line in _KWARGS.strip().splitlines())
    return {f"expect_{name.strip()}": tuple(kwargs.split()) for name, kwargs in lines}


_TAKEN = _read_table()
EXPECTATIONS = frozenset(_TAKEN)
"""The types that Great Expectations 1.24 registers; a test holds the list to its registry."""


def needed_kwargs(type_: str) -> list[str]:
    """What an expectation cannot do without."""
    return [name for name in _TAKEN[type_] if name != "bounds" and not name.endswith("?")]


def known_kwargs(type_: str) -> list[str]:
    """What an expectation takes, beside what all of them take."""
    plain = [name.removesuffix("?") for name in _TAKEN[type_] if name != "bounds"]
    return plain + (list(_BOUNDS) if "bounds" in _TAKEN[type_] else [])


def unknown_kwargs(rule: RuleSpec) -> list[str]:
    """The kwargs of a rule that its expectation does not take."""
    return sorted(set(rule.kwargs) - set(known_kwargs(rule.type)) - _OF_ALL)


def suggest_type(written: str) -> str:
    """`Did you mean 'expect_…'? ` for a type there is not; empty where none is near.

    A short name stands for the shortest type that has all its words.
    """
    words = set(written.lower().removeprefix("expect_").split("_"))
    holding = [name for name in EXPECTATIONS if words <= set(name.split("_"))]
    if holding:
        return f"Did you mean {min(holding, key=lambda name: (len(name), name))!r}? "
    return suggest(written, EXPECTATIONS)


def cannot_quarantine(rule: RuleSpec) -> bool:
    """True for a rule that is to refuse rows although it looks at no single one."""
    return rule.on_fail == "quarantine" and rule.type not in ROW_LEVEL
