"""What the report tells of each further sink: what it got in a run, and what it lacks."""

from collections.abc import Mapping

from ..checkpoint import Position
from ..report import Delivered, Undelivered

_TOLD = {"key", "rows", "missing", "removed"}


def report_deliveries(positions: Mapping[str, Position], run_id: str) -> list[Delivered]:
    """What the sinks got, as far as it is this run's to tell. Args: positions: by title."""
    return [
        Delivered(sink=sink, **sent.model_dump(include=_TOLD))
        for sink, position in positions.items()
        for sent in position.sent
        if sent.run_id == run_id
    ]


def report_lacks(positions: Mapping[str, Position]) -> list[Undelivered]:
    """What each sink lacks."""
    return [_lack(sink, position) for sink, position in positions.items()]


def _lack(sink: str, position: Position) -> Undelivered:
    due = position.due
    return Undelivered(
        sink=sink,
        batches=len(due),
        rows=sum(batch.rows for batch in due),
        since=min((batch.since for batch in due), default=None),
        said=next((batch.said for batch in reversed(due) if batch.said), ""),
        needs_person=any(batch.needs_person for batch in due),
        given_up=sum(batch.rows for batch in position.given_up),
    )
