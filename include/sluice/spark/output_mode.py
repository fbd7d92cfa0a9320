"""Which output modes a query may have, checked before it starts.

First by the programming guide's table, then by Spark's own checker.

`append`: a row comes once, when it can change no more. `update`: each batch brings the rows that
changed. `complete`: each batch brings all of them.
"""

from enum import StrEnum

from py4j.java_gateway import JavaObject
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from ..errors import SpecError
from .fault import sql_message
from .joins import DELAY
from .jvm import jvm_of
from .plans import items, joins_streams, kind


class QueryType(StrEnum):
    """What a streaming query keeps from batch to batch, as the guide tells queries apart."""

    AGGREGATION_IN_TIME = "an aggregation on event time with a watermark"
    OTHER_AGGREGATION = "an aggregation without a watermark on what it groups by"
    MAP_GROUPS = "mapGroupsWithState"
    FLAT_MAP_APPEND = "a state of the user's own in append mode"
    FLAT_MAP_UPDATE = "a state of the user's own in update mode"
    INNER_JOIN = "an inner join of two streams"
    OUTER_JOIN = "an outer join of two streams"
    OTHER = "a query without aggregation"


_GROWS = "only an aggregation keeps the whole result"
_CHANGES = "the rows of this query change after they were written"
_ONCE = "the rows of this query come once and never change"
TABLE: dict[QueryType, dict[str, str]] = {
    QueryType.AGGREGATION_IN_TIME: {},
    QueryType.OTHER_AGGREGATION: {"append": _CHANGES},
    QueryType.MAP_GROUPS: {"append": _CHANGES, "complete": _GROWS},
    QueryType.FLAT_MAP_APPEND: {"update": _ONCE, "complete": _GROWS},
    QueryType.FLAT_MAP_UPDATE: {"append": _CHANGES, "complete": _GROWS},
    # The guide leaves out update, which Spark 4.2 takes: rows of an inner join come once in either.
    QueryType.INNER_JOIN: {"complete": _GROWS},
    QueryType.OUTER_JOIN: {"update": _ONCE, "complete": _GROWS},
    QueryType.OTHER: {"complete": _GROWS},
}
"""Query type -> the modes it may not have, and why."""

_STATE = {
    "FlatMapGroupsWithState",
    "FlatMapGroupsInPandasWithState",
    "TransformWithState",
    "TransformWithStateInPySpark",
    "TransformWithStateInPandas",
}
_GROUPS = {
    QueryType.AGGREGATION_IN_TIME,
    QueryType.OTHER_AGGREGATION,
    QueryType.MAP_GROUPS,
    QueryType.FLAT_MAP_UPDATE,
}
_KEEPS = {
    *("Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark"),
    *("GlobalLimit", "Limit"),
    *_STATE,
}
_ADVICE = {
    "append": "Declare a watermark in a Python transform (rows.withWatermark('at', '1 hour')) and "
    "group by that time or a window of it; or write `mode: update` with `keys` at the Delta sink, "
    "so that each batch replaces the groups that changed; or `mode: complete`",
    "update": "Leave `mode: update` out",
    "complete": "Leave `mode: complete` out",
}


def why_not(query: QueryType, mode: str) -> str | None:
    """Why a type of query may not have an output mode; None when it may."""
    return TABLE[query].get(mode)


def find_query_types(frame: DataFrame) -> set[QueryType]:
    """The types of a streaming frame's query; more than one where it joins and then aggregates."""
    return {kind for node in _streaming_nodes(frame) if (kind := _type_of(node)) is not None} or {
        QueryType.OTHER
    }


def is_stateful(frame: DataFrame) -> bool:
    """True where Spark keeps something from batch to batch: to read one twice changes it twice."""
    return any(
        kind(node) in _KEEPS or _type_of(node) is not None for node in _streaming_nodes(frame)
    )


def check_output_mode(frame: DataFrame, mode: str, where: str) -> None:
    """Raise SpecError when a streaming frame cannot be written in an output mode.

    Args:
        frame: the query.
        mode: append, update or complete.
        where: the step, for the message.
    """
    for query in sorted(find_query_types(frame)):
        if (why := why_not(query, mode)) is not None:
            raise SpecError(
                f"output mode {mode} does not go with {query}: {why}", where=where, do=_ADVICE[mode]
            )
    if (refusal := spark_refusal(frame, mode)) is not None:
        raise SpecError(
            f"Spark cannot run this query in output mode {mode}: {refusal}",
            where=where,
            do="Mend the transform; `sluice validate --spark` checks it without data",
        )


def check_groups(frame: DataFrame, where: str) -> None:
    """Raise SpecError for a query in update mode whose rows are not groups that change: which row
    of a key came last would hang on how the backlog was cut.

    Args: where: the step, for the message.
    """
    if not find_query_types(frame) & _GROUPS:
        raise SpecError(
            "`mode: update` replaces groups whenever they change, and the rows of this query come "
            "once and never change",
            where=where,
            do="Group them in the transform; or write `dedup` with `order_by`, which says of rows "
            "with one key which of them stays",
        )


def spark_refusal(frame: DataFrame, mode: str) -> str | None:
    """What Spark's own check says against a query; None when it would start."""
    modes = jvm_of(frame.sparkSession).org.apache.spark.sql.streaming.OutputMode
    return _ask(frame, "checkForStreaming", getattr(modes, mode.capitalize())())


def continuous_refusal(frame: DataFrame) -> str | None:
    """What Spark says against a query under the continuous trigger; None when it would start."""
    return _ask(
        frame,
        "checkForContinuous",
        jvm_of(frame.sparkSession).org.apache.spark.sql.streaming.OutputMode.Append(),
    )


def _ask(frame: DataFrame, check: str, mode: object) -> str | None:
    checker = jvm_of(
        frame.sparkSession
    ).org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    try:
        getattr(checker, check)(frame._jdf.queryExecution().analyzed(), mode)
    except PySparkException as error:
        return sql_message(error).split(";")[0].rstrip(".")
    return None


def _streaming_nodes(frame: DataFrame) -> list:
    nodes = [frame._jdf.queryExecution().analyzed()]
    for node in nodes:
        nodes += [child for child in items(node.children()) if child.isStreaming()]
    return nodes


def _type_of(node: JavaObject) -> QueryType | None:
    name = kind(node)
    if name == "Aggregate":
        return (
            QueryType.AGGREGATION_IN_TIME
            if _groups_by_watermark(node)
            else QueryType.OTHER_AGGREGATION
        )
    if joins_streams(node):
        return (
            QueryType.INNER_JOIN if node.joinType().toString() == "Inner" else QueryType.OUTER_JOIN
        )
    if name == "FlatMapGroupsWithState" and node.isMapGroupsWithState():
        return QueryType.MAP_GROUPS
    if name in _STATE:
        return (
            QueryType.FLAT_MAP_APPEND
            if node.outputMode().toString() == "Append"
            else QueryType.FLAT_MAP_UPDATE
        )
    return None


def _groups_by_watermark(aggregate: JavaObject) -> bool:
    columns = [
        column
        for group in items(aggregate.groupingExpressions())
        for column in items(group.references().toSeq())
    ]
    return any(column.metadata().contains(DELAY) for column in columns)
