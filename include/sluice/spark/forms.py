"""Expressions that give the group of a row, traced through the columns that they are made of."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from ..errors import SpecError
from .plans import items, kind, with_children

Pair = tuple[JavaObject, JavaObject]
Forms = Mapping[str, list[JavaObject]]
"""Group -> expressions that equal it in every row."""


@dataclass(frozen=True)
class Rows:
    """Rows that belong to groups, or through the rows that they are joined to."""

    origins: Mapping[int, JavaObject]
    """A column's id -> what it is made of, in columns that are known here only. Of a column that
    has nothing to do with a group there is none."""
    groups: Forms
    """Made of the same columns. Of rows that belong to groups through others: their key."""
    keys: Forms = field(default_factory=dict)
    """Name of an input that belongs to groups through these rows -> the key of its rows that a row
    here meets, made of the same columns."""
    through: str = ""
    """The name of the input, of rows that belong to groups through others."""


def require(
    groups: Mapping[str, list], why: tuple[str, str], where: str, operator: str = ""
) -> Mapping[str, list]:
    """The same, if each group has something.

    Args: why: what is wrong and what to do, with {0} for the group and {1} for the operator.

    Raises SpecError for the first group that has nothing.
    """
    for group, found in groups.items():
        if not found:
            what, do = (text.format(group, operator) for text in why)
            raise SpecError(what, where=where, do=do)
    return groups


def id_of(column: JavaObject) -> int:
    """What identifies a column, whatever it is called."""
    return int(column.exprId().id())


def trace(
    spark: SparkSession, expression: JavaObject, origins: Mapping[int, JavaObject]
) -> JavaObject | None:
    """What an expression is made of; None where it is made of anything but the columns known.

    Args: origins: a column's id -> what the column is made of.
    """
    columns = items(expression.references().toSeq())
    if not columns or any(id_of(column) not in origins for column in columns):
        return None
    return _put_in(spark, expression, origins)


def _put_in(
    spark: SparkSession, expression: JavaObject, origins: Mapping[int, JavaObject]
) -> JavaObject:
    name = kind(expression)
    if name == "AttributeReference":
        return origins[id_of(expression)]
    if name == "Alias":
        return _put_in(spark, expression.child(), origins)
    children = items(expression.children())
    if not children:
        return expression
    return with_children(spark, expression, [_put_in(spark, one, origins) for one in children])


def trace_all(
    spark: SparkSession, columns: Sequence[JavaObject], origins: Mapping[int, JavaObject]
) -> list[JavaObject]:
    """What some expressions are made of, those left out of which it is not known."""
    traced = (trace(spark, column, origins) for column in columns)
    return [one for one in traced if one is not None]


def write_in(
    spark: SparkSession, form: JavaObject, keys: Sequence[Pair], exact: bool, part: bool = False
) -> list[JavaObject]:
    """The ways to compute a form from some expressions; none where there is none.

    Args:
        keys: expression -> what stands for it in the answer.
        exact: only from values that are the same wherever they are equal. 0.0 equals -0.0, and as
            text they differ.
        part: of what is computed; the whole may be equal only.
    """
    found = [
        stands
        for key, stands in keys
        if form.semanticEquals(key) and not (exact and part and is_loose(key))
    ]
    if form.references().isEmpty():
        return [form]
    if children := items(form.children()):
        ways = [write_in(spark, child, keys, exact, True) for child in children]
        found += [with_children(spark, form, chosen) for chosen in product(*ways)]
    return found


def is_loose(value: JavaObject) -> bool:
    """True for a type of which equal values may differ."""
    name = value.dataType().sql()
    return any(word in name for word in ("FLOAT", "DOUBLE", "COLLATE"))


def equalities(condition: JavaObject) -> Iterator[Pair]:
    """What a condition asks to be equal, by `=` or `<=>`."""
    if kind(condition) == "And":
        yield from equalities(condition.left())
        yield from equalities(condition.right())
    elif kind(condition) in ("EqualTo", "EqualNullSafe"):
        yield condition.left(), condition.right()


def is_among(expression: JavaObject | None, forms: Sequence[JavaObject]) -> bool:
    """True for an expression that means the same as one of some others."""
    return expression is not None and any(expression.semanticEquals(form) for form in forms)


def write_all(spark: SparkSession, groups: Forms, keys: Sequence[Pair], exact: bool) -> Forms:
    """What equals each group, computed from some expressions. Args: as of `write_in`."""
    return {
        group: [way for form in forms for way in write_in(spark, form, keys, exact)]
        for group, forms in groups.items()
    }


def find_common(ways: Sequence[Forms]) -> Forms:
    """Of each group that all have, the forms that all have."""
    first, *others = ways
    return {
        group: [form for form in forms if all(is_among(form, way[group]) for way in others)]
        for group, forms in first.items()
        if all(group in way for way in others)
    }
