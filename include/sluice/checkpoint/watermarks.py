"""How far each input of a step has come, which Spark's checkpoint does not hold."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ..storage import open_path, replace_file

_FILE = "watermarks.json"


class Reached(BaseModel):
    """`ms`: the newest event time less the watermark's delay, epoch milliseconds. `run_id`: the run
    whose rows moved it there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ms: int
    run_id: str


class _Note(BaseModel):
    """`batch`: that moved an input last, from `before` to `after`. `before` is where the batch
    starts again when it comes a second time, with other rows perhaps: a rule was edited."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    batch: int = -1
    before: dict[str, Reached] = {}
    after: dict[str, Reached] = {}

    def seen_from(self, batch: int) -> dict[str, Reached]:
        return self.before if self.batch >= batch else self.after


def read_reached(checkpoint: str, batch: int | None = None) -> dict[str, Reached]:
    """How far each input has come; none of which no row came yet. Args: batch: that is to be
    worked off, which must not know of an earlier try of its own."""
    note = _read(checkpoint)
    return note.after if batch is None else note.seen_from(batch)


def note_reached(checkpoint: str, batch: int, moments: dict[str, int], run_id: str) -> None:
    """Note how far inputs have come with a batch, before Spark commits it."""
    note = _read(checkpoint)
    before = note.seen_from(batch)
    moved = {
        name: Reached(ms=ms, run_id=run_id)
        for name, ms in moments.items()
        if name not in before or ms > before[name].ms
    }
    after = {**before, **moved}
    if after != note.after:
        told = _Note(batch=batch, before=before, after=after)
        replace_file(_place(checkpoint), told.model_dump_json())


def _read(checkpoint: str) -> _Note:
    path = _place(checkpoint)
    return _Note.model_validate_json(path.read_text()) if path.exists() else _Note()


def _place(checkpoint: str) -> Path:
    return open_path(checkpoint) / _FILE
