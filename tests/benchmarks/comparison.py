"""Runs two jobs in turn and says by how much they differ: what every figure of the README is."""

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass

from tests.benchmarks.process import Cost

Job = Callable[[], Cost]


@dataclass(frozen=True)
class Comparison:
    """Two jobs, of which the first is compared with the second.

    `goal`: the ratio that is aimed at. `unit`: which cost is compared, `cpu` or `wall` seconds.
    """

    name: str
    what: str
    goal: float
    ours: Job
    other: Job
    unit: str = "cpu"


@dataclass(frozen=True)
class Figure:
    """What a comparison came to: medians in seconds, the median of the ratios and their range, and
    the most memory of either process tree, bytes."""

    name: str
    what: str
    unit: str
    ours: float
    other: float
    ratio: float
    low: float
    high: float
    goal: float
    pairs: int
    peak_ours: int
    peak_other: int

    @property
    def line(self) -> str:
        """For a terminal."""
        reached = "ok" if self.ratio <= self.goal else "MISSED"
        return (
            f"{self.name:8s} {self.ours:7.2f} {self.other:7.2f} {self.unit}-s  "
            f"ratio {self.ratio:.3f} [{self.low:.3f} .. {self.high:.3f}]  "
            f"goal {self.goal:.2f} {reached:6s}  "
            f"memory {self.peak_ours / 1e6:,.0f} / {self.peak_other / 1e6:,.0f} MB  {self.what}"
        )


def measure(comparison: Comparison, pairs: int) -> Figure:
    """Run both jobs in turn, so many times; every second pair begins with the other one."""
    costs: list[tuple[Cost, Cost]] = []
    for turn in range(pairs):
        if turn % 2 == 0:
            ours, other = comparison.ours(), comparison.other()
        else:
            other, ours = comparison.other(), comparison.ours()
        costs.append((ours, other))
    spent = [(getattr(a, comparison.unit), getattr(b, comparison.unit)) for a, b in costs]
    ratios = sorted(a / b for a, b in spent)
    return Figure(
        comparison.name,
        comparison.what,
        comparison.unit,
        statistics.median(a for a, _ in spent),
        statistics.median(b for _, b in spent),
        statistics.median(ratios),
        ratios[0],
        ratios[-1],
        comparison.goal,
        pairs,
        max(a.peak for a, _ in costs),
        max(b.peak for _, b in costs),
    )


def to_json(figures: list[Figure], machine: dict[str, object]) -> dict[str, object]:
    """What `to_table` makes the README's table of."""
    return {"machine": machine, "figures": [asdict(figure) for figure in figures]}


def to_table(measured: dict) -> str:
    """A table in Markdown, a row a comparison: as the README shows it."""
    lines = ["| | ours | the other | ratio | memory |", "|---|---|---|---|---|"]
    for found in (Figure(**figure) for figure in measured["figures"]):
        spread = f" ({found.low:.2f} to {found.high:.2f})" if found.pairs > 1 else ""
        unit = "" if found.unit == "cpu" else ", seconds by the clock"
        lines.append(
            f"| {found.name}: {found.what}{unit} | {found.ours:.1f} | {found.other:.1f} "
            f"| {found.ratio:.2f}{spread} "
            f"| {found.peak_ours / 1e9:.1f} ÷ {found.peak_other / 1e9:.1f} GB |"
        )
    return "\n".join(lines)
