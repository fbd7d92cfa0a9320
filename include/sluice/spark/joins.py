"""When a row of a join of two streams can have no match any more, as Spark 4.2 works it out.

It goes by the first column of event time that has to equal something of the other stream, else by a
range of both event times (`StreamingSymmetricHashJoinHelper`). What such a column has to equal it
does not look at, and lets rows go that would match: in `i.at = c.at - INTERVAL 1 HOUR` a row of
`i` an hour early, where only one of two equal times has a watermark a row that waits for the other.
"""

from collections.abc import Iterator
from functools import reduce

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from .jvm import jvm_of
from .plans import items, joins_streams, kind, with_children

DELAY = "spark.watermarkDelayMs"
"""Metadata of a column of event time that has a watermark."""
_BOTH = (
    "Give both inputs a watermark, and write a condition on both event times: `c.at BETWEEN i.at "
    "AND i.at + INTERVAL 1 HOUR`, or equal windows of both"
)
_SOME_MOMENT = 2**40
"""Milliseconds; only whether there is a bound is asked, not which."""
_KEPT = {
    (False, False): "every row of both",
    (False, True): "every row of its left side",
    (True, False): "every row of its right side",
}
_TOLD = {"LeftOuter": (0,), "RightOuter": (1,), "FullOuter": (0, 1), "LeftSemi": (0,)}
"""Kind of join -> the sides of which a row comes, or is given up, once it can have no match."""


def why_join_is_wrong(spark: SparkSession, join: JavaObject) -> tuple[str, str] | None:
    """Why a join of two streams is refused, and what to do instead."""
    name, kind_of = join.joinType().toString(), join.joinType().sql().lower()
    if name == "LeftAnti":
        return (
            "a left anti join of two streams is none that Spark has",
            "Write `LEFT JOIN ... WHERE c.id IS NULL`, with a condition on both event times",
        )
    if lone := _find_lone_time(join):
        return (
            f"a join of two streams would let rows go by {lone}, which has to equal something that "
            "is no event time of the other stream: rows that match would be lost",
            "Give both inputs a watermark, and compare their times as they are: `i.at = c.at`; "
            "or write a range: `c.at BETWEEN i.at + INTERVAL 1 HOUR AND i.at + INTERVAL 1 HOUR`",
        )
    bounded = find_bounded(spark, join)
    if not all(bounded[side] for side in _TOLD.get(name, ())):
        return (
            f"a join of two streams ({kind_of}) must know of both when a row can have no match any "
            "more; with a watermark on one side alone, or a condition that has no end, rows would "
            "be wrong or never come",
            _BOTH,
        )
    return None


def why_join_cannot_run(join: JavaObject) -> tuple[str, str] | None:
    """Why Spark would not start a join of two streams. Args: join: of the optimized plan, where a
    WHERE has become part of its condition."""
    if any(_across(join, pair) for pair in _equalities(join)):
        return None
    return (
        "two streams are joined without a column that has to be equal in both",
        "Write one into the condition: `ON i.id = c.id AND c.at BETWEEN i.at AND ...`",
    )


def tell_what_stays(spark: SparkSession, join: JavaObject) -> str | None:
    """What a join of two streams keeps for ever, as a warning. Args: join: as above."""
    kept = _KEPT.get(find_bounded(spark, join))
    return kept and (
        f"a join of two streams keeps {kept} for ever, because no condition on both event times "
        f"says when a row can have no match any more. {_BOTH}"
    )


def keep_nulls_apart(spark: SparkSession, plan: JavaObject) -> JavaObject:
    """A query in which NULL equals nothing where two streams are joined, as it does over tables.

    Spark 4.2 finds matches there by the bytes of their keys, and relies on a filter that it infers
    for most kinds of join and types: in a full join, and for keys of floating point, NULL meets
    NULL. Said in the condition, it goes for all of them.
    """
    children = items(plan.children())
    below = [keep_nulls_apart(spark, child) for child in children]
    if any(one is not other for one, other in zip(children, below, strict=True)):
        plan = with_children(spark, plan, below)
    return _say_not_null(spark, plan) if joins_streams(plan) else plan


def _say_not_null(spark: SparkSession, join: JavaObject) -> JavaObject:
    jvm, condition = jvm_of(spark), join.condition()
    known, logical = (
        jvm.org.apache.spark.sql.catalyst.expressions,
        jvm.org.apache.spark.sql.catalyst.plans.logical,
    )
    keys = [one for pair in _equalities(join, "EqualTo") if _across(join, pair) for one in pair]
    if not keys:
        return join
    said = reduce(known.And, [condition.get(), *map(known.IsNotNull, keys)])
    some = jvm.scala.Option.apply(said)
    return logical.Join(join.left(), join.right(), join.joinType(), some, join.hint())


def find_bounded(spark: SparkSession, join: JavaObject) -> tuple[bool, bool]:
    """Of the left and of the right side: whether a row is let go at some time."""
    left, right = join.left(), join.right()
    return _is_bounded(spark, join, left, right), _is_bounded(spark, join, right, left)


def list_times(output: list[JavaObject]) -> dict[int, JavaObject]:
    """The columns of event time among others, by what identifies them."""
    return {a.exprId().id(): a for a in output if _is_time(a)}


def _is_bounded(spark: SparkSession, join: JavaObject, side: JavaObject, other: JavaObject) -> bool:
    if not list_times(items(side.output())):
        return False
    if any(_is_time(one) and _is_time(two) for one, two in _equalities(join)):
        return True
    jvm = jvm_of(spark)
    known, moment = jvm.org.apache.spark.sql.catalyst.analysis, jvm.scala.Option.apply(_SOME_MOMENT)
    bound = known.StreamingJoinHelper.getStateValueWatermark(
        side.outputSet(), other.outputSet(), join.condition(), moment
    )
    return bool(bound.isDefined())


def _find_lone_time(join: JavaObject) -> str:
    """A column of event time that has to equal something else of the other stream."""
    for pair in _equalities(join):
        timed = [one for one in pair if _is_time(one)]
        if len(timed) == 1 and _across(join, pair):
            return str(timed[0].sql())
    return ""


def _equalities(join: JavaObject, *kinds: str) -> Iterator[tuple[JavaObject, JavaObject]]:
    """What has to be equal for rows to meet. Args: kinds: of comparison; `=` and `<=>`, unless
    some are named."""
    condition = join.condition()
    parts = [condition.get()] if condition.nonEmpty() else []
    while parts:
        part = parts.pop()
        if kind(part) == "And":
            parts += [part.left(), part.right()]
        elif kind(part) in (kinds or ("EqualTo", "EqualNullSafe")):
            yield part.left(), part.right()


def _across(join: JavaObject, pair: tuple[JavaObject, JavaObject]) -> bool:
    """True for two values of which one belongs to the left and the other to the right side."""
    sides = [[_belongs(one, side) for one in pair] for side in (join.left(), join.right())]
    return sides in ([[True, False], [False, True]], [[False, True], [True, False]])


def _belongs(value: JavaObject, side: JavaObject) -> bool:
    named = value.references()
    return not named.isEmpty() and bool(named.subsetOf(side.outputSet()))


def _is_time(value: JavaObject) -> bool:
    return kind(value) == "AttributeReference" and value.metadata().contains(DELAY)
