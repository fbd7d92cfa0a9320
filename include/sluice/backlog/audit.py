"""When a folder was last listed in whole, noted beside the checkpoint: what a queue names is
trusted only for so long."""

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime

from ..checkpoint.log import Checkpoint
from ..spec import FileSource
from ..storage import replace_file


@dataclass(frozen=True)
class Audit:
    """A whole listing of which all files were read. `at`: when it began; `commit`: the newest batch
    when it was noted; `of`: path, pattern, queue."""

    at: datetime
    commit: int | None
    of: list[str]
    unsettled: bool = False
    """A run took messages and has not given them back: if it died, nobody can take them until their
    time is up."""

    def is_due(self, source: FileSource) -> bool:
        """True when the next listing is due; also for a note from the future."""
        age = datetime.now(UTC) - self.at
        return not 0 <= age.total_seconds() < source.notified.audit_every.total_seconds()


def _identity(source: FileSource) -> list[str]:
    return [source.path, source.pattern, source.notified.queue]


def read_audit(source: FileSource, checkpoint: Checkpoint) -> Audit | None:
    """The last audit; None where it says nothing about the next run: another source, a checkpoint
    that was set back, a run that died."""
    try:
        entries = json.loads(checkpoint.beside("audit.json").read_text())
        audit = Audit(**{**entries, "at": datetime.fromisoformat(entries["at"])})
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError):
        return None
    newest = -1 if checkpoint.newest_commit is None else checkpoint.newest_commit
    set_back = audit.commit is not None and newest < audit.commit
    return None if audit.unsettled or set_back or audit.of != _identity(source) else audit


def note_audit(
    source: FileSource, checkpoint: Checkpoint, began: datetime, *, unsettled: bool = False
) -> None:
    """Note a whole listing, once its files are committed."""
    _write(checkpoint, Audit(began, checkpoint.newest_commit, _identity(source), unsettled))


def keep_audit(audit: Audit, checkpoint: Checkpoint, *, unsettled: bool) -> None:
    """Carry the last audit on over a run that listed nothing."""
    _write(checkpoint, replace(audit, commit=checkpoint.newest_commit, unsettled=unsettled))


def _write(checkpoint: Checkpoint, audit: Audit) -> None:
    note = checkpoint.beside("audit.json")
    note.parent.mkdir(parents=True, exist_ok=True)
    replace_file(note, json.dumps({**asdict(audit), "at": audit.at.isoformat()}))
