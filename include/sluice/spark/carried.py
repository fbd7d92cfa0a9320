"""Groups that a query does not select, carried from its inputs to its result, beside its own
columns: of a query that keeps groups apart, so that to group by them as well changes no row.
"""

from collections.abc import Callable, Mapping, Sequence

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ..errors import SpecError
from .forms import trace
from .grouped import ROW_BY_ROW, Follower
from .grouped_inputs import Input
from .jvm import jvm_of
from .plans import analyzed_plan, expand, frame_of_plan, items, kind, project, with_children
from .plans import sequence as seq

Shown = tuple[JavaObject, list[JavaObject]]
"""A node, and the columns of it that hold the groups; none where its rows belong to none."""
_SIDES = {"LeftSemi": (0,), "LeftAnti": (0,), "LeftOuter": (0,), "RightOuter": (1,)}
"""Kind of join -> the sides whose groups its rows have; of others either's."""
_THROUGH = {*ROW_BY_ROW, "Window", "Generate", "LateralJoin", "Distinct"}
"""Operators that give the columns of what is below them."""
_SETS = {"Union", "Intersect", "Except"}
_EQUAL = {"Aggregate", "Distinct", "Deduplicate", "Intersect", "Except"}
"""Those that put equal rows together, which are fewer with a column more unless that follows from
the others."""


class Carrier:
    """Makes the plan of a query anew, with groups in columns of their own.

    Args: inputs: whose rows belong to groups. names: of the groups, in order. name_of: the input
    that a node is, empty for any other. where: the step, for messages.
    """

    def __init__(
        self,
        spark: SparkSession,
        inputs: Mapping[str, Input],
        names: Sequence[str],
        name_of: Callable[[JavaObject], str],
        where: str,
    ) -> None:
        self._spark, self._inputs, self._names = spark, inputs, names
        self._name_of, self._where = name_of, where
        self._follower = Follower(spark, inputs, name_of, where)
        named = spark.range(0).select(*(F.lit(1).alias(name) for name in names))
        self._aliases = items(analyzed_plan(named).projectList())

    def carry(self, plan: JavaObject) -> DataFrame:
        """The query with its own columns and those of the groups."""
        carried, columns = self._carry(plan)
        both = [*items(plan.output()), *columns]
        return frame_of_plan(self._spark, project(self._spark, both, carried))

    def _carry(self, node: JavaObject) -> Shown:
        if (source := self._inputs.get(self._name_of(node))) is not None:
            return self._start(node, source)
        below = items(node.children())
        found = [self._carry(child) for child in below]
        if not any(columns for _, columns in found):
            return node, []
        return self._above(node, below, found)

    def _start(self, node: JavaObject, source: Input) -> Shown:
        here = {known: node.output().apply(place) for known, place in source.columns.items()}
        groups = [trace(self._spark, source.groups[name], here) for name in self._names]
        return self._add(node, groups)

    def _add(self, node: JavaObject, groups: Sequence[JavaObject | None]) -> Shown:
        """A node that gives some expressions beside the columns of one."""
        made = [
            with_children(self._spark, alias, [group]).newInstance()
            for alias, group in zip(self._aliases, groups, strict=True)
        ]
        above = project(self._spark, [*items(node.output()), *made], node)
        return above, [one.toAttribute() for one in made]

    def _above(self, node: JavaObject, below: list[JavaObject], found: list[Shown]) -> Shown:
        name, (child, columns) = kind(node), found[0]
        if name in _EQUAL:
            bare = [
                project(self._spark, items(one.output()), carried)
                for one, (carried, _) in zip(below, found, strict=True)
            ]
            self._follower.follow(with_children(self._spark, node, bare))
        if name in _THROUGH:
            return with_children(self._spark, node, [child]), columns
        if name == "Project":
            return project(self._spark, [*items(node.projectList()), *columns], child), columns
        if name == "Aggregate":
            keys, made = (
                seq(self._spark, [*items(one), *columns])
                for one in (node.groupingExpressions(), node.aggregateExpressions())
            )
            return node.copy(keys, made, child, node.hint()), columns
        if name == "Deduplicate":
            return node.copy(seq(self._spark, [*items(node.keys()), *columns]), child), columns
        if name == "Expand":
            rows = [[*items(one), *columns] for one in items(node.projections())]
            output = [*items(node.output()), *columns]
            return expand(self._spark, rows, output, child), columns
        if name == "Join":
            return self._join(node, found)
        if name in _SETS:
            return self._set(node, below, found)
        raise SpecError(
            f"the operator {name} does not let a group through that the query does not select",
            where=self._where,
            value=", ".join(self._names),
            do="Select the group, and call it under `groups` as the column is called",
        )

    def _join(self, node: JavaObject, found: list[Shown]) -> Shown:
        joined = with_children(self._spark, node, [child for child, _ in found])
        name = node.joinType().toString()
        sides = [found[side][1] for side in _SIDES.get(name, (0, 1)) if found[side][1]]
        if name != "FullOuter" or len(sides) < 2:
            return joined, sides[0] if sides else []
        known = jvm_of(self._spark).org.apache.spark.sql.catalyst.expressions
        pairs = (seq(self._spark, pair) for pair in zip(*sides, strict=True))
        return self._add(joined, [known.Coalesce(pair) for pair in pairs])

    def _set(self, node: JavaObject, below: list[JavaObject], found: list[Shown]) -> Shown:
        """Columns are put together by their place: those of the groups come last."""
        sides = [
            project(self._spark, [*items(child.output()), *columns], carried)
            for child, (carried, columns) in zip(below, found, strict=True)
        ]
        made = with_children(self._spark, node, sides)
        return made, items(made.output())[-len(self._names) :]
