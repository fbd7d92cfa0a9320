"""What is known of the groups of rows behind each operator of a query."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from ..errors import SpecError
from .forms import (
    Forms,
    Pair,
    Rows,
    equalities,
    find_common,
    id_of,
    is_among,
    require,
    trace,
    trace_all,
    write_all,
    write_in,
)
from .grouped_inputs import Input
from .grouped_joins import INNER, join_rows
from .lists import unfold, unfold_windows
from .mixed import APART, GLOBAL, HALF, INDISTINCT, TOTALS, UNGROUPED, UNPARTED
from .plans import items, kind, walk
from .unfit import Reason, why_not_followed

ROW_BY_ROW = {
    *("Filter", "Sort", "SubqueryAlias", "View", "ResolvedHint", "CollectMetrics"),
    *("Repartition", "RepartitionByExpression", "RebalancePartitions", "EventTimeWatermark"),
}
"""Operators that take or leave a row as it is."""
_GENERATORS = {"Explode", "PosExplode", "Inline", "Stack", "JsonTuple", "VariantExplode"}
"""Those that make rows of one row and remember nothing."""
_SET = "spark_grouping_id"
"""The column that Spark adds to tell grouping sets apart."""


class Follower:
    """Follows groups from the inputs up to the result.

    Args:
        name_of: the name of the input that a node is; empty of any other.
        where: the step, for messages.
        several: groups of which a row belongs to a list, until `explode` makes a row of each.
    """

    def __init__(
        self,
        spark: SparkSession,
        inputs: Mapping[str, Input],
        name_of: Callable[[JavaObject], str],
        where: str,
        several: Collection[str] = (),
    ) -> None:
        self._spark, self._inputs, self._name_of, self._where = spark, inputs, name_of, where
        self._several = several
        self._operators: dict[str, Callable[..., Rows]] = {
            **dict.fromkeys(ROW_BY_ROW, lambda _, rows: rows),
            **dict.fromkeys(("Generate", "LateralJoin"), self._spread),
            "Project": self._project,
            "Expand": self._expand,
            "Aggregate": self._aggregate,
            "Window": self._window,
            **dict.fromkeys(("Distinct", "Deduplicate"), self._distinct),
            **dict.fromkeys(("Union", "Intersect", "Except"), self._set),
        }

    def follow(self, node: JavaObject, asked: Sequence[Pair] = ()) -> Rows | None:
        """What is known of a node's rows; None of rows that belong to no group.

        Args: asked: what filters above ask to be equal, where rows that differ are lost anyway.

        Raises SpecError for an operator that mixes groups.
        """
        name = kind(node)
        if (source := self._inputs.get(self._name_of(node))) is not None:
            return self._start(node, source)
        if name == "Join":
            return self._join(node, asked)
        if name == "Filter":
            asked = [*asked, *equalities(node.condition())]
        passes = name in ROW_BY_ROW or name == "Project"
        rows = [
            self.follow(child, _about(child, asked) if passes else ())
            for child in items(node.children())
        ]
        if not any(rows):
            return None
        if name not in self._operators:
            raise self._refusal(*why_not_followed(node))
        return self._operators[name](node, *rows)

    def _join(self, node: JavaObject, asked: Sequence[Pair]) -> Rows | None:
        own = list(equalities(node.condition().get())) if node.condition().nonEmpty() else []
        inner = node.joinType().toString() in INNER
        asked = [*asked, *own] if inner else own
        left, right = (
            self.follow(side, _about(side, asked) if inner else ())
            for side in (node.left(), node.right())
        )
        return join_rows(self._spark, node, (left, right), asked, self._where)

    def _start(self, node: JavaObject, source: Input) -> Rows:
        # Columns of their own for each place: one id may stand for both roles of a self-join.
        here = {place: node.output().apply(place) for place in source.columns.values()}
        fresh = {place: column.newInstance() for place, column in here.items()}
        over = {known: fresh[place] for known, place in source.columns.items()}
        groups, keys = (
            {name: trace_all(self._spark, [expression], over) for name, expression in said.items()}
            for said in (source.groups, source.keys)
        )
        for name, window in source.windows.items():
            groups[name] += trace_all(self._spark, [window], over)
        origins = {id_of(here[place]): fresh[place] for place in here}
        return Rows(origins, groups, keys, source.through)

    def _project(self, node: JavaObject, rows: Rows) -> Rows:
        return replace(rows, origins=self._made(items(node.projectList()), rows))

    def _made(self, columns: list[JavaObject], rows: Rows) -> dict[int, JavaObject]:
        traced = ((one, trace(self._spark, one, rows.origins)) for one in columns)
        return {id_of(column): origin for column, origin in traced if origin is not None}

    def _expand(self, node: JavaObject, rows: Rows) -> Rows:
        """A row becomes several, and a column is known where it is the same in all of them."""
        origins = {}
        for column, *made in zip(
            items(node.output()), *map(items, items(node.projections())), strict=True
        ):
            traced = [trace(self._spark, one, rows.origins) for one in made]
            if traced[0] is not None and all(is_among(one, traced[:1]) for one in traced):
                origins[id_of(column)] = traced[0]
        return unfold_windows(
            self._spark, node, replace(rows, origins=origins), rows, self._several
        )

    def _spread(self, node: JavaObject, rows: Rows) -> Rows:
        """A row comes with what is made of it: by a generator, or by a query over other tables."""
        lateral = kind(node) == "LateralJoin"
        if lateral and node.joinType().toString() not in (*INNER, "LeftOuter"):
            raise self._refusal(*why_not_followed(node))
        for one in walk(node.right().plan()) if lateral else [node]:
            if kind(one) == "Generate" and kind(one.generator()) not in _GENERATORS:
                raise self._refusal(*why_not_followed(one))
        return rows if lateral else unfold(self._spark, node, rows, self._several)

    def _aggregate(self, node: JavaObject, rows: Rows) -> Rows:
        keys = items(node.groupingExpressions())
        sessions = {id_of(key) for key in keys if _has_name(key) and _is_session(key)}
        origins = {known: one for known, one in rows.origins.items() if known not in sessions}
        sets = any(_has_name(key) and key.name() == _SET for key in keys)
        why = TOTALS if sets else UNGROUPED if keys else GLOBAL
        groups = self._keep(rows, trace_all(self._spark, keys, origins), why)
        kept = replace(rows, origins=origins, groups=groups)
        # What an aggregate makes is of no use to a form, which holds none.
        return replace(kept, origins=self._made(items(node.aggregateExpressions()), kept))

    def _window(self, node: JavaObject, rows: Rows) -> Rows:
        keys = trace_all(self._spark, items(node.partitionSpec()), rows.origins)
        return replace(rows, groups=self._keep(rows, keys, UNPARTED))

    def _distinct(self, node: JavaObject, rows: Rows) -> Rows:
        keys = trace_all(self._spark, items(node.output()), rows.origins)
        return replace(rows, groups=self._keep(rows, keys, INDISTINCT))

    def _keep(self, rows: Rows, keys: list[JavaObject], why: Reason) -> Forms:
        """The forms that are the same in all rows with equal keys."""
        pairs = [(key, key) for key in keys]
        kept = {
            group: [form for form in forms if write_in(self._spark, form, pairs, exact=True)]
            for group, forms in rows.groups.items()
        }
        return require(kept, why, self._where)

    def _refusal(self, what: str, do: str) -> SpecError:
        return SpecError(what, where=self._where, do=do)

    def _set(self, node: JavaObject, *sides: Rows | None) -> Rows:
        """UNION, INTERSECT and EXCEPT put columns together by their place."""
        name = kind(node).upper()
        known = [side for side in sides if side is not None]
        if len(known) < len(sides) or len({side.through for side in known}) > 1:
            raise self._refusal(*(text.format(name) for text in HALF))
        fresh = [column.newInstance() for column in items(node.output())]
        places, groups, met = [], [], []
        for side, child in zip(known, items(node.children()), strict=True):
            ids = map(id_of, items(child.output()))
            at = {i: side.origins[one] for i, one in enumerate(ids) if one in side.origins}
            keys = [(origin, fresh[i]) for i, origin in at.items()]
            places.append(set(at))
            exact = name != "UNION"
            groups.append(write_all(self._spark, side.groups, keys, exact))
            met.append(write_all(self._spark, side.keys, keys, exact))
        columns = enumerate(map(id_of, items(node.output())))
        both = set.intersection(*places)
        origins = {column: fresh[i] for i, column in columns if i in both}
        common = require(find_common(groups), APART, self._where, name)
        return Rows(origins, common, find_common(met), known[0].through)


def _about(node: JavaObject, asked: Sequence[Pair]) -> list[Pair]:
    """What is asked of a node's own columns: further down an id may stand for another's."""
    own = node.outputSet()
    return [pair for pair in asked if all(one.references().subsetOf(own) for one in pair)]


def _has_name(expression: JavaObject) -> bool:
    return kind(expression) in ("AttributeReference", "Alias")


def _is_session(key: JavaObject) -> bool:
    """True for a session, which is known only once its rows are together."""
    return bool(key.metadata().contains("spark.sessionWindow"))
