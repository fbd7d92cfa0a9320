"""What no query with groups may do, and what to write instead.

A group is computed anew from its rows alone, at another time and in another order than before, so
whatever hangs on the moment, on chance or on the order of rows would give another table than the
query over all rows. What is left alone: ties of `ORDER BY`, `max_by` and `min_by`, which only the
data can tell; the last digits of sums of floating point; sketches, which promise no exact value.
"""

from collections.abc import Callable, Iterable, Iterator

from py4j.java_gateway import JavaObject, is_instance_of
from pyspark.sql import SparkSession

from ..errors import SpecError
from .plans import holds, items, kind, walk

Reason = tuple[str, str]
"""Why something does not fit, and what to do instead."""

_TOP = (
    "To keep some rows of each group write `ROW_NUMBER() OVER (PARTITION BY <group> ORDER BY ...) "
    "AS n` and `WHERE n <= 10`, with an order that tells any two rows apart"
)
_CUTS = {
    "GlobalLimit": "LIMIT",
    "LocalLimit": "LIMIT",
    "LimitAll": "LIMIT",
    "Offset": "OFFSET",
    "Tail": "TAIL",
}
_BY_MOMENT = (
    "Compare times of the rows with each other, or let a row carry the moment that counts: a "
    "column of an input changes only with a commit"
)
_BY_CHANCE = (
    "Make it of the row: `xxhash64(id)` for a number, `uuid` in the step that first writes the "
    "row; a Python function that gives the same for the same row is no `asNondeterministic`"
)
_ANY = "`max_by(x, at)` or `min_by(x, at)`, with a column that tells which row is meant"
_SORTED = "`array_sort(collect_list(x))` or `array_sort(collect_set(x))`"
_BY_ORDER = {
    "First": _ANY,
    "Last": _ANY,
    "AnyValue": _ANY,
    "CollectList": _SORTED,
    "CollectSet": _SORTED,
    "Mode": "`mode(x, true)`, which takes the lowest of values that are equally frequent",
    "ListAgg": "`listagg(x, ',') WITHIN GROUP (ORDER BY x)`",
}
"""Aggregate that hangs on the order in which rows come -> what to write."""
_IN_ANY_ORDER = {"ArraySort", "SortArray", "Size", "ArrayContains", "ArrayMax", "ArrayMin"}
"""Functions of an array that are the same however it is ordered."""
_WITHOUT_PYTHON = (
    "Write it of columns and aggregates: `pandas_udf` over columns, or one that aggregates, in "
    "`groupBy('day').agg(...)`"
)
_CALLED = {
    "MapInPandas": "mapInPandas",
    "MapInArrow": "mapInArrow",
    "FlatMapGroupsInPandas": "applyInPandas",
    "FlatMapGroupsInArrow": "applyInArrow",
    "FlatMapCoGroupsInPandas": "applyInPandas",
    "FlatMapCoGroupsInArrow": "applyInArrow",
}
_OF_FILES = "_metadata"


def list_nodes(
    spark: SparkSession, plan: JavaObject, ends: Callable[[JavaObject], object]
) -> Iterator[JavaObject]:
    """A plan's nodes and those of its subqueries. Args: ends: true for a node below which nothing
    is of the query."""
    yield plan
    if ends(plan):
        return
    for inner in list_subqueries(spark, plan):
        yield from list_nodes(spark, inner.plan(), ends)
    for child in items(plan.children()):
        yield from list_nodes(spark, child, ends)


def list_subqueries(spark: SparkSession, node: JavaObject) -> Iterator[JavaObject]:
    """The expressions of a node that hold a plan of their own."""
    if not holds(spark, node, "PLAN_EXPRESSION"):  # neither it nor any below it
        return
    for expression in items(node.expressions()):
        if holds(spark, expression, "PLAN_EXPRESSION"):
            yield from (part for part in walk(expression) if _is_plan(spark, part))


def _is_plan(spark: SparkSession, expression: JavaObject) -> bool:
    name = "org.apache.spark.sql.catalyst.expressions.PlanExpression"
    return bool(is_instance_of(spark.sparkContext._gateway, expression, name))


def check_repeatable(spark: SparkSession, nodes: Iterable[JavaObject], where: str) -> None:
    """Raise SpecError for a query that may give other rows for the same rows of its inputs.

    Args:
        nodes: of the query.
        where: the step, for the message.
    """
    for node in nodes:
        if (why := _why_node(node) or _why_expressions(spark, node)) is not None:
            raise SpecError(why[0], where=where, do=why[1])


def why_unrepeatable(spark: SparkSession, expression: JavaObject) -> Reason | None:
    """Why an expression may give another value for the same row, and what to do instead."""
    if not expression.deterministic():
        culprit = _find_culprit(expression)
        # What is wrong with a subquery is found, and told better, among its own nodes.
        what = f"{_name_of(culprit)} gives another value whenever it is computed"
        return None if _is_plan(spark, culprit) else (what, _BY_CHANCE)
    if holds(spark, expression, "CURRENT_LIKE"):
        named = [one for one in walk(expression) if holds(spark, one, "CURRENT_LIKE")][-1]
        return (
            f"{_name_of(named)} changes from run to run, and with it rows of which no input had a "
            "commit",
            _BY_MOMENT,
        )
    if holds(spark, expression, "AGGREGATE_EXPRESSION"):
        return _why_disordered(expression)
    return None


def why_not_followed(node: JavaObject) -> Reason:
    """Why an operator over rows that have groups is refused, where nothing is known that it keeps,
    and what to do instead."""
    name = kind(node)
    if name == "Generate":
        return (
            f"the table function {_name_of(node.generator())} may make rows of several groups",
            "Write it with `explode`, `posexplode`, `inline`, `stack` or `json_tuple`, which make "
            "rows of one row",
        )
    if name in _CALLED:
        return (
            f"{_CALLED[name]} makes rows of which nothing tells to which group they belong",
            _WITHOUT_PYTHON,
        )
    return (
        f"the operator {name} is none of which is known that it keeps groups apart",
        "Write the step with SELECT, WHERE, JOIN, GROUP BY, UNION ALL and window functions; or "
        "leave `groups` out, and the whole table is computed anew",
    )


def _why_node(node: JavaObject) -> Reason | None:
    name = kind(node)
    if name in _CUTS:
        return f"{_CUTS[name]} counts rows of all groups together", _TOP
    if name == "Sample":
        return (
            "TABLESAMPLE takes other rows whenever it is computed",
            "Choose by the row itself: `WHERE pmod(xxhash64(id), 100) < 10` keeps a tenth of the "
            "ids",
        )
    if name == "Deduplicate" and not node.outputSet().subsetOf(_set_of(node)):
        return (
            "dropDuplicates over some of the columns keeps any of the rows that are equal in them",
            "Say which one: `ROW_NUMBER() OVER (PARTITION BY <those columns and the group> ORDER "
            "BY at DESC, id) AS n` and `WHERE n = 1`",
        )
    if name == "Window" and _is_without_order(node):
        return (
            "a window function is ordered by what is the same in all rows of its partition, so "
            "that any of them may be the first",
            "Order by columns that tell any two rows apart: `ORDER BY at, id`",
        )
    return None


def _why_expressions(spark: SparkSession, node: JavaObject) -> Reason | None:
    # Asked of all at once first: each question to the JVM takes its time, and tables are wide.
    if not node.deterministic() or holds(spark, node, "CURRENT_LIKE"):
        for expression in items(node.expressions()):
            if (why := why_unrepeatable(spark, expression)) is not None:
                return why
    if kind(node) in ("Aggregate", "Window"):
        for expression in items(node.expressions()):
            if (why := _why_disordered(expression)) is not None:
                return why
    # The columns that a query asks of files are put into the output of what it reads.
    if f"{_OF_FILES}#" in node.output().toString() and any(
        one.name() == _OF_FILES and one.metadata().contains("__metadata_col")
        for one in items(node.output())
    ):
        return (
            f"column `{_OF_FILES}` tells of files, which are rewritten without a change of rows",
            "Leave it out, or write it as a column of its own in the step that reads the files",
        )
    return None


def _why_disordered(
    expression: JavaObject, above: str = "", ordered: bool = False
) -> Reason | None:
    """Args: above: the kind of what is made of it; ordered: in a window that has an order."""
    name = kind(expression)
    if name in _BY_ORDER and not _is_settled(expression, above, ordered):
        return (
            f"{_name_of(expression)} hangs on the order in which rows come",
            f"Write {_BY_ORDER[name]}",
        )
    if name == "WindowExpression":
        ordered = not expression.windowSpec().orderSpec().isEmpty()
    below = above if name in ("AggregateExpression", "Alias") and above else name
    found = (_why_disordered(child, below, ordered) for child in items(expression.children()))
    return next((why for why in found if why is not None), None)


def _is_settled(aggregate: JavaObject, above: str, ordered: bool) -> bool:
    """True for an aggregate whose value is the same in whatever order rows come."""
    name = kind(aggregate)
    if name == "Mode":
        return bool(aggregate.reverseOpt().nonEmpty())
    if name == "ListAgg":
        return bool(aggregate.orderExpressions().nonEmpty())
    if name in ("CollectList", "CollectSet") and above in _IN_ANY_ORDER:
        return True
    return ordered and name != "CollectSet"


def _is_without_order(window: JavaObject) -> bool:
    """True for a window with ORDER BY of nothing but constants and what it is partitioned by."""
    by, orders = items(window.partitionSpec()), items(window.orderSpec())
    return bool(orders) and all(
        one.child().references().isEmpty() or any(one.child().semanticEquals(key) for key in by)
        for one in orders
    )


def _find_culprit(expression: JavaObject) -> JavaObject:
    """The innermost part of an expression that makes it give another value each time."""
    for child in items(expression.children()):
        if not child.deterministic():
            return _find_culprit(child)
    return expression


def _set_of(deduplicate: JavaObject) -> JavaObject:
    """The columns that a deduplication compares, as a set."""
    return deduplicate.references()


def _name_of(function: JavaObject) -> str:
    name = function.name() if "UDF" in kind(function) or "UDTF" in kind(function) else None
    return f"{name if isinstance(name, str) else function.prettyName()}()"
