"""Table-level rules: judged once, on all rows that a run wrote."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ..checkpoint import Entry
from ..quality.expectations import validate_table
from ..quality.table_result import failure
from ..report import RuleResult
from ..spark.columns import BATCH_KEY, col
from ..spark.tables import frame_of
from ..spec import RuleSpec
from .plan import Plan


def judge_run(spark: SparkSession, plan: Plan, entries: list[Entry]) -> list[RuleResult]:
    """The verdict of each table-level rule on the rows of these batches, found by their keys."""
    numbers = [entry.batch.batch_id for entry in entries]
    own = F.col(BATCH_KEY).startswith(plan.batch_key(0)[:-1])
    rows = frame_of(spark, plan.target.path)
    rows = rows.where(F.col("_batch_id").between(min(numbers), max(numbers)))
    rows = rows.where(F.col("_batch_id").isin(numbers) & own)
    columns = [col(name) for name in plan.columns.names]
    return validate_table(rows.select(*columns), plan.rules.table, set(plan.rules.hidden))


def could_not_judge(rules: list[RuleSpec], why: str) -> list[RuleResult]:
    """Table-level rules that nobody could judge in this run, which is no pass."""
    return [failure(rule, why) for rule in rules]
