"""Which queries keep their groups apart, so that a group can be computed from its own rows alone.

A row of the result belongs to a group, and so does each row of an input. Some groups are computed
anew by the query over the rows of the inputs that belong to them. That gives what the query over
all rows gives of these groups exactly if such a filter goes through each operator. So from the
inputs up it is followed which expressions equal the group in every row, NULL included.
"""

from collections.abc import Mapping

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession

from ..errors import SpecError, suggest
from .carried import Carrier
from .columns import col
from .forms import Rows, is_among, trace
from .grouped import Follower
from .grouped_inputs import Input, Through, resolve_inputs
from .lists import is_list_of
from .plans import analyzed_plan, holds, inline_with, items, kind
from .unfit import check_repeatable, list_nodes, list_subqueries

_MARK = "sluice input "
_CALLED = {"ListQuery": "IN", "Exists": "EXISTS", "LateralSubquery": "LATERAL"}


def mark_input(frame: DataFrame, name: str) -> DataFrame:
    """The same rows, by which an input is found in the plan of a query over them.

    The columns are named anew above the mark, so that no name that Spark makes up shows it.
    """
    marked = frame.alias(f"{_MARK}{name}")
    return marked.select(*[col(column).alias(column) for column in frame.columns])


def carry_groups(
    result: DataFrame,
    inputs: Mapping[str, DataFrame],
    groups: Mapping[str, Mapping[str, str]],
    where: str,
) -> DataFrame:
    """The result with the groups of its rows in columns of their own. Args: as of
    `check_groups_kept`, for the groups that the query does not select, and the inputs that say
    them.

    Raises SpecError for a query that mixes groups: one that is given their columns would not, and
    say something else. And where an operator does not let them through.
    """
    spark, plan = result.sparkSession, _inlined(result)
    known = resolve_inputs(inputs, groups, {}, where)
    return Carrier(spark, known, [*groups], _input_of, where).carry(plan)


def check_groups_kept(
    result: DataFrame,
    inputs: Mapping[str, DataFrame],
    groups: Mapping[str, Mapping[str, str]],
    where: str,
    through: Mapping[str, Through] | None = None,
) -> dict[str, frozenset[str]]:
    """By input, the groups of which its rows belong to a list. Raise SpecError for a query that
    mixes groups, or may give other rows of the same inputs.

    Args:
        result: the query.
        inputs: name -> marked frame, of those whose rows belong to groups; all that the query
            reads besides belongs to none.
        groups: column of the result -> {input: SQL expression over its columns}.
        where: the step, for the message.
        through: name of an input whose rows belong to groups through those of others -> how.
    """
    known = resolve_inputs(inputs, groups, through or {}, where)
    spark, plan = result.sparkSession, _inlined(result)
    nodes = list(list_nodes(spark, plan, _input_of))
    check_repeatable(spark, nodes, where)
    _check_read(spark, nodes, known, where)
    lists = {n: _find_lists(spark, plan, one) for n, one in known.items() if not one.through}
    several = frozenset().union(*lists.values())
    rows = Follower(spark, known, _input_of, where, several).follow(plan)
    for group in groups:
        _check_column(spark, plan, rows, group, where, group in several)
    return lists


def _inlined(frame: DataFrame) -> JavaObject:
    """What a frame does, without a WITH."""
    spark, plan = frame.sparkSession, analyzed_plan(frame)
    # One that is not the outermost part of the query is not put in its place yet.
    return inline_with(spark, plan) if holds(spark, plan, "CTE") else plan


def _input_of(node: JavaObject) -> str:
    """The name of the input that a node is; empty where it is none."""
    alias = node.alias() if kind(node) == "SubqueryAlias" else ""
    return alias.removeprefix(_MARK) if alias.startswith(_MARK) else ""


def _check_read(
    spark: SparkSession, nodes: list[JavaObject], inputs: Mapping[str, Input], where: str
) -> None:
    """Raise SpecError for a query that reads an input where its groups cannot be followed."""
    for node in nodes:
        for inner in list_subqueries(spark, node):
            read = map(_input_of, list_nodes(spark, inner.plan(), _input_of))
            if (name := next(filter(inputs.__contains__, read), None)) is not None:
                raise SpecError(
                    f"a subquery ({_CALLED.get(kind(inner), 'a value')}) reads input `{name}`, "
                    "whose rows belong to groups",
                    where=where,
                    do="Write a join that asks for the same group: LEFT SEMI JOIN for IN and "
                    "EXISTS, LEFT ANTI JOIN for NOT EXISTS, and LEFT JOIN with an aggregate by the "
                    "group for a value",
                )
    seen = {name for node in nodes if (name := _input_of(node))}
    if missing := sorted(set(inputs) - seen):
        raise SpecError(
            f"the query does not read input `{missing[0]}`, or does so where its plan does not "
            "show it (`collect`, `rdd`, `checkpoint`)",
            where=where,
            do="Read the input as the frame or view that it is, or take it out of `groups`",
        )


def _find_lists(spark: SparkSession, plan: JavaObject, source: Input) -> frozenset[str]:
    """The groups that an input gives a list of, and of which the result has one in a row."""
    return frozenset(
        group
        for group, expression in source.groups.items()
        for one in _named(spark, plan, group)
        if is_list_of(expression.dataType().sql(), one.dataType().sql())
    )


def _named(spark: SparkSession, plan: JavaObject, group: str) -> list[JavaObject]:
    """The columns of the result that have a group's name."""
    alike = str if spark.conf.get("spark.sql.caseSensitive") == "true" else str.lower
    return [one for one in items(plan.output()) if alike(one.name()) == alike(group)]


def _check_column(
    spark: SparkSession,
    plan: JavaObject,
    rows: Rows | None,
    group: str,
    where: str,
    listed: bool,
) -> None:
    """Raise SpecError where the result's column is not the group. Args: listed: it is one of a
    list."""
    named = _named(spark, plan, group)
    if len(named) != 1:
        names = [one.name() for one in items(plan.output())]
        raise SpecError(
            f"column `{group}`, which tells the group of a row, stands {len(named)} times in the "
            "result",
            where=where,
            value=", ".join(names),
            do=suggest(group, names) + f"Select it once: `SELECT ... AS {group}`",
        )
    if (
        rows is None
        or rows.through
        or not is_among(trace(spark, named[0], rows.origins), rows.groups[group])
    ):
        raise SpecError(
            f"column `{group}` of the result does not hold the group",
            where=where,
            do=f"Write `LATERAL VIEW explode(<what stands under groups>) AS {group}`, as it stands "
            "there"
            if listed
            else "Select the expression that stands under `groups`, as it stands there; of a full "
            "join `coalesce` of both",
        )
