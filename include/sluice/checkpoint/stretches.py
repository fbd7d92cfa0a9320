"""Which finished batches of a step can be read once more as one, for a step of which not all can:
its static tables changed, or what its rows came to hangs on how they were cut.

Spark removes the plans of all but the newest hundred batches; what is noted here outlives them.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from ..storage import open_path, replace_file
from .again import watermark_of
from .log import Checkpoint

_IN_A_FILE = 100


class Stretch(BaseModel):
    """Finished batches in a row that give the same rows when they are read once more as one.

    `plan`: of the last, as Spark's offset log has it. `statics`: what each static input was read up
    to: the version of a table, the offsets of topics.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    first: int
    last: int
    plan: str
    statics: dict[str, Any] = {}


_STRETCHES = TypeAdapter(list[Stretch])


def note_stretch(
    checkpoint: str, batch: int, statics: Mapping[str, Any], apart: Collection[str]
) -> None:
    """Note a planned batch before its first write; of a second try that reads another version of a
    static table the newest. Args: apart: as of `kept_apart`. Raises OSError."""
    plans = Checkpoint.below(checkpoint).folder / "offsets"
    now = Stretch(first=batch, last=batch, plan=_read(plans, batch), statics=dict(statics))
    files = _list_files(checkpoint)
    before = _load(files[-1]) if files else []
    if before and before[-1].first == batch:
        before.pop()
    elif before and before[-1].last >= batch:  # an earlier try
        until = {"last": batch - 1, "plan": _read(plans, batch - 1)}
        before.append(before.pop().model_copy(update=until))
    if before and _are_one(before[-1], now, apart):
        before.append(before.pop().model_copy(update={"last": batch, "plan": now.plan}))
    elif files and len(before) < _IN_A_FILE:
        before.append(now)
    else:
        before, files = [now], [_folder(checkpoint) / f"{batch}.json"]
        files[-1].parent.mkdir(parents=True, exist_ok=True)
    replace_file(files[-1], _STRETCHES.dump_json(before).decode())


def read_stretches(checkpoint: str, until: int, apart: Collection[str]) -> list[Stretch]:
    """The stretches of all batches up to one, in their order. A batch that nobody noted is one by
    itself where Spark has kept its plan. Empty where neither is so of some batch, or nobody noted
    of it at what the static inputs were read."""
    noted = {one.first: one for file in _list_files(checkpoint) for one in _load(file)}
    plans, found, batch = Checkpoint.below(checkpoint).offsets, [], 0
    while batch <= until:
        one = noted.get(batch)
        if one is None and "statics" not in apart and batch in plans:
            text = plans[batch].read_text(encoding="utf-8")
            one = Stretch(first=batch, last=batch, plan=text)
        if one is None:
            return []
        found.append(one)
        batch = one.last + 1
    return found


def _are_one(before: Stretch, now: Stretch, apart: Collection[str]) -> bool:
    """Whether a batch can be read as one with those before it."""
    if "state" in apart or before.last + 1 != now.first or before.statics != now.statics:
        return False
    if "commits" in apart and now.first == 1:  # the first reads what the table held
        return False
    return "watermark" not in apart or watermark_of(before.plan) == watermark_of(now.plan)


def _read(plans: Path, batch: int) -> str:
    return (plans / str(batch)).read_text(encoding="utf-8")


def _folder(checkpoint: str) -> Path:
    return open_path(checkpoint) / "stretches"


def _list_files(checkpoint: str) -> list[Path]:
    folder = _folder(checkpoint)
    if not folder.exists():
        return []
    return sorted((p for p in folder.iterdir() if p.suffix == ".json"), key=lambda p: int(p.stem))


def _load(file: Path) -> list[Stretch]:
    """What a file holds; nothing of one that the power cut in two: no run fails by it."""
    try:
        return _STRETCHES.validate_json(file.read_bytes())
    except ValueError:
        return []
