"""How far each input of a step has come, which Spark's checkpoint does not hold."""

import json
from dataclasses import asdict, dataclass

from ..storage import open_path, replace_file

_FILE = "watermarks.json"


@dataclass(frozen=True)
class Reached:
    """`ms`: the newest event time less the watermark's delay, epoch milliseconds. `run_id`: the run
    whose rows moved it there."""

    ms: int
    run_id: str


def read_reached(checkpoint: str) -> dict[str, Reached]:
    """What is noted of each input; none before the first row."""
    path = open_path(checkpoint) / _FILE
    told = json.loads(path.read_text()) if path.exists() else {}
    return {name: Reached(**one) for name, one in told.items()}


def note_reached(checkpoint: str, moments: dict[str, int], run_id: str) -> None:
    """Note how far inputs have come, before Spark commits the batch that took them there: a batch
    that comes again takes them there again."""
    before = read_reached(checkpoint)
    moved = {
        name: Reached(ms, run_id)
        for name, ms in moments.items()
        if name not in before or ms > before[name].ms
    }
    if moved:
        told = {name: asdict(one) for name, one in {**before, **moved}.items()}
        replace_file(open_path(checkpoint) / _FILE, json.dumps(told))
