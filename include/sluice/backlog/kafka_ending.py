"""Where a source ends for good: offsets from which on its topics are not this step's.

Spark knows no end of a stream: a run that drains what lies before the end may pass over what lies
behind it, so what was passed over is noted, and an end that is moved there later is refused.
"""

import json

from ..checkpoint.log import Checkpoint
from ..spec import KafkaSource
from ..storage import replace_file
from .kafka_broker import Offsets

_NOTE = "ending.json"


def end_of(source: KafkaSource, topic: str, partition: int, offset: int) -> int:
    """An offset, or the end of its partition where that comes before."""
    return min(offset, source.ending_offsets.get(topic, {}).get(partition, offset))


def clamp(offsets: Offsets, source: KafkaSource) -> Offsets:
    """Offsets, but none behind the end of its partition."""
    return {
        topic: {p: end_of(source, topic, p, offset) for p, offset in found.items()}
        for topic, found in offsets.items()
    }


def passed_over(source: KafkaSource, checkpoint: Checkpoint, committed: Offsets) -> Offsets:
    """How many offsets earlier runs passed over that are to be read by now, where there are any.

    Args: committed: from where the checkpoint goes on.
    """
    found: Offsets = {}
    for topic, noted in read_ends(checkpoint).items():
        for p, taken in noted.items():
            until = committed.get(topic, {}).get(p, 0)
            wanted = end_of(source, topic, p, until) - taken
            if wanted > 0:
                found.setdefault(topic, {})[p] = wanted
    return found


def read_ends(checkpoint: Checkpoint) -> Offsets:
    """Topic -> partition -> the offset up to which records were taken, of partitions that end."""
    file = checkpoint.beside(_NOTE)
    noted = json.loads(file.read_text()) if file.exists() else {}
    return {topic: {int(p): end for p, end in parts.items()} for topic, parts in noted.items()}


def note_ends(source: KafkaSource, checkpoint: Checkpoint, committed: Offsets) -> None:
    """Note the ends of a run before it reads. Raises OSError."""
    noted, ends = read_ends(checkpoint), source.ending_offsets
    now: Offsets = {}
    for topic, parts in ends.items():
        for p, end in parts.items():
            # What was read under an end that lay further behind was taken all the same.
            read = committed.get(topic, {}).get(p, 0)
            taken = min(noted.get(topic, {}).get(p, read), read)
            now.setdefault(topic, {})[p] = max(end, taken)
    if now != noted:
        file = checkpoint.beside(_NOTE)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, json.dumps(now))
