"""What a query over a table may do and one over a stream may not, in any output mode, and what to
write instead. Spark refuses most of it with a sentence that says less; grouping sets and LIMIT it
takes, and gets wrong."""

from collections.abc import Iterator

from py4j.java_gateway import JavaObject

from .plans import items, kind, walk

_LATER = "Write the rows to a table, and compute it in a query over that table"
_BY_CLASS = {
    "Offset": ("OFFSET counts rows, and a stream has no first one", _LATER),
    "Sample": (
        "a sample of a stream is another one whenever a batch comes again",
        "Choose by the row itself: `WHERE pmod(xxhash64(id), 100) < 10` keeps a tenth of the ids",
    ),
    "Window": (
        "a window function (ROW_NUMBER, LAG, sum OVER ...) would have to see rows that have not "
        "come yet",
        "To keep the newest row of a key write `dedup` with `order_by` at the step; for sums over "
        f"time `GROUP BY window(at, '1 hour')`. {_LATER}",
    ),
    "Intersect": (
        "INTERSECT is no operation that Spark can continue from run to run",
        "Write `LEFT SEMI JOIN`: with a static table, or with another stream and a condition on "
        "both event times",
    ),
}
_ONE_SIDED = {
    "left": ("RightOuter", "FullOuter"),
    "right": ("LeftOuter", "FullOuter", "LeftSemi", "LeftAnti"),
}
"""Where the stream stands -> the kinds of joins in which a row of the table would have to wait for
its match for ever."""


def why_unsupported(node: JavaObject) -> tuple[str, str] | None:
    """Why an operator over a stream is refused, and what to do instead."""
    name = kind(node)
    if name in ("GlobalLimit", "LocalLimit"):
        return (
            "LIMIT over a stream takes the first rows that ever come, and no others",
            "Leave it out, or write a condition that tells which rows are wanted",
        )
    if name == "Except":
        return (
            "EXCEPT with a stream is no operation that Spark can continue from run to run",
            "Write `LEFT ANTI JOIN` against a static table, or `WHERE NOT EXISTS` over one",
        )
    if name == "Aggregate":
        return _why_not_gathered(node)
    if name == "Join":
        return _why_not_joined(node)
    return _BY_CLASS.get(name)


def _why_not_gathered(node: JavaObject) -> tuple[str, str] | None:
    groups = items(node.groupingExpressions())
    if any(part.isDistinct() for part in _calls(node)):
        return (
            "an aggregate of DISTINCT values would have to keep each of them",
            "Write approx_count_distinct(id), or size(collect_set(id)) where it has to be exact",
        )
    if any(kind(one) == "AttributeReference" and "grouping_id" in one.name() for one in groups):
        return (
            "a stream cannot be gathered by several sets of columns at once (ROLLUP, CUBE, "
            "GROUPING SETS): the total over all windows would never come",
            "Gather by the finest of them, and sum those rows in a step or a query of its own",
        )
    if groups and all(_is_session(one) or not _names(one) for one in groups):
        return (
            "sessions of all rows together are none that Spark can continue from run to run",
            "Name one more column: `GROUP BY session_window(at, '5 minutes'), id`; for one session "
            "of all, group by `everyone` of `(SELECT *, 'all' AS everyone FROM source)` as well",
        )
    return None


def _why_not_joined(node: JavaObject) -> tuple[str, str] | None:
    sides = {"left": node.left(), "right": node.right()}
    streams = [name for name, side in sides.items() if side.isStreaming()]
    if len(streams) != 1 or node.joinType().toString() not in _ONE_SIDED[streams[0]]:
        return None
    return (
        f"a {node.joinType().sql().lower()} join with the stream on its {streams[0]} would have to "
        "know that no row will ever match one of the table",
        "Keep the rows of the stream: `FROM stream LEFT JOIN table`, or `LEFT SEMI JOIN`, "
        "`LEFT ANTI JOIN`",
    )


def _calls(node: JavaObject) -> Iterator[JavaObject]:
    """The calls of aggregate functions that a node makes."""
    for made in items(node.aggregateExpressions()):
        yield from (part for part in walk(made) if kind(part) == "AggregateExpression")


def _is_session(group: JavaObject) -> bool:
    named = kind(group) in ("AttributeReference", "Alias")
    return named and bool(group.metadata().contains("spark.sessionWindow"))


def _names(group: JavaObject) -> bool:
    """True for what is made of a column."""
    return not group.references().isEmpty()
