"""What a step's choices give up, said before anybody finds out."""

from .dedup import Dedup
from .step import Step
from .trigger import describe_trigger, trigger_kind


def describe_limits(step: Step) -> list[str]:
    """What a step's choices give up, one sentence each; `sluice validate --explain` prints them."""
    lost = describe_trigger(step.trigger)
    limits = [lost] if lost else []
    if step.dedup is not None:
        limits += _of_memory(step.dedup) + _of_state(step, step.dedup) + _of_time(step.dedup)
    if trigger_kind(step.trigger) != "continuous":  # which has said so, and has no batches
        limits += dict.fromkeys(limit for sink in step.sinks for limit in sink.limits)
    return [f"{step.name}: {limit}" for limit in limits]


def _of_memory(dedup: Dedup) -> list[str]:
    """Which row of a key stays."""
    if dedup.memory == "state":
        limits = [
            "with `memory: state` Spark drops rows behind the watermark itself: they are counted "
            "as late and kept nowhere, and a backfill does not share that memory"
        ]
        if dedup.late != "merge":
            limits.append(f"`late: {dedup.late}` has no effect with `memory: state`")
        if dedup.order_by:
            limits.append(
                "with `memory: state` the first row of a key to arrive stays, whatever `order_by` "
                "says"
            )
        return limits
    if dedup.keys != "*" and not dedup.order_by:
        return [
            "exact for every cut of the backlog as long as rows with the same key are equal; where "
            "they differ, the first written stays, and the report counts such keys. `order_by` "
            "names the winner"
        ]
    if dedup.first_arrives_first:
        return [
            "exact for every cut of the backlog as long as the first by `order_by` arrives first; "
            "the report counts the keys of which it did not"
        ]
    return []


def _of_state(step: Step, dedup: Dedup) -> list[str]:
    """How long Spark's state store remembers a key."""
    if dedup.memory != "state":
        return []
    if dedup.within == "forever":
        return [
            "`within: forever` with `memory: state` never lets a key go: the state grows with "
            "every new one, and every run loads it. The report says how large it is; `memory: "
            "table` remembers as long and keeps no second copy"
        ]
    if step.event_time is not None and step.event_time.column in dedup.keys:
        return [
            f"the event time {step.event_time.column} is one of the `keys`: copies are rows of one "
            "time, and a key is kept until the watermark is past it"
        ]
    return []


def _of_time(dedup: Dedup) -> list[str]:
    """What event times decide."""
    limits = []
    if dedup.memory == "table" and dedup.late != "merge":
        limits.append(
            f"with `late: {dedup.late}` it depends on how the backlog is cut which rows are late; "
            "`late: merge` does not"
        )
    if dedup.within == "forever":
        return limits
    if dedup.order_by and dedup.memory == "table":
        limits.append(
            "with `order_by` a key is one row, however far apart its rows lie: each is compared "
            "with the whole table, and `within` only says what is late"
        )
    elif dedup.keys != "*":
        more = "compares with the whole table" if dedup.memory == "table" else "keeps every key"
        limits.append(
            "copies of a key farther than `within` apart in event time are two rows; "
            f"`within: forever` {more}"
        )
    return limits
