"""What a rule that cannot work gets: an error that says where, what was found and what to write."""

from types import SimpleNamespace

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T
from sluice.errors import SpecError
from sluice.quality import check_expectations, compile_rules, is_table_level, row_result, rule_name
from sluice.report.model import Outcome
from sluice.spark.columns import DEFECT, ENTERED, REASONS, STAGE
from sluice.spec import RuleSpec
from sluice.streaming.classify import judge

pytestmark = pytest.mark.usefixtures("compiled")

FIELDS = {
    "amount": T.DoubleType(),
    "status": T.StringType(),
    "day": T.DateType(),
    "paid": T.BooleanType(),
    "tags": T.ArrayType(T.StringType()),
    "a.b": T.LongType(),
}
BETWEEN, IN_SET, REGEX = (
    f"expect_column_values_to_{name}" for name in ("be_between", "be_in_set", "match_regex")
)
PAIR = "expect_column_pair_values_a_to_be_greater_than_b"


@pytest.mark.parametrize(
    ("type_", "kwargs", "words"),
    [
        (BETWEEN, {"column": "amont", "min_value": 0}, ["'amont'", "amount, status, day"]),
        (BETWEEN, {"column": "amount", "min_valu": 0}, ["no kwarg min_valu", "min_value"]),
        (BETWEEN, {"column": "amount"}, ["both missing"]),
        (BETWEEN, {"min_value": 0}, ["needs column"]),
        (BETWEEN, {"column": "amount", "min_value": 2, "max_value": 1}, ["greater than", "2 > 1"]),
        (BETWEEN, {"column": "amount", "min_value": "cheap"}, ["'cheap'", "Write 10"]),
        (
            BETWEEN,
            {"column": "amount", "min_value": 1, "max_value": "2024-01-01"},
            ["different kinds"],
        ),
        (BETWEEN, {"column": "amount", "min_value": "2024-01-01"}, ["'amount' (double)", "date"]),
        (BETWEEN, {"column": "amount", "min_value": "2024-02-30"}, ["'2024-02-30'"]),
        (BETWEEN, {"column": "status", "min_value": 1}, ["'status' (string)", "number"]),
        (BETWEEN, {"column": "day", "min_value": 20240101}, ["'day' (date)"]),
        (BETWEEN, {"column": "amount", "min_value": {"$PARAMETER": "low"}}, ["suite parameters"]),
        (
            BETWEEN,
            {"column": "amount", "min_value": 1, "strict_min": "very"},
            ["strict_min", "true or false"],
        ),
        (BETWEEN, {"column": "amount", "min_value": 1, "mostly": 95}, ["mostly", "0.95"]),
        (IN_SET, {"column": "status", "value_set": ["yes", True]}, ["True", "in quotes"]),
        (IN_SET, {"column": "status", "value_set": [1]}, ["(string)", "in quotes"]),
        (IN_SET, {"column": "amount", "value_set": ["1"]}, ["(double)", "without quotes"]),
        (IN_SET, {"column": "day", "value_set": ["31.12.2024"]}, ["2026-01-31"]),
        (IN_SET, {"column": "status", "value_set": ["a", None]}, ["holds null"]),
        (IN_SET, {"column": "status", "value_set": "a"}, ["not a list"]),
        (REGEX, {"column": "status", "regex": "[a"}, ["Unclosed character class", "'[a'"]),
        (REGEX, {"column": "status", "regex": 5}, ["in quotes"]),
        (REGEX, {"column": "status"}, ["needs regex"]),
        (REGEX, {"column": "status", "regex": "a", "row_condition": "status ="}, ["row_condition"]),
        (
            REGEX,
            {"column": "status", "regex": "a", "row_condition": "colour = 'red'"},
            ["row_condition", "colour", "There are: amount"],
        ),
        (
            "expect_column_values_to_match_regex_list",
            {"column": "status", "regex_list": []},
            ["regex_list"],
        ),
        (
            "expect_column_values_to_match_regex_list",
            {"column": "status", "regex_list": ["a"], "match_on": "some"},
            ["match_on"],
        ),
        (
            "expect_column_value_lengths_to_equal",
            {"column": "status", "value": 1.5},
            ["whole number"],
        ),
        (
            "expect_column_values_to_match_strftime_format",
            {"column": "day", "strftime_format": "%Y"},
            ["(date)", "schema"],
        ),
        (
            "expect_column_values_to_match_strftime_format",
            {"column": "status", "strftime_format": "%Q"},
            ["%Q"],
        ),
        (
            "expect_column_values_to_be_of_type",
            {"column": "status", "type_": "str"},
            ["StringType"],
        ),
        (PAIR, {"column_A": "amount", "column_B": "status"}, ["cannot be compared"]),
        (
            PAIR,
            {"column_A": "amount", "column_B": "a.b", "ignore_row_if": "never"},
            ["ignore_row_if", "neither"],
        ),
        (
            "expect_column_values_to_be_beetween",
            {"column": "amount", "min_value": 0},
            ["no such expectation", BETWEEN],
        ),
        (
            "expect_column_values_to_be_dateutil_parseable",
            {"column": "status"},
            ["cannot evaluate this on Spark", "strftime"],
        ),
        (
            "expect_column_mean_to_be_between",
            {"column": "amont", "min_value": 0},
            ["'amont'", "There are"],
        ),
        (
            "expect_compound_columns_to_be_unique",
            {"column_list": ["status", "dey"]},
            ["'dey'", "There are"],
        ),
    ],
)
def test_a_rule_that_cannot_work_is_refused_before_anything_runs(spark, type_, kwargs, words):
    with pytest.raises(SpecError) as caught:
        compile_rules([RuleSpec(type=type_, kwargs=kwargs)], FIELDS)
    assert all(word in str(caught.value) for word in ["rule ", *words]), str(caught.value)


@pytest.mark.parametrize(
    ("type_", "kwargs"),
    [
        ("expect_compound_columns_to_be_unique", {"column_list": ["status", "day"]}),
        (IN_SET, {"column": "tags", "value_set": [["a"]]}),
        (
            REGEX,
            {
                "column": "status",
                "regex": "a",
                "row_condition": 'col("amount") > 5',
                "condition_parser": "great_expectations",
            },
        ),
        (
            "expect_column_values_to_match_strftime_format",
            {"column": "status", "strftime_format": "%d %B %Y"},
        ),
    ],
)
def test_what_is_not_provably_equal_goes_to_great_expectations_and_cannot_quarantine(
    spark, type_, kwargs
):
    rule = RuleSpec(type=type_, kwargs=kwargs, on_fail="stop")
    assert compile_rules([rule], FIELDS) == ([], [rule])
    with pytest.raises(SpecError, match="only row-level rules can quarantine") as caught:
        compile_rules([rule.model_copy(update={"on_fail": "quarantine"})], FIELDS)
    assert "column_values_to_not_be_null" in str(caught.value)


def test_rules_have_names_of_their_own(spark):
    rule = RuleSpec(type=BETWEEN, kwargs={"column": "amount", "min_value": 0})
    assert rule_name(rule) == "amount.be_between"
    assert (
        rule_name(RuleSpec(type=PAIR, kwargs={"column_A": "x", "column_B": "y"}))
        == "x,y.a_to_be_greater_than_b"
    )
    assert (
        rule_name(RuleSpec(type="expect_table_row_count_to_be_between"))
        == "table_row_count_to_be_between"
    )
    with pytest.raises(SpecError, match="2 rules are named 'amount.be_between'"):
        compile_rules([rule, rule], FIELDS)
    with pytest.raises(SpecError, match="quarantine table use themselves"):
        compile_rules([rule.model_copy(update={"name": "null_key"})], FIELDS)


def test_a_column_name_with_a_dot_or_a_blank_is_one_column(spark):
    frame = spark.createDataFrame([(1, 2), (None, 3)], "`a.b` long, `Order ID` long")
    rules, _ = compile_rules(
        [RuleSpec(type=PAIR, kwargs={"column_A": "a.b", "column_B": "Order ID"})],
        {f.name: f.dataType for f in frame.schema},
    )
    assert frame.select(
        F.sum(rules[0].evaluated.cast("int")), F.sum(rules[0].unexpected.cast("int"))
    ).first() == (2, 1)


def test_a_wrong_type_fails_even_where_no_row_shows_it(spark):
    (rule,), _ = compile_rules(
        [
            RuleSpec(
                type="expect_column_values_to_be_of_type",
                kwargs={"column": "status", "type_": "LongType", "mostly": 0.0},
            )
        ],
        FIELDS,
    )
    assert row_result(rule, 0, 0, []).outcome is Outcome.FAILED


def test_a_row_level_type_needs_no_great_expectations():
    assert not is_table_level(RuleSpec(type=BETWEEN, kwargs={"column": "amount", "min_value": 0}))
    assert is_table_level(
        RuleSpec(type="expect_column_values_to_be_unique", kwargs={"column": "amount"})
    )


def test_table_level_kwargs_are_checked_before_a_run(spark):
    check_expectations(
        [RuleSpec(type="expect_table_row_count_to_be_between", kwargs={"min_value": 1})]
    )
    with pytest.raises(SpecError, match="minimum"):
        check_expectations(
            [RuleSpec(type="expect_table_row_count_to_be_between", kwargs={"minimum": 1})]
        )


def test_a_rule_is_evaluated_once_a_row_whatever_hangs_on_it(spark):
    def starts_with(letter: str) -> dict[str, str]:
        return {"column": "status", "regex": f"^[{letter}]"}

    rules = [
        RuleSpec(name=name, type=REGEX, kwargs=starts_with(name), on_fail="quarantine")
        for name in "ab"
    ]
    compiled, _ = compile_rules(rules, FIELDS)
    step = SimpleNamespace(name="orders", event_time=None, dedup=None)
    frame = spark.createDataFrame([("ab", 1)], "status string, amount int").withColumns(
        {DEFECT: F.lit(None).cast("string"), STAGE: F.lit(ENTERED)}
    )
    judged = judge(frame, step, frame.select("status").schema, compiled)
    plan = judged._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("RLIKE") == len(rules)
    assert judged.select(REASONS).collect()[0][0] == ["b"]
