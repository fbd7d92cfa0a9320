"""Offsets of topics without a broker: what a checkpoint notes, and what follows from what the
brokers hold."""

from typing import Any

from ..checkpoint.log import Checkpoint
from ..spec import KafkaStart
from .kafka_broker import Offsets

TIMED_PARTITIONS = 8
"""Partitions of which the first waiting record is read for its time: those with the most
waiting."""


def offsets_after(checkpoint: Checkpoint, batch: int | None) -> Offsets | None:
    """Topic -> partition -> the offset to be read next after a batch; before the first one where
    the source began; None when nothing is noted."""
    if batch is None:
        initial = checkpoint.initial_offset()
        return None if initial is None else _parse(initial)
    return _parse(checkpoint.source_offset(batch))


def planned_offsets(checkpoint: Checkpoint, batch: int) -> dict[str, dict[int, tuple[int, int]]]:
    """Topic -> partition -> first offset and the one after the last, of a planned batch.

    Offsets that the brokers lost are in it: they were planned.
    """
    before = _parse(
        checkpoint.source_offset(batch - 1) if batch else checkpoint.initial_offset() or {}
    )
    until = _parse(checkpoint.source_offset(batch))
    # A partition that ends before its beginning was made anew; Spark reads nothing of it. One that
    # is new is read from its first record.
    return {
        topic: {
            p: (min(before.get(topic, {}).get(p, 0), end), end) for p, end in partitions.items()
        }
        for topic, partitions in until.items()
    }


def _parse(position: dict) -> Offsets:
    return {
        topic: {int(partition): offset for partition, offset in partitions.items()}
        for topic, partitions in position.items()
    }


def reach(committed_end: Offsets, end: Offsets, committed: Offsets) -> Offsets:
    """Ends, but where a partition was read beyond the end of what is committed in it (by a run that
    reads all), no less than that."""
    return {
        t: {
            p: max(offset, min(committed.get(t, {}).get(p, 0), end.get(t, {}).get(p, 0)))
            for p, offset in partitions.items()
        }
        for t, partitions in committed_end.items()
    }


def find_start(
    start: str | KafkaStart, first: Offsets, end: Offsets, at: Offsets
) -> tuple[Offsets, bool]:
    """Where the first run would begin, and whether it has to run for that place to stay where it
    is. `at`: the first offsets at `start.timestamp`."""
    named: dict[str, dict[int, int | str]]
    if isinstance(start, str):
        named = {t: dict.fromkeys(partitions, start) for t, partitions in end.items()}
    elif start.offsets is not None:
        named = {
            t: {p: start.offsets.get(t, {}).get(p, "earliest") for p in partitions}
            for t, partitions in end.items()
        }
    else:
        # A partition without such a record is read from its end as of the first run: where that is
        # must be noted before older records come.
        named = {
            t: {p: offset if offset >= 0 else "latest" for p, offset in partitions.items()}
            for t, partitions in at.items()
        }
    places = {"earliest": first, "latest": end}
    found = {
        t: {p: places[o][t][p] if isinstance(o, str) else o for p, o in partitions.items()}
        for t, partitions in named.items()
    }
    return found, any(
        offset == "latest" for partitions in named.values() for offset in partitions.values()
    )


def compare_offsets(
    start: Offsets, first: Offsets, end: Offsets, first_run: bool = False
) -> dict[str, Any]:
    """Waiting, lost, gone, recreated and new of TopicBacklog, from where reading goes on, the first
    offset there is, and the one after the last."""
    found: dict[str, dict] = {"waiting": {}, "lost": {}, "gone": {}, "recreated": {}, "new": {}}
    for topic, partitions in end.items():
        for partition, last in partitions.items():
            low, begin = first[topic][partition], start.get(topic, {}).get(partition)
            if begin is None:
                found["new"].setdefault(topic, []).append(partition)
                begin = 0
            if begin > last and not first_run:
                found["recreated"].setdefault(topic, []).append(partition)
                begin = low
            if begin < low:
                found["lost"].setdefault(topic, {})[partition] = low - begin
            if last > max(begin, low):
                found["waiting"].setdefault(topic, {})[partition] = last - max(begin, low)
    for topic, partitions in start.items():
        if missing := sorted(p for p in partitions if p not in end.get(topic, {})):
            found["gone"][topic] = missing
    return found


def most_waiting(waiting: Offsets, start: Offsets, first: Offsets) -> dict[tuple[str, int], int]:
    """Topic and partition -> the first offset that waits, of the partitions with the most."""
    places = sorted(
        ((count, t, p) for t, partitions in waiting.items() for p, count in partitions.items()),
        reverse=True,
    )
    return {
        (t, p): max(start.get(t, {}).get(p, 0), first[t][p])
        for _, t, p in places[:TIMED_PARTITIONS]
    }
