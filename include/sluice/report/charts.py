"""The geometry of the report's charts: numbers in, coordinates out; report.html.j2 draws them, so
that every value is escaped in one place.
"""

from dataclasses import dataclass
from datetime import datetime

from .model import BatchReport, Counts, StepReport
from .summary import FATES, event_range
from .units import format_count, format_percent, from_millis, to_utc

_FLOW_HEIGHT = 200.0
_SLOT_HEIGHT = 54.0
_MAX_BARS = 60
_MAX_LANES = 24
_PLOT_HEIGHT = 150.0


@dataclass(frozen=True)
class Ribbon:
    """One fate's share of the rows: heights in px, `path` in a box 100 wide that is stretched to
    the page."""

    fate: str
    rows: int
    share: str
    slot_height: float
    top: float
    thickness: float
    path: str


@dataclass(frozen=True)
class Flow:
    """Rows on the left splitting into fates on the right; `intake` is the count before a transform
    that changed it."""

    height: float
    top: float
    bar_height: float
    ribbons: list[Ribbon]
    intake: str = ""
    intake_top: float = 0.0
    intake_height: float = 0.0


def draw_flow(counts: Counts) -> Flow | None:
    """The flow of one step or run; None when no row came."""
    total = counts.malformed + counts.made
    if not counts.read or not total:
        return None
    # A single row among millions still gets a visible thread.
    thick = {
        fate: max(_FLOW_HEIGHT * getattr(counts, fate) / total, 2.0)
        if getattr(counts, fate)
        else 0.0
        for fate in FATES
    }
    slots = {fate: max(thick[fate] + 12, _SLOT_HEIGHT) for fate in FATES}
    height, bar = sum(slots.values()), sum(thick.values())
    left, slot_top, ribbons = (height - bar) / 2, 0.0, []
    for fate in FATES:
        top, rows = slot_top + (slots[fate] - thick[fate]) / 2, getattr(counts, fate)
        ribbons.append(
            Ribbon(
                fate,
                rows,
                format_percent(rows, total),
                slots[fate],
                top,
                thick[fate],
                _band(left, top, thick[fate], thick[fate]),
            )
        )
        left, slot_top = left + thick[fate], slot_top + slots[fate]
    top = (height - bar) / 2
    if counts.entered == counts.made:
        return Flow(height, top, bar, ribbons)
    before = min(max(bar * counts.read / total, 2.0), height)
    return Flow(
        height,
        top,
        bar,
        ribbons,
        _band((height - before) / 2, top, before, bar),
        (height - before) / 2,
        before,
    )


def _band(left: float, right: float, left_height: float, right_height: float) -> str:
    """A ribbon from x=0 to x=100: level at both ends."""
    return (
        f"M0,{left:.2f}C50,{left:.2f} 50,{right:.2f} 100,{right:.2f}V{right + right_height:.2f}"
        f"C50,{right + right_height:.2f} 50,{left + left_height:.2f} 0,{left + left_height:.2f}Z"
    )


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
    top = max(max(sum(getattr(counts, fate) for fate in FATES) for counts in sums), 1)
    step = 100 / len(groups)
    bars = [
        _draw_bar(group, counts, top, i * step + step * 0.11, step * 0.78)
        for i, (group, counts) in enumerate(zip(groups, sums, strict=True))
    ]
    return BatchChart(bars, top, _PLOT_HEIGHT, per_bar)


def _draw_bar(group: list[BatchReport], counts: Counts, top: int, x: float, width: float) -> Bar:
    floor, segments = _PLOT_HEIGHT, []
    for fate in FATES:
        rows = getattr(counts, fate)
        height = max((_PLOT_HEIGHT - 8) * rows / top, 1.5) if rows else 0.0
        floor -= height
        if rows:
            segments.append(Segment(fate, floor, height))
    first, last = group[0].batch_id, group[-1].batch_id
    label = str(first) if first == last else f"{first}-{last}"
    told = ", ".join(f"{format_count(getattr(counts, fate))} {fate}" for fate in FATES)
    return Bar(
        x, width, segments, label, f"batch {label}: {format_count(counts.read)} read, {told}"
    )


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
    """Event times of the run and its watermark before and after on one axis, in percent of it."""

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
