"""Table-level rules: passed, failed, or could not be evaluated, which is never a pass."""

import subprocess
import sys
from pathlib import Path

import pytest
import sluice
from sluice.quality import EXPECTATIONS, validate_table
from sluice.quality.names import NOT_ON_SPARK
from sluice.report.model import Outcome
from sluice.spec import RuleSpec

COUNT = RuleSpec(type="expect_table_row_count_to_be_between", kwargs={"min_value": 1})
UNIQUE = RuleSpec(
    type="expect_column_values_to_be_unique", kwargs={"column": "email"}, on_fail="stop"
)
COMPOUND = RuleSpec(
    type="expect_compound_columns_to_be_unique", kwargs={"column_list": ["id", "email"]}
)
MEAN = RuleSpec(
    type="expect_column_mean_to_be_between", kwargs={"column": "id", "min_value": 5}, name="enough"
)
DISTINCT = RuleSpec(
    type="expect_column_distinct_values_to_be_in_set",
    kwargs={"column": "email", "value_set": ["a@x"]},
)
MAX_ID = RuleSpec(type="expect_column_max_to_be_between", kwargs={"column": "id", "max_value": 2})
MEAN_OF_TEXT = RuleSpec(
    type="expect_column_mean_to_be_between",
    kwargs={"column": "email", "min_value": 5},
    name="mean of text",
)
WRONG_KWARG = RuleSpec(
    type="expect_table_row_count_to_be_between", kwargs={"minimum": 5}, name="wrong kwarg"
)
UNKNOWN = RuleSpec(type="expect_world_peace", kwargs={})


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(
        [(1, "a@x"), (2, "b@x"), (3, "b@x"), (3, "b@x")], "id long, email string"
    ).coalesce(1)


@pytest.fixture(scope="module")
def results(frame):
    """All rules in one call; the broken ones stand between the sound ones."""
    rules = [COUNT, MEAN_OF_TEXT, UNIQUE, WRONG_KWARG, COMPOUND, UNKNOWN, MEAN, DISTINCT]
    return dict(
        zip([r.name or r.type for r in rules], validate_table(frame, rules, set()), strict=True)
    )


def test_a_table_rule_that_holds_passes_and_says_what_was_observed(results):
    result = results[COUNT.type]
    assert (result.outcome, result.observed, result.level) == (Outcome.PASSED, "4", "table")


def test_a_table_rule_that_does_not_hold_fails_with_counts_and_samples(results):
    unique, compound, mean = results[UNIQUE.type], results[COMPOUND.type], results["enough"]
    assert (unique.outcome, unique.evaluated, unique.unexpected, unique.on_fail, unique.name) == (
        Outcome.FAILED,
        4,
        3,
        "stop",
        "email.be_unique",
    )
    assert "b@x" in unique.samples[0]
    assert (compound.outcome, compound.unexpected) == (Outcome.FAILED, 2)
    assert (mean.outcome, mean.observed, mean.name) == (Outcome.FAILED, "2.25", "enough")


def test_a_rule_that_cannot_be_evaluated_is_not_a_pass_and_spoils_no_other(results):
    assert [results[name].outcome for name in ("mean of text", "wrong kwarg", UNKNOWN.type)] == [
        Outcome.ERROR
    ] * 3
    assert "numeric" in results["mean of text"].message
    assert "minimum" in results["wrong kwarg"].message
    assert "no such expectation" in results[UNKNOWN.type].message
    assert results[COUNT.type].outcome is Outcome.PASSED


def test_a_frame_that_cannot_be_read_is_an_error_of_every_rule(spark, tmp_path):
    path = tmp_path / "gone"
    spark.range(3).selectExpr("id", "'x' AS email").write.parquet(str(path))
    frame = spark.read.parquet(str(path))
    for file in path.iterdir():
        file.unlink()
    found = validate_table(frame, [COUNT, UNIQUE], set())
    assert [r.outcome for r in found] == [Outcome.ERROR] * 2
    assert all(r.message for r in found)


def test_values_of_hidden_columns_are_never_shown(frame):
    rules = [UNIQUE, COMPOUND, DISTINCT, MAX_ID, MEAN_OF_TEXT]
    found = validate_table(frame, rules, {"email"})
    assert [r.outcome for r in found] == [Outcome.FAILED] * 4 + [Outcome.ERROR]
    assert "@x" not in "".join(r.model_dump_json() for r in found)
    assert (found[0].unexpected, found[0].samples, found[3].observed) == (3, [], "3")


def test_what_was_cached_is_released_and_what_the_caller_cached_is_kept(spark, frame):
    def cached() -> int:
        return spark.sparkContext._jsc.getPersistentRDDs().size()

    before = cached()
    validate_table(frame, [COUNT, UNIQUE], set())
    assert cached() == before
    mine = frame.where("id > 1").persist()
    mine.count()
    validate_table(mine, [COUNT], set())
    assert mine.storageLevel.useMemory
    mine.unpersist()


def test_the_list_of_expectations_is_that_of_great_expectations():
    import great_expectations.expectations  # noqa: F401 - registers them
    from great_expectations.expectations.registry import list_registered_expectation_implementations

    assert {
        name for name in list_registered_expectation_implementations() if name.startswith("expect_")
    } == EXPECTATIONS


def test_what_is_listed_as_not_on_spark_is_not(frame):
    from great_expectations.expectations.registry import _registered_metrics, get_expectation_impl

    for name in NOT_ON_SPARK:
        metrics = [m for m in [getattr(get_expectation_impl(name), "map_metric", None)] if m]
        assert not any(
            "Spark" in engine
            for m in metrics
            for engine in _registered_metrics.get(f"{m}.condition", {}).get("providers", {})
        ), name


def test_compiling_row_rules_does_not_import_great_expectations():
    code = (
        "import sys, sluice.quality; assert 'great_expectations' not in sys.modules; "
        "t = sluice.quality.import_in_background(); t.join(); "
        "assert 'great_expectations' in sys.modules"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env={"PYTHONPATH": str(Path(sluice.__file__).parents[1]), "PATH": "/usr/bin:/bin"},
        timeout=120,
    )


def test_the_kwargs_that_are_known_without_it_are_great_expectations_own():
    from great_expectations.expectations.registry import get_expectation_impl
    from sluice.spec.expectations import known_kwargs, needed_kwargs, unknown_kwargs

    for name in EXPECTATIONS:
        fields = get_expectation_impl(name).__fields__
        assert set(known_kwargs(name)) <= set(fields)
        assert unknown_kwargs(RuleSpec(type=name, kwargs=dict.fromkeys(fields))) == []
        assert {n for n, field in fields.items() if field.required} <= set(needed_kwargs(name))
