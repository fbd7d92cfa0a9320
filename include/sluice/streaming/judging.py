"""Table-level rules: judged once, on all rows that a run wrote."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ..checkpoint import Entry
from ..quality.expectations import validate_table
from ..quality.table_result import failure, idle
from ..report import Counts, RuleResult
from ..spark.columns import BATCH_KEY, col
from ..spark.tables import frame_of
from ..spec import RuleSpec
from .plan import Plan

_OF_NO_VALUE = "expect_table_"
"""How types begin that ask for the table's rows and columns, and for no value."""


def judge_run(spark: SparkSession, plan: Plan, entries: list[Entry]) -> list[RuleResult]:
    """The verdict of each table-level rule on the rows of these batches, found by their keys.

    Of no rows nothing can be said but how many they are; and not even that where all that came were
    copies, which are no news.
    """
    counts = sum((entry.batch.counts for entry in entries), Counts())
    copies = counts.duplicate and not counts.quarantined
    rules = [
        rule
        for rule in plan.rules.table
        if counts.written or rule.type.startswith(_OF_NO_VALUE) and not copies
    ]
    asked = iter(validate_table(_rows_of(spark, plan, entries), rules, set(plan.rules.hidden)))
    return [next(asked) if rule in rules else idle(rule) for rule in plan.rules.table]


def _rows_of(spark: SparkSession, plan: Plan, entries: list[Entry]) -> DataFrame:
    numbers = [entry.batch.batch_id for entry in entries]
    own = F.col(BATCH_KEY).startswith(plan.batch_key(0)[:-1])
    rows = frame_of(spark, plan.target.path)
    rows = rows.where(F.col("_batch_id").between(min(numbers), max(numbers)))
    rows = rows.where(F.col("_batch_id").isin(numbers) & own)
    return rows.select(*[col(name) for name in plan.columns.names])


def could_not_judge(rules: list[RuleSpec], why: str) -> list[RuleResult]:
    """Table-level rules that nobody could judge in this run, which is no pass."""
    return [failure(rule, why) for rule in rules]
