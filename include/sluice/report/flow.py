"""The drawing of where rows went: bands from what came to what became of it, as wide as their rows
are many. Vertical measures are px, horizontal ones percent of the page's width.
"""

from dataclasses import dataclass, field

from .counts import FATES, Counts, Line
from .units import format_percent

_HEIGHT = 200.0
_SLOT_HEIGHT = 54.0
_GAP = 12.0
_KNEE = 22.0
"""Where the rows that a transform made begin."""


@dataclass(frozen=True)
class Slot:
    """A fate at the right end: its label's room, and the end of its band in the middle of it."""

    fate: str
    rows: int
    share: str
    top: float
    height: float
    thickness: float

    @property
    def band_top(self) -> float:
        """Where its band ends."""
        return self.top + (self.height - self.thickness) / 2


@dataclass(frozen=True)
class Bar:
    """A place that rows pass through."""

    x: float
    top: float
    height: float


@dataclass(frozen=True)
class Band:
    """Rows on their way; `fate` is empty where they have none yet. `path`: in a box 100 wide, to
    be stretched from `x` to `x + width`."""

    fate: str
    x: float
    width: float
    path: str


@dataclass(frozen=True)
class Flow:
    """Rows on the left splitting into fates on the right. Records that a transform makes other
    rows of split twice: before it, and behind it."""

    height: float
    bars: list[Bar] = field(default_factory=list)
    bands: list[Band] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)


def draw_flow(counts: Counts) -> Flow | None:
    """The flow of one step or run; None when no row came, or the numbers do not add up."""
    line = counts.lines[-1]
    if not counts.balanced or not line.total:
        return None
    slots = _stack(line)
    if len(counts.lines) == 1 or not counts.read:
        return _split(slots, 0.0)
    return _split_twice(_split(slots, _KNEE), counts)


def _stack(line: Line) -> list[Slot]:
    slots, top = [], 0.0
    for fate, rows in line.became.items():
        thickness = _thicken(_HEIGHT * rows / line.total)
        height = max(thickness + _GAP, _SLOT_HEIGHT)
        share = format_percent(rows, line.total)
        slots.append(Slot(fate, rows, share, top, height, thickness))
        top += height
    return slots


def _thicken(thickness: float) -> float:
    """A single row among millions still gets a visible thread."""
    return max(thickness, 2.0) if thickness else 0.0


def _split(slots: list[Slot], x: float) -> Flow:
    """One bar, from which each fate's band begins."""
    height, bar = sum(s.height for s in slots), sum(s.thickness for s in slots)
    top = (height - bar) / 2
    flow, begin = Flow(height, [Bar(x, top, bar)], slots=slots), top
    for slot in slots:
        if slot.rows:
            path = _band(begin, slot.band_top, slot.thickness, slot.thickness)
            flow.bands.append(Band(slot.fate, x, 100.0 - x, path))
        begin += slot.thickness
    return flow


def _split_twice(flow: Flow, counts: Counts) -> Flow:
    """Before the bar of the rows that were made, one of the records: what a WHERE left out passes
    below, the rest goes in."""
    made, total = flow.bars[0], counts.rows.total
    passed = made.height * (counts.malformed + counts.entered) / total
    left_out = made.height * counts.filtered / total
    fit = min(_HEIGHT / (passed + left_out), 1.0)
    passed, left_out = _thicken(passed * fit), _thicken(left_out * fit)
    slots = list(flow.slots)
    if counts.filtered:
        share = f"{format_percent(counts.filtered, counts.read)} of what was read"
        room = max(left_out + _GAP, _SLOT_HEIGHT)
        slots.append(Slot(FATES[-1], counts.filtered, share, flow.height, room, left_out))
    height = sum(slot.height for slot in slots)
    top = (height - passed - left_out) / 2
    before = [Band("", 0.0, _KNEE, _band(top, made.top, passed, made.height))]
    if counts.filtered:
        end = slots[-1].band_top
        bend = _band(top + passed, end, left_out, left_out)
        level = _band(end, end, left_out, left_out)
        before += [
            Band(FATES[-1], 0.0, _KNEE, bend),
            Band(FATES[-1], _KNEE, 100.0 - _KNEE, level),
        ]
    records = Bar(0.0, top, passed + left_out)
    return Flow(height, [records, *flow.bars], before + flow.bands, slots)


def _band(left: float, right: float, left_height: float, right_height: float) -> str:
    """A ribbon from x=0 to x=100: level at both ends."""
    lower_left, lower_right = left + left_height, right + right_height
    return (
        f"M0,{left:.2f}C50,{left:.2f} 50,{right:.2f} 100,{right:.2f}V{lower_right:.2f}"
        f"C50,{lower_right:.2f} 50,{lower_left:.2f} 0,{lower_left:.2f}Z"
    )
