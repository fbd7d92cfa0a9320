"""Batches that are planned by hand: all that a checkpoint has read as one batch of another one, so
that a run there reads the same records once more; and one that reads nothing. And a plan that is
taken back."""

import json
from collections.abc import Iterator
from pathlib import Path

from ..storage import forget_checksum, is_remote, open_path, replace_file, spark_folder
from .log import Checkpoint
from .seen import list_folder, numbered
from .shorten import whole_notes


def plan_again(checkpoint: str, other: str, number: int, plan: str) -> None:
    """Plan a batch of another checkpoint, so that it takes what lies between the batch before it
    there and a plan of this one's.

    Args: number: of the batch; before 0 the other is empty. plan: text of an entry of Spark's
    offset log. Raises OSError.

    A batch that was planned and not committed Spark takes as it finds it. Its offsets say where
    each source stands afterwards; before the first batch each stands where it began, which its own
    files say.
    """
    done, place = Checkpoint.below(checkpoint).folder, open_path(spark_folder(other))
    if number == 0:
        whole = _whole_notes(Checkpoint.below(checkpoint))
        for file in (done / "metadata", *_list_tree(done / "sources")):
            text = whole.get(file) or file.read_text(encoding="utf-8")
            _write(place / file.relative_to(done), text)
        for file in done.parent.iterdir():
            if file.name.startswith("start"):  # where a stream of a table's commits begins
                _write(place.parent / file.name, file.read_text(encoding="utf-8"))
    _write(place / "offsets" / str(number), plan)  # last: without it there is no plan


def watermark_of(plan: str) -> int:
    """The watermark in force in a planned batch, epoch milliseconds. Args: plan: as of
    `plan_again`."""
    return json.loads(plan.split("\n")[1])["batchWatermarkMs"]


def without_watermark(plan: str) -> str:
    """The same plan, in which no row is late."""
    version, head, *offsets = plan.split("\n")
    return "\n".join([version, json.dumps({**json.loads(head), "batchWatermarkMs": 0}), *offsets])


def plan_nothing(checkpoint: str) -> None:
    """Plan one more batch behind the newest finished one, in which no source has anything new: its
    offsets are those before it. Raises OSError."""
    done = Checkpoint.below(checkpoint)
    newest = max(done.commits)
    said = done.offsets[newest].read_text(encoding="utf-8")
    _write(done.folder / "offsets" / str(newest + 1), said)


def take_back(checkpoint: Checkpoint, number: int, inputs: int) -> None:
    """Take back the plan of the newest batch: what it would read of files and topics waits again.

    Args: number: of the batch, which is not committed. Raises OSError. Killed in the middle it
    leaves files that Spark has noted and no batch has read, which the next one takes as one.
    """
    sources = [checkpoint.of_source(one) for one in range(inputs)]
    ends = {
        one: one.log_offset(number - 1)
        for one in sources
        if one.log_offset(number) >= 0  # of files: Spark notes each in a log
    }
    plan = checkpoint.folder / "offsets" / str(number)
    forget_checksum(plan)
    plan.unlink(missing_ok=True)
    for source, end in ends.items():
        for file in source.all_notes():
            if int(file.stem) > end:
                version, *entries = file.read_text(encoding="utf-8").split("\n")
                kept = [entry for entry in entries if entry and json.loads(entry)["batchId"] <= end]
                forget_checksum(file)
                replace_file(file, "\n".join([version, *kept]))


def _whole_notes(done: Checkpoint) -> dict[Path, str]:
    """The logs of all file sources as if they had never been shortened."""
    whole: dict[Path, str] = {}
    for number in numbered(list_folder(done.folder / "sources")):
        whole |= whole_notes(done.of_source(number))
    return whole


def _list_tree(folder: Path) -> Iterator[Path]:
    """The files below a folder, without Spark's hidden ones."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.is_dir():
            yield from _list_tree(entry)
        elif not entry.name.startswith("."):
            yield entry


def _write(path: Path, text: str) -> None:
    if not is_remote(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text)
