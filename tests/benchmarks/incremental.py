"""Fifty days, each drained as it comes, beside fifty times all days so far from the start."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.benchmarks.comparison import Comparison
from tests.benchmarks.first_load import FirstLoad
from tests.benchmarks.growth import Growing
from tests.benchmarks.process import Cost

DAYS = 50
_MEASURED = (2, 14, 26, 38, 50)
"""Evenly spread over the fifty: what a recompute costs is a line through its rows, so these five
have the mean of all."""


def daily_runs(scratch: Path, rows: int) -> Iterator[Comparison]:
    """P10. Args: rows: of all fifty days."""
    days, by_hand = Growing(scratch, "days", rows // DAYS), FirstLoad(scratch, rows)
    days.grow(*(day - 1 for day in _MEASURED))

    def recompute(day: int) -> Cost:
        days.land(day)
        return by_hand.tuned(days.landing, "json")

    yield Comparison(
        "P10",
        f"a day of {rows // DAYS:,} orders drained as it comes ÷ all days so far anew by the job "
        f"tuned by hand, sums of {len(_MEASURED)} of {DAYS} days",
        0.08,
        partial(_sum_up, lambda day: days.run_after(day - 1)),
        partial(_sum_up, recompute),
    )


def _sum_up(job: Callable[[int], Cost]) -> Cost:
    costs = [job(day) for day in _MEASURED]
    return Cost(
        sum(cost.cpu for cost in costs),
        sum(cost.wall for cost in costs),
        max(cost.peak for cost in costs),
    )
