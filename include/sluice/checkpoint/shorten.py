"""Spark's log of the files it has read, cut down to what Spark still asks for.

When a stream starts, Spark reads the whole log, to know which files of a listing are new, and looks
at the files of the newest finished batch once more. Who is told the new files by name needs no
more than that batch.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from ..errors import PreflightError
from ..storage import forget_checksum, replace_file
from .log import Checkpoint
from .manifest import note_shortened, noted_shortened
from .seen import Entry

_LONG = 500_000
"""Bytes of a log from which on it is cut down: about 5,000 files, a tenth of a second for Spark."""


def shorten_log(checkpoint: Checkpoint) -> None:
    """Move what lies behind the newest finished batch out of Spark's log, where that is long.

    Call it under the lease, while no stream runs, and only where new files can be told to Spark by
    name. Killed in the middle it leaves entries that are in both. Raises OSError.
    """
    newest = checkpoint.newest_commit
    if newest is None or checkpoint.open_batch is not None:
        return
    notes = checkpoint.notes()
    if sum(note.stat().st_size for note in notes) < _LONG:
        return
    end = checkpoint.log_offset(newest - 1)
    moved: list[Entry] = []
    shortened: dict[Path, str] = {}
    for note in notes:
        version, *lines = note.read_text(encoding="utf-8").split("\n")
        entries = _parse(lines)
        old = [Entry.of(entry) for entry in entries if entry["batchId"] <= end]
        if old:
            kept = [entry for entry in entries if entry["batchId"] > end]
            shortened[note] = _write(version, kept)
            moved += old
    if not moved:
        return
    checkpoint.archive.add(moved, end)
    note_shortened(str(checkpoint.folder.parent), checkpoint.number, end)
    for note, text in shortened.items():
        forget_checksum(note)
        replace_file(note, text)


def refuse_other_archive(checkpoint: Checkpoint) -> None:
    """Raise PreflightError where what was moved out of Spark's log is not that of this checkpoint:
    files would be read again, or passed over."""
    noted = noted_shortened(str(checkpoint.folder.parent), checkpoint.number)
    newest = checkpoint.archive.newest
    if not noted <= newest <= checkpoint.log_offset(checkpoint.newest_commit):
        raise PreflightError(
            "the list of files that were read is not of one moment with the rest of the checkpoint",
            where=str(checkpoint.archive.folder),
            value=f"it ends at position {newest}",
            do="Put the checkpoint back as a whole. Where there is no copy of it, `sluice reset` "
            "says what beginning anew costs",
        )


def whole_notes(checkpoint: Checkpoint) -> dict[Path, str]:
    """The files of Spark's log, with what was moved out of them, for one who reads it all again."""
    archived: dict[int, list[dict]] = defaultdict(list)
    for entry in checkpoint.archive.read_entries():
        archived[int(entry.log_id)].append(entry.noted)
    whole = {}
    for note in checkpoint.all_notes() if archived else ():
        version, *lines = note.read_text(encoding="utf-8").split("\n")
        position = int(note.stem)
        here = range(position + 1) if note.suffix else [position]
        entries = [*(entry for one in here for entry in archived.get(one, [])), *_parse(lines)]
        told = {(entry["path"], entry["batchId"]): entry for entry in entries}
        whole[note] = _write(version, told.values())
    return whole


def _parse(lines: list[str]) -> list[dict]:
    return json.loads(f"[{','.join(filter(None, lines))}]")


def _write(version: str, entries: Iterable[dict]) -> str:
    lines = [json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in entries]
    return "\n".join([version, *lines])
