"""Durations and sizes as people write them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.spec.quantities import (
    format_duration,
    format_share,
    parse_duration,
    parse_share,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("30 seconds", timedelta(seconds=30)),
        ("1 minute", timedelta(minutes=1)),
        ("1.5 hours", timedelta(minutes=90)),
        ("2 days", timedelta(days=2)),
        (" 1 week ", timedelta(weeks=1)),
        ("2days", timedelta(days=2)),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text, duration):
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "wrong", ["", "2", "days", "two days", "2 d", "-1 day", "1 day 2 hours", 2, 2.0, None, True]
)
def test_anything_else_is_no_duration(wrong):
    with pytest.raises(ValueError, match="write a number and a unit"):
        parse_duration(wrong)


@given(st.integers(min_value=1, max_value=10**7))
def test_a_duration_that_is_written_can_be_read_again(seconds):
    assert parse_duration(format_duration(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


def test_a_duration_is_written_in_its_largest_unit():
    assert [format_duration(timedelta(seconds=s)) for s in (1, 90, 3600, 172800, 604800)] == [
        "1 second",
        "90 seconds",
        "1 hour",
        "2 days",
        "1 week",
    ]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1 B", 1),
        ("500 KB", 500_000),
        ("256 MB", 256_000_000),
        ("1.5 gb", 1_500_000_000),
        (1024, 1024),
    ],
)
def test_a_size_is_a_number_and_a_unit(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("wrong", ["", "10", "big", "-1 MB", 0, -5, True, None, 1.5])
def test_anything_else_is_no_size(wrong):
    with pytest.raises(ValueError, match="not a size"):
        parse_size(wrong)


@pytest.mark.parametrize(
    ("text", "share"), [("5 %", 0.05), ("0.7%", 7 / 1000), ("100 %", 1.0), ("0 %", 0.0)]
)
def test_a_share_is_a_percentage_and_exactly_that(text, share):
    assert parse_share(text) == share
    assert parse_share(format_share(share)) == share


@pytest.mark.parametrize("wrong", ["5", "0.05", 5, 0.05, "101 %", "-1 %", "%", None, True])
def test_anything_else_is_no_share(wrong):
    with pytest.raises(ValueError, match="'5 %'"):
        parse_share(wrong)
