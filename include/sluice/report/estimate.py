"""How long a run will take and what it will cost, by the reports of earlier ones."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

from .model import RunReport, StepReport
from .ranges import COMMITS
from .units import format_seconds

RUNS = 30
"""Of how many reports, the newest, an estimate is made."""
_FAR = 3
"""Times the largest run so far, beyond which an estimate is a guess."""


@dataclass(frozen=True)
class Amount:
    """What waits for the steps of a pipeline, summed: bytes of files, offsets of topics, commits of
    tables."""

    bytes: int = 0
    records: int = 0
    commits: int = 0


@dataclass(frozen=True)
class Estimate:
    """Seconds by the clock and of cores. `runs`: of how many it was made; `times`: how much larger
    it is than the largest of them."""

    seconds: float
    core_seconds: float
    runs: int
    times: float

    @property
    def sentence(self) -> str:
        """For a person."""
        runs = "the last run" if self.runs == 1 else f"the last {self.runs} runs"
        took = f"about {format_seconds(self.seconds)} and {self.core_seconds:,.0f} core-seconds"
        far = f"; that is {self.times:,.0f} times the largest of them, so a guess"
        return f"{took}, by {runs}{far if self.times > _FAR else ''}"


def estimate_run(waiting: Amount, reports: Iterable[RunReport]) -> Estimate | None:
    """A line through what earlier runs read and what they took; through the origin where all of
    them were of one size and more waits. None where no run tells anything."""
    size, read = _choose_unit(waiting)
    ended = [r for r in reports if r.kind == "scheduled" and r.status in ("done", "undelivered")]
    runs = [(sum(map(read, r.steps)), r) for r in ended]
    runs = [(x, r) for x, r in runs if x > 0][:RUNS]
    if not runs or not size:
        return None
    sizes = [x for x, _ in runs]
    return Estimate(
        _fit(size, sizes, [r.seconds_up for _, r in runs]),
        _fit(size, sizes, [_core_seconds(r) for _, r in runs]),
        len(runs),
        size / max(sizes),
    )


def _choose_unit(waiting: Amount) -> tuple[int, Callable[[StepReport], int]]:
    """What says how large a run is: the first of these of which something waits."""
    if waiting.bytes:
        return waiting.bytes, lambda step: step.bytes_read
    if waiting.records:
        return waiting.records, lambda step: _count(step, commits=False)
    return waiting.commits, lambda step: _count(step, commits=True)


def _count(step: StepReport, *, commits: bool) -> int:
    spans = step.ranges.items()
    return sum(b - a for place, (a, b) in spans if place.startswith(COMMITS) == commits)


def _core_seconds(report: RunReport) -> float:
    return report.core_seconds + float(report.spark.get("executor_core_seconds", 0))


def _fit(size: int, sizes: Sequence[int], costs: Sequence[float]) -> float:
    usual = fmean(costs)
    if len(set(sizes)) == 1:
        return usual * max(1.0, size / sizes[0])
    slope = max(0.0, linear_regression(sizes, costs).slope)
    return max(min(costs) / 2, usual + slope * (size - fmean(sizes)))
