"""Batches that further sinks are owed, as their positions note them."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ..checkpoint import Due, Entry, Position
from ..errors import SluiceError, TransientError
from .outlet import Outlet


def due_of(entry: Entry) -> Due:
    """A batch that has just ended."""
    counts = entry.batch.counts
    rows, made = counts.written + counts.replaced, entry.batch.refresh
    # Also where each group came out as it was: what others took from the table went before it.
    touched = made is not None and made.touched > 0
    return Due(key=entry.batch.key, rows=rows, since=datetime.now(UTC), mirrored=touched)


def due_whole(
    outlet: Outlet, session: SparkSession, written: Mapping[str, int], home: str
) -> Due | None:
    """All that the target of a step with `groups` holds; None before its first batch. Args:
    written: newest batch by generation. home: the generation at work."""
    newest = home if home in written else max(written, default="")
    if not newest:
        return None
    rows = sum(outlet.count_batches(session, F.lit(True)).values())
    return Due(
        key=f"{newest}/{written[newest]}",
        rows=rows,
        since=datetime.now(UTC),
        again=True,
        mirrored=True,
        whole=True,
    )


def follow_places(
    position: Position,
    places: list[str] | None,
    find_whole: Callable[[], Due | None],
    warn: Callable[[str], None],
) -> Position:
    """The position of a sink that replaces rows by some columns, with all that the target holds due
    where it replaced them by others before: what it has under those no batch would take away."""
    before = position.places
    if before == places:
        return position
    if before is not None and (whole := find_whole()) is not None:
        was, now = (", ".join(names or ()) or "all at once" for names in (before, places))
        warn(
            f"{position.sink} replaced rows by {was} and does so by {now} from here on: it is sent "
            "all that the target holds, in place of what it has (a topic keeps its records of "
            "other keys)"
        )
        position = position.starting_over(whole)
    return position.model_copy(update={"places": places})


def refused_by(due: Due, error: SluiceError) -> Due:
    """A batch that a sink did not take, and why."""
    person = not isinstance(error, TransientError)
    return due.model_copy(update={"said": str(error), "needs_person": person})
