"""The probe: how much is waiting for each step, and must Spark run? In doubt, yes."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from ..checkpoint import find_unreported
from ..checkpoint.log import Checkpoint
from ..errors import SourceError
from ..spec import FileSource, KafkaSource, Pipeline, Step, TableSource, never_ends, trigger_kind
from ..storage import Paths
from .audit import note_audit
from .delta import measure_table, read_position
from .files import LandedFile
from .kafka import describe_losses, measure_topics
from .notified import Arrivals, ask_queue
from .waiting import waiting_files

_log = logging.getLogger(__name__)
_RECORD_BYTES = 1000
"""What a Kafka record is taken to weigh, when a run chooses between the settings of a short run and of a long one."""


@dataclass(frozen=True)
class StepBacklog:
    """What waits for one step. `oldest`: when the oldest of it came, UTC; `last_run`: end of the newest batch, UTC."""

    step: str
    must_run: bool
    reason: str
    files: int = 0
    records: int = 0
    """Offsets of topics."""
    commits: int = 0
    """Commits of a table."""
    bytes: int = 0
    oldest: datetime | None = None
    open_batch: bool = False
    last_run: datetime | None = None
    audited: datetime | None = None
    """When the whole folder was listed although a queue names its new files; UTC."""
    warnings: list[str] = field(default_factory=list)

    @property
    def amount(self) -> str:
        """What waits, in words; empty for nothing, or when it is not known."""
        parts = [
            f"{number:,} {unit}"
            for number, unit in (
                (self.files, "file(s)"),
                (self.records, "record(s)"),
                (self.commits, "commit(s)"),
            )
            if number
        ]
        return ", ".join(parts + ([f"{self.bytes:,} bytes"] if self.bytes else []))

    @property
    def weight(self) -> int | None:
        """About how many bytes wait; None when Spark has to run and nobody knows over how many."""
        if self.must_run and not (self.files or self.records or self.commits or self.open_batch):
            return None
        return self.bytes or self.records * _RECORD_BYTES


@dataclass(frozen=True)
class _Waiting:
    """What waits in a source, and why a run must look although nothing is seen."""

    found: StepBacklog
    doubt: str = ""


def _count_files(
    step: Step, waiting: list[LandedFile], warnings: list[str], audited: datetime | None = None
) -> StepBacklog:
    oldest = datetime.fromtimestamp(min(f.modified for f in waiting), UTC) if waiting else None
    return StepBacklog(
        step.name,
        False,
        "",
        files=len(waiting),
        bytes=sum(f.size for f in waiting),
        oldest=oldest,
        warnings=warnings,
        audited=audited,
    )


def _measure_files(step: Step, place: str, checkpoint: Checkpoint) -> _Waiting:
    answer = ask_queue(step.source, checkpoint) if step.source.notifications is not None else None
    if answer is not None:
        return _Waiting(_count_files(step, answer.planned, answer.warnings), answer.doubt)
    began = datetime.now(UTC) if step.source.notifications is not None else None
    return _Waiting(_count_files(step, *waiting_files(step.source, checkpoint), began))


def _measure_topics(step: Step, place: str, checkpoint: Checkpoint) -> _Waiting:
    found = measure_topics(step.source, checkpoint)
    waiting = StepBacklog(
        step.name,
        False,
        "",
        records=found.records,
        oldest=found.oldest,
        warnings=describe_losses(found),
    )
    return _Waiting(
        waiting, "the run has to look at what the brokers hold" if found.must_run else ""
    )


def _measure_table(step: Step, place: str, checkpoint: Checkpoint) -> _Waiting:
    if step.source.name is not None:
        return _Waiting(
            StepBacklog(step.name, False, ""), "only Spark's catalog knows where the table lies"
        )
    found = measure_table(place, read_position(checkpoint, checkpoint.newest_commit))
    if found is None:
        return _Waiting(
            StepBacklog(step.name, False, ""), "the table's log alone does not say what was read"
        )
    return _Waiting(
        StepBacklog(
            step.name, False, "", commits=found.commits, bytes=found.bytes, oldest=found.oldest
        )
    )


def _measure_trial(step: Step, place: str, checkpoint: Checkpoint) -> _Waiting:
    return _Waiting(
        StepBacklog(step.name, False, ""), f"a {step.source.kind} source always has rows"
    )


def _measurer(step: Step) -> Callable[[Step, str, Checkpoint], _Waiting]:
    kinds = {FileSource: _measure_files, KafkaSource: _measure_topics, TableSource: _measure_table}
    return kinds.get(type(step.source), _measure_trial)


def measure_step(
    step: Step,
    paths: Paths,
    idle_run_every: timedelta,
    place: str = "",
    taken: Arrivals | None = None,
) -> StepBacklog:
    """Measure one step. Raises SourceError when its source is absent; anything else that cannot be read means "run".

    Args: place: of a table that is the source. taken: the new files, where the run has them from a queue.
    """
    folder = paths.checkpoint(step.name)
    checkpoint = Checkpoint(f"{folder}/spark")
    try:
        waiting = (
            _measurer(step)(step, place, checkpoint)
            if taken is None
            else _Waiting(_count_files(step, taken.files, taken.warnings))
        )
        open_batch, last_run = checkpoint.open_batch is not None, checkpoint.last_run
        unreported, _ = find_unreported(paths, step.name, folder, None, checkpoint.newest_commit)
    except SourceError:
        raise
    except Exception as error:  # noqa: BLE001 (law 8: a wrong "nothing new" loses data, a wrong "something new" costs cents)
        return StepBacklog(
            step.name,
            must_run=True,
            reason=f"the backlog could not be measured ({error}), so the run decides",
        )
    idle_for = datetime.now(UTC) - last_run if last_run else None
    found = replace(waiting.found, open_batch=open_batch, last_run=last_run)
    if open_batch:
        reason = "a batch was planned and not finished"
    elif found.amount:
        unit = (
            "file(s) are" if found.files else "record(s) are" if found.records else "commit(s) are"
        )
        reason = f"{found.files or found.records or found.commits} {unit} waiting"
    elif waiting.doubt:
        reason = waiting.doubt
    elif unreported:
        reason = f"run {unreported[0].run_id} died before its report"
    elif never_ends(step.trigger):
        reason = (
            f"trigger {trigger_kind(step.trigger)} waits for rows until the time budget is spent"
        )
    elif idle_for is not None and idle_for >= idle_run_every:
        reason = f"nothing is new, but the last run was {idle_for.days} days ago: state and windows need a run"
    else:
        return replace(found, reason="nothing is new")
    return replace(found, must_run=True, reason=reason)


def measure_pipeline(
    pipeline: Pipeline, paths: Paths, taken: dict[str, Arrivals] | None = None
) -> list[StepBacklog]:
    """Measure every step, in order. Args: taken: the new files of steps that have them from a queue; without it, the queue is only asked how much it holds."""
    places = {
        step.name: pipeline.source_path(step.source, paths)
        for step in pipeline.steps
        if isinstance(step.source, TableSource)
    }
    return [
        measure_step(
            step,
            paths,
            pipeline.idle_run_every,
            places.get(step.name, ""),
            (taken or {}).get(step.name),
        )
        for step in pipeline.steps
    ]


def note_idle_audits(pipeline: Pipeline, paths: Paths, backlog: list[StepBacklog]) -> None:
    """Note the listings that found nothing, so that the next probe asks the queue alone; a note that cannot be written costs one listing more."""
    for step, found in zip(pipeline.steps, backlog, strict=True):
        if found.audited is not None and not found.amount and not found.open_batch:
            try:
                note_audit(
                    step.source, Checkpoint(f"{paths.checkpoint(step.name)}/spark"), found.audited
                )
            except Exception:  # noqa: BLE001 (a disk's or a store's; the probe has its answer all the same)
                _log.warning(
                    "the listing of %s was not noted, so the next probe lists again",
                    step.name,
                    exc_info=True,
                )
