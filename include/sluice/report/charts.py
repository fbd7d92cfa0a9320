"""The geometry of the report's charts: numbers in, coordinates out; report.html.j2 draws them, so
that every value is escaped in one place.
"""

from dataclasses import dataclass
from datetime import datetime

from .counts import FATES, Counts
from .model import BatchReport, StepReport
from .summary import changes_rows, event_range
from .units import from_millis, to_utc

_MAX_BARS = 60
_MAX_LANES = 24
_PLOT_HEIGHT = 150.0


@dataclass(frozen=True)
class Segment:
    """One fate within one bar: px from the top of the plot."""

    fate: str
    top: float
    height: float


@dataclass(frozen=True)
class Bar:
    """One batch, or neighbouring batches where there are too many: percent of the plot's width."""

    x: float
    width: float
    segments: list[Segment]
    label: str
    title: str


@dataclass(frozen=True)
class BatchChart:
    """Bars of rows per batch; `top` is the row count at the upper edge."""

    fates: tuple[str, ...]
    bars: list[Bar]
    top: int
    height: float
    per_bar: int


def draw_batches(batches: list[BatchReport]) -> BatchChart | None:
    """Stacked bars; None when fewer than two batches make a comparison pointless."""
    if len(batches) < 2:
        return None
    per_bar = -(-len(batches) // _MAX_BARS)
    groups = [batches[i : i + per_bar] for i in range(0, len(batches), per_bar)]
    sums = [sum((batch.counts for batch in group), Counts()) for group in groups]
    fates = FATES[:-1] if changes_rows(batches) else FATES
    top = max(max(sum(getattr(counts, fate) for fate in fates) for counts in sums), 1)
    step = 100 / len(groups)
    bars = [
        Bar(i * step + step * 0.11, step * 0.78, _stack(counts, fates, top), *_tell(group, counts))
        for i, (group, counts) in enumerate(zip(groups, sums, strict=True))
    ]
    return BatchChart(fates, bars, top, _PLOT_HEIGHT, per_bar)


def _stack(counts: Counts, fates: tuple[str, ...], top: int) -> list[Segment]:
    floor, segments = _PLOT_HEIGHT, []
    for fate in fates:
        rows = getattr(counts, fate)
        if rows > 0:
            height = max((_PLOT_HEIGHT - 8) * rows / top, 1.5)
            floor -= height
            segments.append(Segment(fate, floor, height))
    return segments


def _tell(group: list[BatchReport], counts: Counts) -> tuple[str, str]:
    """A bar's label, and what it says to those who point at it."""
    first, last = group[0].batch_id, group[-1].batch_id
    label = str(first) if first == last else f"{first}-{last}"
    return label, f"batch {label}: {counts.line}"


@dataclass(frozen=True)
class Lane:
    """The event times of one batch on the time axis, percent of its width; `mark` is the watermark
    in force in it."""

    label: str
    x: float
    width: float
    mark: float | None


@dataclass(frozen=True)
class Timeline:
    """Event times of the run and its watermark before and after on one axis, percent of its
    width."""

    start: datetime
    end: datetime
    lanes: list[Lane]
    before: float | None
    after: float | None


def draw_timeline(step: StepReport) -> Timeline | None:
    """Lanes by batch, or one for the run when there are too many; None when no row had an event
    time."""
    spread = event_range(step.batches)
    if spread is None:
        return None
    before, after = from_millis(step.watermark_before_ms), from_millis(step.watermark_after_ms)
    start, end = (
        min(t for t in (*spread, before, after) if t),
        max(t for t in (*spread, before, after) if t),
    )
    length = (end - start).total_seconds() or 1.0

    def place(moment: datetime) -> float:
        return min(max(100 * (to_utc(moment) - start).total_seconds() / length, 0.0), 100.0)

    def lane(label: str, first: datetime, last: datetime, mark: datetime | None) -> Lane:
        x = place(first)
        return Lane(label, x, place(last) - x, place(mark) if mark else None)

    lanes = [
        lane(f"batch {b.batch_id}", b.event_time_min, b.event_time_max, from_millis(b.watermark_ms))
        for b in step.batches
        if b.event_time_min and b.event_time_max
    ]
    if len(lanes) > _MAX_LANES:
        lanes = [lane("all batches", *spread, None)]
    marks = [place(moment) if moment else None for moment in (before, after)]
    return Timeline(start, end, lanes, *marks)
