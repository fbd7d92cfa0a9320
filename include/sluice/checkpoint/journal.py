"""The batches a run finished, noted one by one beside the checkpoint, so that a run that dies
before its report does not take their counts with it."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ..report import BatchReport, told_by
from ..storage import Paths, open_path, replace_file


class Entry(BaseModel):
    """One finished batch: its counts, and (evaluated, unexpected, samples) of each row rule by
    name."""

    model_config = ConfigDict(extra="forbid")

    run_id: str
    """The run whose report has to tell of it."""
    written_by: str
    """The run that wrote its rows; another one where that run died before its report."""
    batch: BatchReport
    rules: dict[str, tuple[int, int, list[str]]] = {}
    bytes: int = 0
    amount: int = 0
    """Its part of the backlog, in the unit of the source: bytes of files, offsets, commits."""


def _folder(checkpoint: str) -> Path:
    return open_path(checkpoint) / "journal"


def note_batch(checkpoint: str, entry: Entry) -> None:
    """Note a batch before Spark commits it; a replay of the batch notes it again, over the first
    note."""
    folder = _folder(checkpoint)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / f"{entry.batch.batch_id}.json", entry.model_dump_json())


def read_journal(checkpoint: str) -> list[Entry]:
    """Every note, by batch."""
    folder = _folder(checkpoint)
    if not folder.exists():
        return []
    notes = [
        Entry.model_validate_json(p.read_text()) for p in folder.iterdir() if p.suffix == ".json"
    ]
    return sorted(notes, key=lambda entry: entry.batch.batch_id)


def find_unreported(
    paths: Paths, step: str, checkpoint: str, run_id: str | None, newest_commit: int | None
) -> tuple[list[Entry], list[Entry]]:
    """Split the notes of committed batches: those no report holds (a run died, or `run_id` itself
    ran before and its report will be replaced), and the rest."""
    missing: list[Entry] = []
    reported: list[Entry] = []
    for entry in read_journal(checkpoint):
        if newest_commit is None or entry.batch.batch_id > newest_commit:
            continue  # the batch was not committed: it comes again, and is noted again
        (reported if _is_reported(paths, step, entry, run_id) else missing).append(entry)
    return missing, reported


def _is_reported(paths: Paths, step: str, entry: Entry, run_id: str | None) -> bool:
    """Whether a report holds it that will not be replaced: any but that of `run_id`."""
    told = told_by(paths.reports(), entry.run_id, replaced=entry.run_id == run_id)
    return entry.batch.identity(step) in told


def claimed_by_others(checkpoint: str, step: str, run_id: str) -> set[str]:
    """The batches of which another run's report has to tell."""
    notes = read_journal(checkpoint)
    return {entry.batch.identity(step) for entry in notes if entry.run_id != run_id}


def forget(checkpoint: str, entries: list[Entry]) -> None:
    """Remove notes that a report holds."""
    for entry in entries:
        (_folder(checkpoint) / f"{entry.batch.batch_id}.json").unlink(missing_ok=True)
