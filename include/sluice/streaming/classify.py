"""Gives every row its event time, its reasons to be refused and the verdict of every rule.

All of them are columns, so one pass evaluates them.

In: the transform's columns and `_raw`, `_defect`, `_rescued`, `_source`, `_stage`. Out: the same
and `_event_time`, `_reasons`, `_checks`.
"""

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StringType, StructType, TimestampNTZType, TimestampType

from ..errors import SpecError, suggest
from ..quality.rules import RowRule
from ..spark.columns import (
    CHECKS,
    DEFECT,
    ENTERED,
    FUTURE_TIME,
    INPUT,
    MALFORMED,
    NULL_KEY,
    NULL_TIME,
    RAW,
    REASONS,
    STAGE,
    TIME,
    col,
)
from ..spark.plans import analyzed_plan, kind, walk
from ..spec import Dedup, EventTime, Step
from .verdicts import breaks, is_refused, mark, pack

_NO_TIME = "0001-01-01 00:00:00"


class Judged(Protocol):
    """What rows are asked for: a step, or one of its inputs."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def event_time(self) -> EventTime | None: ...  # noqa: D102
    @property
    def dedup(self) -> Dedup | None: ...  # noqa: D102


def key_columns(step: Judged, business: StructType) -> list[str]:
    """The columns of the dedup key; all of them for `*`, none without `dedup`.

    Raises SpecError for one that the transform does not make.
    """
    if step.dedup is None:
        return []
    keys = business.names if step.dedup.keys == "*" else list(step.dedup.keys)
    require_columns(keys, business, f"{step.name}: dedup.keys")
    return keys


def require_columns(names: Sequence[str], business: StructType, where: str) -> None:
    """Raise SpecError when a column is not there, naming those that are."""
    for name in names:
        if name not in business.names:
            raise SpecError(
                f"no column {name!r} after parse and transform",
                where=where,
                do=f"{suggest(name, business.names)}There are: {', '.join(business.names)}",
            )


def _time_column(step: Judged, business: StructType) -> Column:
    """The event time as a timestamp; NULL where the row has none."""
    if step.event_time is None:
        return F.lit(None).cast("timestamp")
    name = step.event_time.column
    require_columns([name], business, f"{step.name}: event_time.column")
    kind = business[name].dataType
    if isinstance(kind, StringType):
        return F.try_to_timestamp(col(name))
    if isinstance(kind, TimestampType | TimestampNTZType | DateType):
        return col(name).cast("timestamp")
    raise SpecError(
        "the event time must be a timestamp, a date or text that reads as one",
        where=f"{step.name}: event_time.column",
        value=f"{name} {kind.simpleString()}",
        do="Cast it in the transform",
    )


def mark_time(frame: DataFrame, step: Judged, business: StructType) -> DataFrame:
    """Add `_event_time`, the column of the watermark.

    A time that is missing or too far ahead reads as year 1 there, so that poison moves nothing.
    Raises SpecError for a column that holds no times, and for a second watermark.
    """
    _refuse_second_watermark(frame, step)
    time = _time_column(step, business)
    if step.event_time is None:
        return frame.withColumn(TIME, _of_input(frame, TIME, F.lit(_NO_TIME).cast("timestamp")))
    horizon = F.current_timestamp() + F.expr(
        f"INTERVAL {int(step.event_time.max_future.total_seconds())} SECONDS"
    )
    trusted = F.when(
        F.col(DEFECT).isNull()
        & (F.col(STAGE) == ENTERED)
        & time.between(F.lit(_NO_TIME).cast("timestamp"), horizon),
        time,
    )
    time = F.coalesce(trusted, F.lit(_NO_TIME).cast("timestamp"))
    return frame.withColumn(TIME, _of_input(frame, TIME, time))


def _of_input(frame: DataFrame, name: str, otherwise: Column) -> Column:
    """A column that records of several inputs have from theirs, and other rows from the step."""
    if INPUT not in frame.columns:
        return otherwise
    return F.when(F.col(INPUT).isNotNull(), F.col(name)).otherwise(otherwise)


def _refuse_second_watermark(frame: DataFrame, step: Judged) -> None:
    """Raise SpecError where `dedup` would put a watermark above one of the transform's.

    Spark takes one: "Redefining watermark is disallowed".
    """
    if step.dedup is None or step.dedup.within == "forever":
        return
    if any(kind(node) == "EventTimeWatermark" for node in walk(analyzed_plan(frame))):
        raise SpecError(
            "the transform declares a watermark with `withWatermark`, "
            "and `dedup.within` declares one as well",
            where=f"{step.name}: dedup.within",
            value=step.dedup.horizon,
            do="Leave `withWatermark` out of the transform, write `within: forever`, "
            "or deduplicate in a step before it",
        )


def judge(
    frame: DataFrame,
    step: Judged,
    business: StructType,
    rules: list[RowRule],
    place: tuple[int, int] = (0, 0),
) -> DataFrame:
    """Add `_reasons` and `_checks`: why a row is refused, and what each rule says of it.

    Args: place: number of the first rule, and for how many there is room.
    """
    sound = F.col(DEFECT).isNull() & (F.col(STAGE) == ENTERED)
    reasons = _reasons_beside_rules(step, business, sound)
    marks = mark(
        [sound & rule.evaluated for rule in rules], [sound & r.unexpected for r in rules], *place
    )
    refusing = {
        number: F.lit(rule.name)
        for number, rule in enumerate(rules, start=place[0])
        if rule.spec.on_fail == "quarantine"
    }
    # Of most rows, which need no list to be made, and whose rules are evaluated once.
    none = ~breaks(refusing) & F.coalesce(*reasons).isNull()
    reasons += [F.when(breaks([number]), name) for number, name in refusing.items()]
    given = F.array(*[F.coalesce(reason, F.lit("")) for reason in reasons])
    given = F.array_remove(given, "")  # unlike array_compact, it is compiled
    told = F.when(none, F.array().cast("array<string>")).otherwise(given)
    checks = pack(marks)
    marked = frame.withColumns(marks)
    return marked.withColumns(
        {REASONS: _of_input(frame, REASONS, told), CHECKS: _of_input(frame, CHECKS, checks)}
    ).drop(*marks)


def _reasons_beside_rules(step: Judged, business: StructType, sound: Column) -> list[Column]:
    """Each as its name where it is one, NULL elsewhere."""
    reasons = [F.when(F.col(DEFECT).isNotNull(), F.lit(MALFORMED))]
    if step.dedup is not None and step.dedup.keys != "*":
        missing = F.lit(False)
        for key in key_columns(step, business):
            missing = missing | col(key).isNull()
        reasons.append(F.when(sound & missing, F.lit(NULL_KEY)))
    if step.event_time is not None:
        untimed = sound & (F.col(TIME) == F.lit(_NO_TIME).cast("timestamp"))
        time, no_time = _time_column(step, business), F.lit(_NO_TIME).cast("timestamp")
        reasons += [
            F.when(
                untimed,
                F.when(time.isNull() | (time < no_time), F.lit(NULL_TIME)).when(
                    time != no_time, F.lit(FUTURE_TIME)
                ),
            )
        ]
    return reasons


def refusal_columns(step: Step) -> dict[str, tuple[str, ...]]:
    """For what rows of a step may be refused beside its rules, and the columns that tell."""
    reasons: dict[str, tuple[str, ...]] = {MALFORMED: ()}
    if step.key_names:
        reasons[NULL_KEY] = step.key_names
    if any(one.event_time for one in step.inputs.values()):
        reasons |= {NULL_TIME: (), FUTURE_TIME: ()}  # each input has a column of its own
    elif step.event_time is not None:
        reasons |= dict.fromkeys((NULL_TIME, FUTURE_TIME), (step.event_time.column,))
    return reasons


def leave_text(judged: DataFrame) -> DataFrame:
    """The same rows without the text of those that are not refused, which nobody asks for again:
    where rows are kept, it need not lie beside what was read of it."""
    return judged.withColumn(RAW, F.when(is_refused(), F.col(RAW)))
