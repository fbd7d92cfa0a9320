"""How far behind the newest earlier row the rows came, and the `within` that would have covered
nearly all of them.
"""

from datetime import timedelta

from ..spec import format_duration

BOUNDS = (
    0,
    60,
    300,
    900,
    3600,
    3 * 3600,
    6 * 3600,
    12 * 3600,
    86400,
    2 * 86400,
    3 * 86400,
    7 * 86400,
    14 * 86400,
    30 * 86400,
    90 * 86400,
    365 * 86400,
)
"""Upper bounds of the histogram's bars, seconds; one more bar holds the rest."""
COVERED = 0.999


def _say(seconds: int) -> str:
    return format_duration(timedelta(seconds=seconds))


def add_histograms(first: list[int], second: list[int]) -> list[int]:
    """Sum two histograms; an empty one is a batch before which nothing was seen."""
    return (
        [a + b for a, b in zip(first, second, strict=True)] if first and second else first or second
    )


def label_bars(histogram: list[int]) -> list[tuple[str, int]]:
    """(`not late`, `up to 1 minute`, ... , rows) for the bars up to the last that is not empty."""
    labels = [
        "not late",
        *(f"up to {_say(bound)}" for bound in BOUNDS[1:]),
        f"over {_say(BOUNDS[-1])}",
    ]
    last = max((number for number, rows in enumerate(histogram) if rows), default=-1)
    return list(zip(labels, histogram, strict=False))[: last + 1]


def suggest_within(histogram: list[int]) -> str | None:
    """The smallest bound that covers 99.9 % of the rows, as a duration to write into YAML; None
    when nothing was late, or the last bound does not cover them."""
    total, covered = sum(histogram), 0
    if total == 0 or histogram[0] == total:
        return None
    for bound, rows in zip(BOUNDS, histogram, strict=False):
        covered += rows
        if covered >= COVERED * total:
            return _say(max(bound, BOUNDS[1]))
    return None
