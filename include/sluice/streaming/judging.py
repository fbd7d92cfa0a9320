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
from .run import Run
from .tally import Tally

_OF_NO_VALUE = "expect_table_"
"""How types begin that ask for the table's rows and columns, and for no value."""


def judge_tables(run: Run, plan: Plan, tally: Tally) -> None:
    """Judge table-level rules on all rows that this run wrote."""
    if not tally.finished and tally.left_for_next_run:
        why = "the time budget ended the run before a row was written"
        tally.table_results = _could_not_judge(plan.rules.table, why)
    if tally.finished and plan.rules.table and plan.target.exists:
        with tally.spending("table rules"):
            tally.table_results = _judge_run(run.spark, plan, tally.finished)


def keep_unjudged(plan: Plan, tally: Tally) -> None:
    """Keep the rules that a failed run did not come to, which is no pass."""
    told = {result.name for result in tally.table_results}
    why = "the run failed before the rows it wrote could be judged"
    results = _could_not_judge(plan.rules.table, why)
    tally.table_results += [result for result in results if result.name not in told]


def _judge_run(spark: SparkSession, plan: Plan, entries: list[Entry]) -> list[RuleResult]:
    """The verdict of each table-level rule on the rows of these batches, found by their keys.

    Of no rows nothing can be said but how many they are; and not even that where all that came were
    copies, which are no news.
    """
    counts = sum((entry.batch.counts for entry in entries), Counts())
    copies = counts.duplicate and not counts.quarantined
    rules = [
        rule
        for rule in plan.rules.table
        if counts.written or counts.replaced or rule.type.startswith(_OF_NO_VALUE) and not copies
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


def _could_not_judge(rules: list[RuleSpec], why: str) -> list[RuleResult]:
    """Table-level rules that nobody could judge in this run, which is no pass."""
    return [failure(rule, why) for rule in rules]
