"""A finished batch as its note beside the checkpoint tells of it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ..checkpoint import Entry
from ..report import BatchReport, RefreshReport
from .conflicts import Conflicts
from .laps import Laps
from .note import Note
from .parts import Outcome
from .plan import Plan
from .planned import Batch


@dataclass(frozen=True)
class Result:
    """What came of a batch, beside what the tables got."""

    outcome: Outcome
    conflicts: Conflicts
    delivered: dict[str, int] = field(default_factory=dict)
    replayed: bool = False
    warning: str = ""


def describe_batch(plan: Plan, batch: Batch, result: Result, laps: Laps) -> Entry:
    """A finished batch as its note tells of it. Raises UnbalancedReport."""
    conflicts, taken, note = result.conflicts, batch.taken, result.outcome.note
    timed = plan.step.event_time is not None  # without, every row is of the year 1
    report = BatchReport(
        batch_id=batch.number,
        key=plan.batch_key(batch.number),
        counts=note.total(result.outcome.written),
        inputs=note.inputs,
        replayed=result.replayed,
        watermark_ms=batch.watermark_ms or None,
        event_time_min=_moment(note.oldest) if timed else None,
        event_time_max=_moment(note.newest) if timed else None,
        files=taken.files,
        ranges=taken.ranges,
        delivered=result.delivered,
        seconds=round(laps.total, 3),
        timings={part: round(seconds, 3) for part, seconds in laps.seconds.items()},
        conflicts=conflicts.keys,
        overtaken=conflicts.overtaken,
        conflict_samples=list(conflicts.samples),
        lateness=note.lateness,
        refresh=_describe_refresh(note),
        warnings=[told for told in (result.warning, conflicts.warning) if told],
    )
    report.counts.check(f"{plan.where} batch {batch.number}")
    if report.refresh is not None:
        report.refresh.check(f"{plan.where} batch {batch.number}")
    return Entry(
        run_id=batch.run_id,
        written_by=note.run_id,
        batch=report,
        rules=note.rules,
        bytes=taken.bytes,
        amount=taken.amount,
    )


def _describe_refresh(note: Note) -> RefreshReport | None:
    if not note.versions:
        return None
    return RefreshReport(
        versions=note.versions,
        whole=note.why,
        rows_removed=note.given.gone,
        rows_read=note.scanned[0],
        bytes_read=note.scanned[1],
        bytes_of_all=note.size,
        **note.given.groups,
    )


def _moment(micros: int | None) -> datetime | None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return None if micros is None else epoch + timedelta(microseconds=micros)
