"""What is known of the groups of rows behind a join."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from ..errors import SpecError
from .forms import Forms, Pair, Rows, id_of, is_among, is_loose, require, trace, write_all
from .jvm import jvm_of
from .plans import items, kind, sequence
from .unfit import why_not_followed

INNER = ("Inner", "Cross")
_KEEPS = {"LeftOuter": 0, "LeftSemi": 0, "LeftAnti": 0, "RightOuter": 1}
"""Kind of join -> the side of which a row stays what it is, with or without a match."""
_UNEQUAL = (
    "a join ({1}) of two inputs lets rows of different groups meet: it does not ask for an equal "
    "`{0}`",
    "Write it into the condition, as it is written under `groups`: `ON l.{0} = r.{0} AND ...`",
)
_STRANGE = (
    "a join ({0}) keeps rows of a table that has no groups because of rows that belong to one, or "
    "because there is none: they would come with every group",
    "Keep the rows that belong to groups: `FROM orders LEFT JOIN products`, or write JOIN",
)
_UNKEYED = (
    "the {1} can let any row of it change any group: it does not ask for the key (`{0}`)",
    "Write what stands under `through` into the condition: `ON o.product = p.id AND ...`",
)
_TWO = (
    "a join ({0}) of two inputs that belong to groups through others",
    "Join each of them to the input that it belongs to groups through; or write `static: true` "
    "in place of `through` at one of them, which has all computed when it changes",
)
_UNNAMED = (
    "a full join of inputs of which the group's column `{0}` is not a column on both sides",
    "Select it on each side first: `(SELECT date(at) AS {0}, ... FROM orders) FULL JOIN "
    "(...) USING ({0})`",
)


def join_rows(
    spark: SparkSession,
    node: JavaObject,
    sides: tuple[Rows | None, Rows | None],
    asked: Sequence[Pair],
    where: str,
) -> Rows | None:
    """What is known of the rows of a join; None of rows that belong to no group.

    Args:
        sides: what is known of the rows of the left and of the right side.
        asked: pairs that are equal wherever two rows meet.
        where: the step, for the message.

    Raises SpecError for a join that lets rows of different groups meet.
    """
    (left, right), name = sides, node.joinType().toString()
    said, both_ways = node.joinType().sql().lower(), [p for one in asked for p in (one, one[::-1])]
    if left is None or right is None:
        rows = left or right
        return rows and _meet(spark, node, rows, rows is left, both_ways, where)
    if left.through != right.through:
        own = _look_up(spark, (left, right), both_ways, said, where)
        return _meet(spark, node, own, own is left, both_ways, where)
    require(_find_links(spark, (left, right), both_ways), _UNEQUAL, where, said)
    if name in INNER:
        return replace(
            left,
            origins={**left.origins, **right.origins},
            groups=_add(left.groups, right.groups),
            keys=_add(left.keys, right.keys),
        )
    if name == "FullOuter":
        return _join_fully(spark, node, (left, right), where)
    if name not in _KEEPS:
        what, do = why_not_followed(node)
        raise SpecError(what, where=where, do=do)
    return (left, right)[_KEEPS[name]]


def _look_up(
    spark: SparkSession, sides: tuple[Rows, Rows], asked: Sequence[Pair], said: str, where: str
) -> Rows:
    """The side that has groups of its own, of two of which the other belongs to groups through it.

    Raises SpecError unless rows meet by the key alone.
    """
    if all(rows.through for rows in sides):
        raise SpecError(_TWO[0].format(said), where=where, do=_TWO[1])
    own, other = sides[::-1] if sides[0].through else sides
    (key,) = other.groups
    met = replace(own, groups={key: own.keys.get(other.through, [])})
    links = _find_links(spark, (met, other), asked)
    require(links, _UNKEYED, where, f"{said} join with `{other.through}`")
    return own


def _meet(
    spark: SparkSession,
    node: JavaObject,
    rows: Rows,
    is_left: bool,
    asked: Sequence[Pair],
    where: str,
) -> Rows:
    """What is known of rows that are joined to those of a table that has no groups of its own.

    Raises SpecError where rows of the table would be kept for themselves.
    """
    name = node.joinType().toString()
    if _KEEPS.get(name) == (0 if is_left else 1):
        return rows
    if name not in INNER:
        said = node.joinType().sql().lower()
        raise SpecError(_STRANGE[0].format(said), where=where, do=_STRANGE[1])
    return replace(rows, origins={**_find_equal(spark, rows, asked), **rows.origins})


def _add(some: Forms, others: Forms) -> Forms:
    return {name: [*some.get(name, []), *others.get(name, [])] for name in {**some, **others}}


def _find_links(spark: SparkSession, sides: tuple[Rows, Rows], asked: Sequence[Pair]) -> Forms:
    """What says that a row meets rows of its own group alone: forms that are computed in the same
    way from what has to be equal."""
    left, right = sides
    traced = [(trace(spark, a, left.origins), trace(spark, b, right.origins)) for a, b in asked]
    equal = [(one, other) for one, other in traced if one is not None and other is not None]
    of_left = write_all(spark, left.groups, [(one, one) for one, _ in equal], exact=True)
    of_right = write_all(spark, right.groups, [(other, one) for one, other in equal], exact=True)
    return {
        group: [form for form in forms if is_among(form, of_right[group])]
        for group, forms in of_left.items()
    }


def _find_equal(spark: SparkSession, rows: Rows, asked: Sequence[Pair]) -> dict[int, JavaObject]:
    """The columns of a table without groups that equal a group wherever a row meets one."""
    forms = [form for forms in rows.groups.values() for form in forms]
    found = {}
    for one, other in asked:
        if kind(other) == "AttributeReference" and not is_loose(other):
            origin = trace(spark, one, rows.origins)
            if origin is not None and is_among(origin, forms):
                found[id_of(other)] = origin
    return found


def _join_fully(
    spark: SparkSession, node: JavaObject, sides: tuple[Rows, Rows], where: str
) -> Rows:
    """Where one side has no row its columns are NULL, and the group is that of the other."""
    origins: dict[int, JavaObject] = {}
    written = []
    for rows, child in zip(sides, (node.left(), node.right()), strict=True):
        columns = [one for one in items(child.output()) if id_of(one) in rows.origins]
        fresh = {id_of(column): column.newInstance() for column in columns}
        keys = [(rows.origins[known], column) for known, column in fresh.items()]
        origins |= fresh
        forms = write_all(spark, rows.groups, keys, exact=False)
        written.append({g: list(filter(_is_null_without_row, f)) for g, f in forms.items()})
    left, right = written
    groups = {
        group: [
            form for one in forms for other in right[group] for form in _either(spark, one, other)
        ]
        for group, forms in left.items()
    }
    return Rows(origins, require(groups, _UNNAMED, where), through=sides[0].through)


def _is_null_without_row(expression: JavaObject) -> bool:
    """True for what is NULL where all columns are, as beside a row that has no match."""
    children = items(expression.children())
    if kind(expression) == "AttributeReference":
        return True
    if kind(expression) == "Coalesce":
        return all(map(_is_null_without_row, children))
    return bool(expression.nullIntolerant()) and any(map(_is_null_without_row, children))


def _either(spark: SparkSession, one: JavaObject, other: JavaObject) -> Iterator[JavaObject]:
    """The ways to write `coalesce` of two expressions, of which one may be such itself."""
    known = jvm_of(spark).org.apache.spark.sql.catalyst.expressions
    for pair in ((one, other), (other, one)):
        parts = [items(e.children()) if kind(e) == "Coalesce" else [e] for e in pair]
        for written in (pair, (*parts[0], *parts[1])):
            yield known.Coalesce(sequence(spark, written))
