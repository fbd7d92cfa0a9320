"""Spark's logical plans, read and rebuilt node by node: what a query does is seen, not guessed.

PySpark has no public way to look into a plan; these are the JVM's own classes, of the one version
that the project runs on.
"""

from collections.abc import Iterable, Iterator

from py4j.java_gateway import JavaObject, is_instance_of
from pyspark.sql import Column, DataFrame, SparkSession

from .jvm import jvm_of

_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical"


def items(sequence: JavaObject) -> list[JavaObject]:
    """A Scala sequence as a list."""
    return [sequence.apply(i) for i in range(sequence.size())]


def kind(node: JavaObject) -> str:
    """The name of a node's class: `Project`, `Alias`."""
    return node.getClass().getSimpleName()


def walk(node: JavaObject) -> Iterator[JavaObject]:
    """A node and everything below it, from the top."""
    yield node
    for child in items(node.children()):
        yield from walk(child)


def joins_streams(node: JavaObject) -> bool:
    """True for a join both sides of which are streams, which keeps rows of both."""
    return kind(node) == "Join" and node.left().isStreaming() and node.right().isStreaming()


def keeps_state(node: JavaObject) -> bool:
    """True for an operator of a stream that keeps something from batch to batch."""
    name = kind(node)
    if name == "Join":
        return joins_streams(node)
    return name in ("Aggregate", "Distinct") or "Deduplicate" in name or "State" in name


def analyzed_plan(frame: DataFrame) -> JavaObject:
    """What a frame does, every name resolved and every WITH put where it is used."""
    plan = frame._jdf.queryExecution().analyzed()
    return inline_with(frame.sparkSession, plan) if kind(plan) == "WithCTE" else plan


def inline_with(spark: SparkSession, plan: JavaObject) -> JavaObject:
    """A plan with the query of each WITH in the place where it is used."""
    optimizer = jvm_of(spark).org.apache.spark.sql.catalyst.optimizer
    return optimizer.InlineCTE(True, False).apply(plan)


def frame_of_plan(spark: SparkSession, plan: JavaObject) -> DataFrame:
    """The frame that does what a plan says."""
    dataset = jvm_of(spark).org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(spark._jsparkSession, plan), spark)


def column_of(spark: SparkSession, expression: JavaObject) -> Column:
    """A resolved expression as a column: it means the same, whatever else bears its names."""
    return Column(jvm_of(spark).org.apache.spark.sql.classic.ExpressionUtils.column(expression))


def is_query(spark: SparkSession, sql: str) -> bool:
    """False for a statement that acts as soon as it is analyzed, such as DROP TABLE.

    Raises what Spark's parser raises.
    """
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    commands = ("Command", "ParsedStatement", "CompoundPlanStatement")
    gateway = spark.sparkContext._gateway
    return not any(is_instance_of(gateway, plan, f"{_LOGICAL}.{name}") for name in commands)


def holds(spark: SparkSession, expression: JavaObject, *patterns: str) -> bool:
    """True when an expression holds one of Spark's tree patterns.

    Args:
        patterns: such as `PYTHON_UDF` or `PLAN_EXPRESSION` (a query of its own).
    """
    known = jvm_of(spark).org.apache.spark.sql.catalyst.trees.TreePattern
    return any(expression.containsPattern(getattr(known, name)()) for name in patterns)


def sequence(spark: SparkSession, nodes: Iterable) -> JavaObject:
    """A list as a Scala sequence."""
    return jvm_of(spark).org.apache.spark.api.python.PythonUtils.toSeq(list(nodes))


def with_children(spark: SparkSession, node: JavaObject, below: Iterable) -> JavaObject:
    """The same node over other children."""
    return node.withNewChildren(sequence(spark, below))


def project(spark: SparkSession, expressions: Iterable, child: JavaObject) -> JavaObject:
    """A node that selects expressions, which keep their identity."""
    logical = jvm_of(spark).org.apache.spark.sql.catalyst.plans.logical
    return logical.Project(sequence(spark, expressions), child)


def expand(
    spark: SparkSession, projections: Iterable[Iterable], output: Iterable, child: JavaObject
) -> JavaObject:
    """A node that makes a row of each projection for each row."""
    logical = jvm_of(spark).org.apache.spark.sql.catalyst.plans.logical
    rows = sequence(spark, [sequence(spark, projection) for projection in projections])
    return logical.Expand(rows, sequence(spark, output), child)


def null_unless(spark: SparkSession, condition: JavaObject, value: JavaObject) -> JavaObject:
    """An expression that is evaluated only where the condition holds, and NULL elsewhere."""
    known = jvm_of(spark).org.apache.spark.sql.catalyst.expressions
    return known.If(condition, value, known.Literal(None, value.dataType()))
