"""Fifty days, each drained as it comes, beside fifty times all days so far from the start."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path

from tests.benchmarks.comparison import Comparison
from tests.benchmarks.first_load import FirstLoad
from tests.benchmarks.growth import Growing
from tests.benchmarks.process import Cost

DAYS = 50
_RECOMPUTED = (7, 19, 32, 44)
"""Days after which all is computed anew: what that costs is a line through its rows, and the mean
of these days is that of all fifty."""


def daily_runs(scratch: Path, rows: int) -> Iterator[Comparison]:
    """P10. Args: rows: of all fifty days."""
    days = Growing(scratch, "days", rows // DAYS, apart=timedelta(days=1))
    by_hand = FirstLoad(scratch, rows)

    def recompute(day: int) -> Cost:
        days.land(day)
        return by_hand.tuned(days.landing, "json")

    yield Comparison(
        "P10",
        f"{DAYS} days of {rows // DAYS:,} orders, each drained as it comes ÷ all days so far anew "
        f"each day by the job tuned by hand (of which {len(_RECOMPUTED)} are run)",
        0.08,
        lambda: _sum_up(days.drain_days(DAYS)),
        lambda: _sum_up(map(recompute, _RECOMPUTED), times=DAYS / len(_RECOMPUTED)),
    )


def _sum_up(costs: Iterable[Cost], times: float = 1) -> Cost:
    known = list(costs)
    return Cost(
        sum(cost.cpu for cost in known) * times,
        sum(cost.wall for cost in known) * times,
        max(cost.peak for cost in known),
    )
