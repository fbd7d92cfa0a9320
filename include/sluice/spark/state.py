"""What Spark's state store holds for a query: how much by the operators' own metrics, and since
when by the store itself where that is small."""

from collections.abc import Iterable
from dataclasses import replace

from py4j.java_gateway import JavaObject
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType, TimestampType

from .columns import quote
from .custom_held import is_custom, read_custom_state
from .joins import DELAY
from .kept_state import Kept, Unit, moment
from .operators import executed_operators, metric_of
from .plans import items

READ_UP_TO = 100_000
"""What an operator may keep so that its times are read: to read the whole store costs some
CPU-seconds a million rows, which is more than what a run of a few new rows costs else."""

_UNITS: dict[str, Unit] = {
    "stateStoreSave": "group",
    "sessionWindowStateStoreSaveExec": "group",
    "symmetricHashJoin": "row",
    "dedupe": "key",
    "dedupeWithinWatermark": "key",
}
_SETTING = "spark.sql.streaming.stateStore."
_TRACKED = f"{_SETTING}rocksdb.trackTotalNumberOfRows"
_EXPIRES = "expiresAtMicros"
"""What Spark notes of a key that it deduplicates by: its event time and the watermark's delay."""


def count_state(spark: SparkSession) -> list[Kept] | None:
    """What each operator keeps behind the batch that the query has just run, by its own count; None
    where the store does not count. Asked within the batch, after its rows were read."""
    rocksdb = "RocksDB" in (spark.conf.get(f"{_SETTING}providerClass") or "")
    if rocksdb and spark.conf.get(_TRACKED, "true") != "true":
        return None
    found = []
    for node in executed_operators(spark):
        metric = metric_of(node, "numTotalStateRows")
        if metric is not None:
            name, number = node.shortName(), node.stateInfo().get().operatorId()
            unit, forever = _UNITS.get(name, "value"), name == "dedupe" and not _lets_go(node)
            delay = _delay_of(node)
            kept = Kept(name, metric.value(), unit, number, forever=forever, delay_ms=delay)
            found.append(kept)
    return sorted(found, key=lambda kept: kept.number)


def _lets_go(dedupe: JavaObject) -> bool:
    """Whether a deduplication has the time of the watermark among its keys."""
    return any(key.metadata().contains(DELAY) for key in items(dedupe.keyExpressions()))


def _delay_of(node: JavaObject) -> int | None:
    """The delay of the watermark that is declared below an operator of one input."""
    for child in items(node.children())[:1]:
        for column in items(child.output()):
            if column.metadata().contains(DELAY):
                return int(column.metadata().getLong(DELAY))
    return None


def read_times(session: SparkSession, checkpoint: str, kept: list[Kept]) -> list[Kept]:
    """The same with their times, as far as they keep few enough.

    Args: checkpoint: Spark's own folder. Raises what Spark raises where it cannot be read.
    """
    return [told for one in kept for told in _read_one(session, checkpoint, one)]


def _read_one(session: SparkSession, checkpoint: str, kept: Kept) -> list[Kept]:
    if not 0 < kept.amount <= READ_UP_TO:
        return [kept]
    if kept.unit == "value":
        return read_custom_state(session, checkpoint, kept)
    return [_find_times(kept, _open(session, checkpoint, kept.operator, kept.number))]


def read_state(session: SparkSession, checkpoint: str) -> list[Kept]:
    """What the operators of a query keep after its last batch, counted by reading all of it.

    Args: checkpoint: Spark's own folder. Raises what Spark raises where it cannot be read.
    """
    operators = session.read.format("state-metadata").load(checkpoint)
    names = operators.select("operatorId", "operatorName").distinct().orderBy("operatorId")
    kept = []
    for number, name in names.collect():
        if is_custom(name):
            kept.append(Kept(name, 1, "value", number))  # how much, reading it tells
        elif name in _UNITS:
            parts = _open(session, checkpoint, name, number)
            amount = sum(part.count() for part in parts)
            forever = name == "dedupe" and not any(_timed_fields(part.schema) for part in parts)
            kept.append(Kept(name, amount, _UNITS[name], number, forever=forever))
    return read_times(session, checkpoint, kept)


def _open(session: SparkSession, checkpoint: str, operator: str, number: int) -> list[DataFrame]:
    """The store of an operator, of a join that of each side."""
    state = session.read.format("statestore").option("operatorId", number)
    if operator != "symmetricHashJoin":
        return [state.load(checkpoint)]
    return [state.option("joinSide", side).load(checkpoint) for side in ("left", "right")]


def _find_times(kept: Kept, parts: Iterable[DataFrame]) -> Kept:
    """The same with the first and last times of what is kept."""
    found: dict[str, list[int]] = {"oldest": [], "closes_first": [], "closes_last": []}
    for part in parts:
        if asked := _time_columns(kept, part.schema):
            told = part.select(*(column.alias(name) for name, column in asked.items())).collect()[0]
            for name, millis in told.asDict().items():
                found[name] += [millis] if millis is not None else []
    return replace(
        kept,
        oldest=moment(min(found["oldest"], default=None)),
        closes_first=moment(min(found["closes_first"], default=None)),
        closes_last=moment(max(found["closes_last"], default=None)),
    )


def _time_columns(kept: Kept, schema: StructType) -> dict[str, Column]:
    """What to ask a store for, milliseconds, by the field of a `Kept`."""
    value = schema["value"].dataType
    if isinstance(value, StructType) and _EXPIRES in value.names:
        leaves = F.col(f"value.{_EXPIRES}") / 1000
        asked = {"closes_first": F.min(leaves), "closes_last": F.max(leaves)}
        if kept.delay_ms is not None:
            asked["oldest"] = F.min(leaves) - kept.delay_ms
        return {name: column.cast("bigint") for name, column in asked.items()}
    for path, field in _timed_fields(schema):
        if isinstance(field, TimestampType):
            return {"oldest": F.min(F.unix_millis(F.col(path)))}
        start, end = (F.unix_millis(F.col(f"{path}.{side}")) for side in ("start", "end"))
        asked = {"oldest": F.min(start)}
        if kept.unit == "group":
            asked |= {"closes_first": F.min(end), "closes_last": F.max(end)}
        return asked
    return {}


def _timed_fields(schema: StructType) -> list[tuple[str, DataType]]:
    """The windows and event times of a store's keys and values: those of keys first."""
    found = []
    for part in ("key", "value"):
        within = schema[part].dataType
        for field in within.fields if isinstance(within, StructType) else ():
            window = isinstance(field.dataType, StructType) and field.dataType.names == [
                "start",
                "end",
            ]
            timed = isinstance(field.dataType, TimestampType) and DELAY in field.metadata
            if window or timed:
                found.append((f"{part}.{quote(field.name)}", field.dataType))
    return found
