"""What waits in Kafka's topics: a checkpoint's offsets against the brokers' own, no JVM.

"Waiting" counts offsets. Marks of transactions, aborted records and compaction take offsets too, so
it may be more than there are rows, never less.
"""

import json
from dataclasses import dataclass, field
from datetime import datetime

from ..checkpoint.log import Checkpoint
from ..errors import SourceError, SpecError
from ..spec import KafkaSource, resolve_cluster
from ..storage import replace_file
from .kafka_broker import Broker, Offsets, connect
from .kafka_ending import clamp, passed_over
from .kafka_offsets import compare_offsets, find_start, most_waiting, offsets_after, reach
from .kafka_pattern import compile_pattern
from .settled import settled_batch


@dataclass(frozen=True)
class TopicBacklog:
    """What waits for one step. All by topic and partition."""

    waiting: Offsets = field(default_factory=dict)
    """Offsets to be read, where there are any."""
    lost: Offsets = field(default_factory=dict)
    """How many offsets the next run would have read, had the brokers kept them."""
    gone: dict[str, list[int]] = field(default_factory=dict)
    """Partitions the checkpoint has read and the source has no more: deleted, or not asked for any
    more."""
    recreated: dict[str, list[int]] = field(default_factory=dict)
    """Partitions of topics that have another id than when they were read, and those that end before
    the place up to which they were read: made anew, or without their end."""
    ids: dict[str, str] = field(default_factory=dict, compare=False)
    """Topic -> its id, as far as the brokers tell it."""
    new: dict[str, list[int]] = field(default_factory=dict)
    """Partitions the checkpoint does not know; they are read from their first record."""
    oldest: datetime | None = None
    """Time of the first waiting record, UTC; None when nothing waits or no record was to be had in
    time."""
    record_bytes: int | None = field(default=None, compare=False)
    """About how large a waiting record is; None as above."""
    partitions: dict[str, list[int]] = field(default_factory=dict, compare=False)
    """All that the source reads and the brokers have."""
    committed: Offsets = field(default_factory=dict, compare=False)
    """From where the checkpoint goes on; empty before the first run."""
    passed_over: Offsets = field(default_factory=dict)
    """Offsets that lay behind the source's end when they were read, and lie before it now."""
    unknown_start: bool = False
    """The first run is still to come, and it has to note the end from which it will read."""
    unknown_topics: bool = False
    """Which topics the pattern means can be said by Java only."""

    @property
    def records(self) -> int:
        """Offsets waiting in all partitions."""
        return sum(sum(partitions.values()) for partitions in self.waiting.values())

    @property
    def must_run(self) -> bool:
        """False only when a run would find nothing new, and nothing that somebody should hear
        of."""
        return bool(
            self.records
            or self.lost
            or self.gone
            or self.recreated
            or self.passed_over
            or self.unknown_start
            or self.unknown_topics
        )


def describe_losses(backlog: TopicBacklog) -> list[str]:
    """What is not there any more although it was not read, one sentence each."""
    lost = [
        f"{topic}/{p}: {count:,}"
        for topic, parts in backlog.lost.items()
        for p, count in parts.items()
    ]
    gone, anew = (
        [f"{topic}/{p}" for topic, parts in found.items() for p in parts]
        for found in (backlog.gone, backlog.recreated)
    )
    notes = (
        [f"records that were not read yet are gone from the brokers, {', '.join(lost)}"]
        if lost
        else []
    )
    notes += (
        [f"partitions that were read before are there no more: {', '.join(gone)}"] if gone else []
    )
    return notes + (
        [
            "offsets mean other records than when they were read, because their topics were made "
            f"anew: {', '.join(anew)}"
        ]
        if anew
        else []
    )


def measure_topics(source: KafkaSource, checkpoint: Checkpoint) -> TopicBacklog:
    """Ask the brokers what waits; answers within about ten seconds.

    Raises SourceError for a topic that is not there and was never read; TransientError when the
    brokers cannot be asked, so that a run decides.
    """
    committed = offsets_after(checkpoint, settled_batch(checkpoint))
    broker = connect(source)
    partitions = choose_partitions(source, broker, committed or {})
    if partitions is None:
        return TopicBacklog(unknown_topics=True)
    first = broker.first_offsets(partitions)
    end = broker.end_offsets(partitions, source.isolation)
    start, unknown = (
        (committed, False)
        if committed is not None
        else _first_offsets(source, broker, partitions, first, end)
    )
    if committed is not None and any(
        offset > end.get(t, {}).get(p, offset)
        for t, known in committed.items()
        for p, offset in known.items()
    ):
        end = reach(end, broker.end_offsets(partitions, "read_uncommitted"), committed)
    start, first, end = (clamp(offsets, source) for offsets in (start, first, end))
    found = compare_offsets(start, first, end, first_run=committed is None)
    glance = broker.glance(most_waiting(found["waiting"], start, first), source.isolation)
    ids = broker.topic_ids(partitions)
    for topic, noted in read_topic_ids(checkpoint).items():
        if ids.get(topic, noted) != noted and topic in start:
            found["recreated"][topic] = sorted(start[topic])
    return TopicBacklog(
        **found,
        ids=ids,
        partitions=partitions,
        committed=committed or {},
        passed_over=passed_over(source, checkpoint, committed or {}),
        oldest=glance.oldest,
        record_bytes=glance.record_bytes,
        unknown_start=unknown,
    )


def find_ends(source: KafkaSource) -> Offsets:
    """Where the topics of a source end now, as far as it reads them.

    Raises SourceError for a topic that is not there, SpecError for a pattern that only Java can
    read, TransientError for brokers that cannot be asked.
    """
    broker = connect(source)
    partitions = choose_partitions(source, broker, {})
    if partitions is None:
        raise SpecError(
            "only Java can say which topics the pattern means, and where they end is asked "
            "beforehand",
            where="subscribe_pattern",
            value=source.subscribe_pattern,
            do="Name the topics: `subscribe: [...]`",
        )
    return clamp(broker.end_offsets(partitions, source.isolation), source)


def read_topic_ids(checkpoint: Checkpoint) -> dict[str, str]:
    """Topic -> its id when it was read first; empty where none is noted."""
    file = checkpoint.beside("topics.json")
    return json.loads(file.read_text()) if file.exists() else {}


def note_topic_ids(checkpoint: Checkpoint, ids: dict[str, str]) -> None:
    """Note the ids of topics that are read for the first time; the others stay. Raises OSError."""
    noted = read_topic_ids(checkpoint)
    if ids.keys() - noted.keys():
        file = checkpoint.beside("topics.json")
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, json.dumps({**ids, **noted}))


def _first_offsets(
    source: KafkaSource,
    broker: Broker,
    partitions: dict[str, list[int]],
    first: Offsets,
    end: Offsets,
) -> tuple[Offsets, bool]:
    """Where the first run begins, and whether it has to run for that place to stay where it is."""
    moment = source.start_moment
    at = broker.offsets_at(partitions, moment) if moment is not None else {}
    return find_start(source.start, first, end, at)


def measure_expired(source: KafkaSource, ranges: dict[str, tuple[int, int]]) -> dict[str, int]:
    """How many offsets of ranges the brokers do not have any more, by `topic/partition`, where
    there are any. Raises TransientError when they cannot be asked."""
    partitions: dict[str, list[int]] = {}
    for place in ranges:
        topic, _, partition = place.rpartition("/")
        partitions.setdefault(topic, []).append(int(partition))
    first = {
        f"{topic}/{p}": offset
        for topic, parts in connect(source).first_offsets(partitions).items()
        for p, offset in parts.items()
    }
    return {
        place: min(first[place], until) - start
        for place, (start, until) in ranges.items()
        if first[place] > start
    }


def choose_partitions(
    source: KafkaSource, broker: Broker, committed: Offsets
) -> dict[str, list[int]] | None:
    """Topic -> partitions of a source that the brokers have; None for a pattern that only Java can
    read, before they are asked.

    Args: committed: what was read before. Raises SourceError for topics by name that are not there
    and never were; TransientError when the brokers cannot be asked.
    """
    if source.subscribe_pattern:
        pattern = compile_pattern(source.subscribe_pattern)
        return pattern and broker.find_partitions(lambda topic: bool(pattern.search(topic)))
    wanted = source.assign or dict.fromkeys(source.subscribe)
    found = broker.find_partitions(lambda topic: topic in wanted)
    missing = sorted(topic for topic in wanted if topic not in found and topic not in committed)
    missing += [
        f"{t}, partition {p}"
        for t, ps in source.assign.items()
        for p in ps
        if p not in found.get(t, [p]) and p not in committed.get(t, {})
    ]
    if missing:
        raise SourceError(
            "no such topic, or this user may not see it",
            where=f"brokers {resolve_cluster(source)[0]}",
            value="; ".join(missing),
            do="Mend the name, create the topic, or give the user the right to describe it",
        )
    return {
        topic: [p for p in partitions if not source.assign or p in source.assign[topic]]
        for topic, partitions in found.items()
    }
