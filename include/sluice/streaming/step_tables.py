"""The tables of a step: some are there before its first batch, others are made by their first rows,
which costs a commit less, and a look at the state of a table that holds nothing."""

from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType, StructField, StructType

from ..checkpoint import Checkpoint, Rights
from ..errors import PreflightError
from ..spark.columns import LATE_BY
from ..spark.table_setup import Layout, ensure_table, register, table_exists
from . import quarantine
from .plan import Plan
from .target import Append, InsertNew


def prepare_target(spark: SparkSession, plan: Plan) -> None:
    """Make a step's target, or see that it can take the step's columns. Raises PreflightError."""
    sink = plan.step.target
    if sink is None:
        return
    if not _waits_for_rows(plan) or table_exists(spark, plan.target.path):
        _ensure_target(spark, plan)
    if sink.name is not None:
        register(spark, sink.name, plan.target.path)


def prepare_others(spark: SparkSession, plan: Plan) -> None:
    """The same for the tables of refused and of late rows, the first of which may be absent."""
    if table_exists(spark, plan.place.quarantine):
        ensure_table(spark, plan.place.quarantine, quarantine.SCHEMA)
    if plan.late == "keep":
        late = [*plan.schema.fields, StructField(LATE_BY, DoubleType())]
        ensure_table(spark, plan.place.late, StructType(late))


def complete_tables(spark: SparkSession, rights: Rights, plan: Plan) -> None:
    """Make what no batch had a row for: people and other pipelines ask it all the same."""
    target = plan.target.exists and not table_exists(spark, plan.target.path)
    refused = not table_exists(spark, plan.place.quarantine)
    if not (target or refused):
        return
    with rights.turn(plan.step.name, plan.table):
        if target:
            _ensure_target(spark, plan)
        if refused:
            ensure_table(spark, plan.place.quarantine, quarantine.SCHEMA)


def refuse_gone(spark: SparkSession, plan: Plan, number: int) -> None:
    """Raise PreflightError where a target is gone that earlier batches of its checkpoint have left:
    the rows of this one would make another, without the memory of theirs."""
    if number and not table_exists(spark, plan.target.path):
        raise PreflightError(
            "the step's table has gone while the run was under way, and with it the memory of "
            "every row that was written",
            where=plan.target.path,
            value=f"batch {number} of {plan.place.checkpoint}",
            do="Put the table back and run again",
        )


def _ensure_target(spark: SparkSession, plan: Plan) -> None:
    ensure_table(spark, plan.target.path, plan.schema, _layout(plan))


def _layout(plan: Plan) -> Layout:
    step, sink = plan.step, plan.step.target
    if sink is None:
        return Layout()
    return Layout(sink.partition_by, sink.cluster_by, step.table_properties)


def _waits_for_rows(plan: Plan) -> bool:
    """True for a target that nobody asks before it has rows, and that they can make: those of a
    step's first batch."""
    if Checkpoint.below(plan.place.checkpoint).newest_commit is not None:
        return False
    layout, sink = _layout(plan), plan.step.target
    plain = not (layout.partition_by or layout.cluster_by or layout.properties)
    asked = plan.late == "keep" or plan.rules.table or plan.step.further_sinks
    named = sink is not None and sink.name is not None
    return isinstance(plan.target, (Append, InsertNew)) and plain and not (asked or named)
