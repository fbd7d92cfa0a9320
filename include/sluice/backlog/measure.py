"""The probe: how much is waiting for each step, and must Spark run? In doubt, yes."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import takewhile

from ..checkpoint import find_unreported
from ..errors import SourceError
from ..spec import FileSource, Paths, Pipeline, Step, in_bucket
from .checkpoint import Checkpoint, SeenFile
from .files import LandedFile, list_files, source_root

_LISTED_AGAIN = {"name": 900, "folder": 2}
"""Files, or folders, before the end of what was read that an ordered listing starts at: nine tenths of a page, so that one request shows what is new."""


@dataclass(frozen=True)
class StepBacklog:
    """What waits for one step. `oldest`: modification time of the oldest waiting file, UTC; `last_run`: end of the newest batch, UTC."""

    step: str
    must_run: bool
    reason: str
    files: int = 0
    bytes: int = 0
    oldest: datetime | None = None
    open_batch: bool = False
    last_run: datetime | None = None
    warnings: list[str] = field(default_factory=list)


def waiting_files(source: FileSource, checkpoint: Checkpoint) -> tuple[list[LandedFile], list[str]]:
    """Files the next run would read, oldest first, and what a person should know about the others.

    A file is known by its path: one that was overwritten after it was read is not read again, and says so here (with `ordered_by` only the newest are looked at).
    """
    committed = checkpoint.log_offset(checkpoint.newest_commit)
    seen = {f.path: f for f in checkpoint.seen_files()}
    waiting, changed = [], []
    for landed in list_files(source, _list_after(source, seen, committed)):
        known = seen.get(landed.path)
        if known is None or known.log_id > committed:
            waiting.append(landed)
        elif abs(landed.modified * 1000 - known.modified_ms) > 2000:  # stores keep times in seconds or in milliseconds
            changed.append(landed.name)
    note = f"{len(changed)} file(s) changed after they were read and are not read again: {', '.join(changed[:3])}; land a correction under a new name"
    return waiting, [note] if changed else []


def _list_after(source: FileSource, seen: dict[str, SeenFile], committed: int) -> str | None:
    """Where a listing may start when the user says that names or folders sort by arrival; None lists everything.

    Before every file that was planned and not read, and some way before the greatest one that was read: an upload that took long shows up behind its successors.
    """
    root = source_root(source).rstrip("/") + "/"
    if source.ordered_by is None or not in_bucket(root):
        return None
    known = sorted((f for f in seen.values() if f.path.startswith(root)), key=lambda f: f.path.encode())  # as S3 sorts: by the bytes of UTF-8
    read = [f.path for f in takewhile(lambda f: f.log_id <= committed, known)]
    if source.ordered_by == "folder":
        read = list(dict.fromkeys(path.rpartition("/")[0] + "/" for path in read))
    margin = _LISTED_AGAIN[source.ordered_by]
    return read[-margin] if len(read) >= margin else None


def measure_step(step: Step, paths: Paths, idle_run_every: timedelta) -> StepBacklog:
    """Measure one step. Raises SourceError when the landing folder is absent; anything else that cannot be read means "run"."""
    folder = paths.checkpoint(step.name)
    checkpoint = Checkpoint(f"{folder}/spark")
    try:
        waiting, warnings = waiting_files(step.source, checkpoint)
        open_batch, last_run = checkpoint.open_batch is not None, checkpoint.last_run
        unreported, _ = find_unreported(paths, step.name, folder, None, checkpoint.newest_commit)
    except SourceError:
        raise
    except Exception as error:  # noqa: BLE001 (law 8: a wrong "nothing new" loses data, a wrong "something new" costs cents)
        return StepBacklog(step.name, must_run=True, reason=f"the backlog could not be measured ({error}), so the run decides")
    idle_for = datetime.now(UTC) - last_run if last_run else None
    if open_batch:
        reason = "a batch was planned and not finished"
    elif waiting:
        reason = f"{len(waiting)} file(s) are waiting"
    elif unreported:
        reason = f"run {unreported[0].run_id} died before its report"
    elif idle_for is not None and idle_for >= idle_run_every:
        reason = f"nothing is new, but the last run was {idle_for.days} days ago: state and windows need a run"
    else:
        reason = "nothing is new"
    return StepBacklog(
        step=step.name,
        must_run=reason != "nothing is new",
        reason=reason,
        files=len(waiting),
        bytes=sum(f.size for f in waiting),
        oldest=datetime.fromtimestamp(waiting[0].modified, UTC) if waiting else None,
        open_batch=open_batch,
        last_run=last_run,
        warnings=warnings,
    )


def measure_pipeline(pipeline: Pipeline, paths: Paths) -> list[StepBacklog]:
    """Measure every step, in order."""
    return [measure_step(step, paths, pipeline.idle_run_every) for step in pipeline.steps]
