"""What the page about rules says of NULL and of a batch without rows."""

import yaml
from pyspark.sql import functions as F
from sluice.quality import compile_rules, row_result, validate_table
from sluice.quality.row_rules import DECIDED_BY_TYPE
from sluice.spec import RuleSpec

from tests.rules_page import PAGE, PIPELINE

(STEP,) = yaml.safe_load(PIPELINE)["steps"]
RULES = [RuleSpec.model_validate(rule) for rule in STEP["rules"]]
FIELDS = ", ".join(f"{name} {type_}" for name, type_ in STEP["source"]["schema"].items())
EQUAL, GREATER = (
    f"expect_column_pair_values_{name}" for name in ("to_be_equal", "a_to_be_greater_than_b")
)


def count(spark, rules: list[RuleSpec], *rows: dict) -> dict[str, tuple[int, int]]:
    """Rows evaluated and rows unexpected by the type of each compiled rule."""
    frame = spark.createDataFrame([], FIELDS) if not rows else spark.createDataFrame(rows, FIELDS)
    compiled, _ = compile_rules(rules, {field.name: field.dataType for field in frame.schema})
    sums = [F.count_if(c) for rule in compiled for c in (rule.evaluated, rule.unexpected)]
    seen = frame.coalesce(1).agg(*sums).collect()[0]
    return {rule.spec.type: (seen[2 * n], seen[2 * n + 1]) for n, rule in enumerate(compiled)}


def test_null_is_skipped_or_judged_by_each_rule_as_the_page_says(spark):
    none = dict.fromkeys(STEP["source"]["schema"])
    said = {"skipped": (0, 0), "both": (0, 0), "no": (1, 0)}
    said |= {"is judged: expected": (1, 0), "is judged: unexpected": (1, 1)}
    seen = count(spark, RULES, none)
    for type_, found in seen.items():
        (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{type_}` ")]
        claim = line.split("|")[4].strip()
        assert found == next(counts for words, counts in said.items() if claim.startswith(words))
    assert len(seen) == 16


def test_of_a_pair_with_one_null_equal_is_unexpected_and_greater_cannot_be_told(spark):
    half = {**dict.fromkeys(STEP["source"]["schema"]), "price": 1.0}
    pair = {"column_A": "price", "column_B": "paid"}
    rules = [RuleSpec(type=type_, kwargs=pair) for type_ in (EQUAL, GREATER)]
    assert count(spark, rules, half) == {EQUAL: (1, 1), GREATER: (1, 0)}
    ignoring = [rule for rule in RULES if rule.type == GREATER]
    assert count(spark, ignoring, half) == {GREATER: (0, 0)}


def test_no_row_level_rule_is_evaluated_on_a_batch_without_rows(spark):
    fields = spark.createDataFrame([], FIELDS).schema
    compiled, _ = compile_rules(RULES, {field.name: field.dataType for field in fields})
    seen = count(spark, RULES)
    results = [row_result(rule, *seen[rule.spec.type], []) for rule in compiled]
    assert len(results) == 16 and all(result.unmet for result in results)
    assert {r.type for r in results} > DECIDED_BY_TYPE


def test_null_is_left_out_by_what_computes_a_value_and_counted_by_what_counts_rows(spark):
    none = dict.fromkeys(STEP["source"]["schema"])
    frame = spark.createDataFrame([none, none, {**none, "price": 6.0}], FIELDS).coalesce(1)
    _, rules = compile_rules(RULES, {field.name: field.dataType for field in frame.schema})
    mean, unique, share, rows = validate_table(frame, rules)
    assert (mean.outcome, mean.observed) == ("passed", "6.0")
    assert (unique.outcome, unique.evaluated) == ("passed", 0)
    assert (share.outcome, share.observed) == ("failed", "0.0")
    assert (rows.outcome, rows.observed) == ("passed", "3")
