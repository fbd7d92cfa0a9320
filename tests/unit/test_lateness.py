"""The histogram of lateness and the horizon it suggests."""

import pytest
from sluice.report import BOUNDS, add_histograms
from sluice.report.lateness import label_bars, suggest_within
from sluice.spec.quantities import parse_duration


def make_histogram(**rows: int) -> list[int]:
    return [rows.get(f"bar{number}", 0) for number in range(len(BOUNDS) + 1)]


@pytest.mark.parametrize(
    ("histogram", "within"),
    [
        ([], None),
        (make_histogram(bar0=1000), None),
        (make_histogram(bar0=9990, bar5=10), "1 minute"),
        (make_histogram(bar0=9989, bar5=11), "3 hours"),
        (make_histogram(bar0=500, bar8=499, bar15=1), "1 day"),
        (make_histogram(bar0=1, bar16=1), None),
    ],
)
def test_the_suggested_horizon_is_the_smallest_that_covers_999_of_1000_rows(histogram, within):
    assert suggest_within(histogram) == within
    if within:
        covered = sum(
            rows
            for bound, rows in zip(BOUNDS, histogram, strict=False)
            if bound <= parse_duration(within).total_seconds()
        )
        assert covered >= 0.999 * sum(histogram)


def test_a_batch_before_which_nothing_was_seen_adds_nothing():
    one = make_histogram(bar0=3, bar2=1)
    assert add_histograms([], one) == add_histograms(one, []) == one
    assert add_histograms(one, one) == make_histogram(bar0=6, bar2=2)
    assert add_histograms([], []) == []


def test_bars_are_named_up_to_the_last_that_holds_rows():
    assert label_bars(make_histogram(bar0=3, bar2=1)) == [
        ("not late", 3),
        ("up to 1 minute", 0),
        ("up to 5 minutes", 1),
    ]
    assert label_bars(make_histogram(bar16=2))[-1][1] == 2
    assert label_bars([]) == []
