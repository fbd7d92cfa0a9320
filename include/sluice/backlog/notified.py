"""New files as a queue names them: what a run reads of them, which messages may go afterwards, and
when the folder is listed all the same.

A run that dies keeps its messages hidden until their time is up. So it notes beforehand that it
holds some, and the next run, which sees that note, lists.
"""

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ..checkpoint.log import Checkpoint
from ..checkpoint.seen import SeenFile
from ..errors import TransientError
from ..spec import FileSource
from .audit import Audit, keep_audit, note_audit, read_audit
from .buckets import find_object
from .files import LandedFile
from .notices import (
    Notice,
    delete_notices,
    receive_notices,
    return_notices,
    split_settled,
    waiting_count,
)
from .waiting import waiting_files

_log = logging.getLogger(__name__)
_ON_ITS_WAY = 300
"""Seconds after which a message about an object should have come; S3 most often takes one, and
sometimes more than a minute."""


@dataclass(frozen=True)
class Answer:
    """What the probe knows without a listing. `planned`: files of a batch that was not finished;
    `doubt`: why a run must look at the queue or the folder."""

    planned: list[LandedFile]
    doubt: str = ""
    warnings: list[str] = field(default_factory=list)


@dataclass
class Arrivals:
    """What one run reads: `files`, found by name or, where `listed`, by a listing. `audit`: the
    last one before."""

    source: FileSource
    checkpoint: Checkpoint
    files: list[LandedFile]
    listed: bool
    began: datetime
    audit: Audit | None = None
    notices: list[Notice] = field(default_factory=list)
    position: int = -1
    """Where the file source stood."""
    over: set[str] = field(default_factory=set)
    """Named files that were read before, or are not there any more."""
    warnings: list[str] = field(default_factory=list)


def ask_queue(source: FileSource, checkpoint: Checkpoint) -> Answer | None:
    """Is anything new, by one request and taking nothing?

    None when the folder is to be listed. Raises SourceError for an absent queue.
    """
    audit = read_audit(source, checkpoint)
    if audit is None or audit.is_due(source):
        return None
    planned = _planned_files(checkpoint)
    try:
        count = waiting_count(source.notified.queue)
    except TransientError as error:
        return Answer(
            planned, "the queue could not be asked, so the run has to list the folder", [str(error)]
        )
    return Answer(planned, f"the queue holds about {count:,} message(s)" if count else "")


def take_arrivals(source: FileSource, checkpoint: Checkpoint, hold: int) -> Arrivals:
    """Take the queue's messages and find what to read: the files they name, or all that wait in the
    folder when an audit is due or the queue does not answer.

    Args: hold: seconds for which nobody else gets the messages. Call it under the checkpoint's
    lease, and `settle` what it returns. Raises SourceError.
    """
    began, audit = datetime.now(UTC), read_audit(source, checkpoint)
    position = checkpoint.log_offset(checkpoint.newest_commit)
    notices, emptied, warnings = _receive(source, hold)
    named = {f.path for notice in notices for f in notice.files}
    seen = {f.path: f.log_id for f in checkpoint.seen_files()} if named else {}
    new = named - seen.keys()
    if new and audit is not None:
        keep_audit(audit, checkpoint, unsettled=True)
    listed = audit is None or audit.is_due(source) or not emptied
    arrivals = Arrivals(
        source, checkpoint, [], listed, began, audit, notices, position, warnings=warnings
    )
    if listed:
        arrivals.files, changed = waiting_files(source, checkpoint)
        arrivals.warnings += changed
        if audit is not None and emptied:
            arrivals.warnings += _describe_unnamed(arrivals, named)
    there = _look_up(new - {f.path for f in arrivals.files})
    if not listed:
        found = [*_planned_files(checkpoint), *(f for f in there.values() if f is not None)]
        arrivals.files = sorted(found, key=lambda f: (f.modified, f.path))
    gone = {path for path, landed in there.items() if landed is None}
    arrivals.over = {path for path in named - new if seen[path] <= position} | gone
    return arrivals


def _receive(source: FileSource, hold: int) -> tuple[list[Notice], bool, list[str]]:
    """The queue's messages, whether it gave all it had, and what a person should know."""
    try:
        return *receive_notices(source.notified.queue, source, hold), []
    except TransientError as error:
        return [], False, [f"the queue could not be asked, so the folder was listed: {error}"]


def _planned_files(checkpoint: Checkpoint) -> list[LandedFile]:
    """The files Spark has planned and not read; it reads them whatever it is told to list.

    One that was deleted since has no size.
    """
    planned: dict[str, SeenFile] = {
        f.path: f for f in checkpoint.seen_files(checkpoint.log_offset(checkpoint.newest_commit))
    }
    return [
        landed or LandedFile(path, 0, planned[path].modified_ms / 1000)
        for path, landed in _look_up(planned).items()
    ]


def _look_up(paths: set[str] | dict[str, SeenFile]) -> dict[str, LandedFile | None]:
    """Each path's file as it is now; None for one that is not there."""
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(find_object, paths))
    return {path: LandedFile(*one) if one else None for path, one in zip(paths, found, strict=True)}


def _describe_unnamed(arrivals: Arrivals, named: set[str]) -> list[str]:
    planned = {f.path for f in arrivals.checkpoint.seen_files(arrivals.position)}
    late = [
        f.name
        for f in arrivals.files
        if f.path not in named | planned and f.modified < arrivals.began.timestamp() - _ON_ITS_WAY
    ]
    if not late:
        return []
    return [
        f"{len(late)} file(s) no message named, found by listing the folder: "
        f"{', '.join(late[:3])}; see whether all the bucket's events reach the queue"
    ]


def settle(arrivals: Arrivals, done: bool) -> list[str]:
    """Delete the messages whose files are committed, let the others be taken again, note an audit;
    returns what a person should know. Never raises.

    Args: done: the step took in all that was waiting. What is no event of S3's is neither deleted
    nor let go: it would wake every run until the queue gives it up.
    """
    queue, notices, warnings = arrivals.source.notified.queue, arrivals.notices, []
    try:
        checkpoint = Checkpoint(arrivals.checkpoint.folder, arrivals.checkpoint.number)
        settled, left = split_settled(
            notices, arrivals.over | _committed_since(checkpoint, arrivals.position)
        )
        foreign = sum(not notice.understood for notice in left)
        if foreign:
            warnings.append(
                f"{foreign} message(s) in the queue are no events of S3's and were left there: "
                "give the queue a dead-letter queue, and let nothing else write to it"
            )
        kept = delete_notices(queue, settled)
        if kept:
            warnings.append(
                f"{kept} message(s) about files that were read could not be deleted; they come "
                "again and change nothing"
            )
        held = return_notices(queue, [notice for notice in left if notice.understood])
        if arrivals.listed and done:
            note_audit(arrivals.source, checkpoint, arrivals.began, unsettled=held > 0)
        elif arrivals.audit is not None and (
            notices or checkpoint.newest_commit != arrivals.audit.commit
        ):
            keep_audit(arrivals.audit, checkpoint, unsettled=held > 0)
    except Exception as error:  # noqa: BLE001 (the rows are in the table: what the queue still holds comes again, and the checkpoint knows its files)
        _log.warning("settling the messages of %s failed", queue, exc_info=True)
        warnings.append(
            "the queue's messages were not settled, so they come again, and the next run lists "
            f"the folder: {error}"
        )
    return warnings


def _committed_since(checkpoint: Checkpoint, position: int) -> set[str]:
    committed = checkpoint.log_offset(checkpoint.newest_commit)
    return (
        {f.path for f in checkpoint.seen_files(position) if f.log_id <= committed}
        if committed > position
        else set()
    )
