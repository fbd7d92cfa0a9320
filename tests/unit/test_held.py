"""What a report says of what is held in state."""

from datetime import UTC, datetime

import pytest
from sluice.report import HeldInState
from sluice.report.held import tell_held

FIRST, LAST = datetime(2026, 1, 1, 9, tzinfo=UTC), datetime(2026, 1, 1, 12, tzinfo=UTC)
NOW = 1767258000000
JOIN = {"operator": "symmetricHashJoin", "amount": 12_000, "unit": "row"}
SUMS = {"operator": "stateStoreSave", "amount": 3, "unit": "group"}
KEYS = {"operator": "dedupe", "amount": 2, "unit": "key"}
SAID = {
    "grown": (
        JOIN | {"bytes": 3_100_000, "grown": 2_000, "since": "r1", "oldest": FIRST},
        "12,000 rows are held in state (3.1 MB, 2,000 more than after run r1), the oldest of "
        "2026-01-01 09:00:00 UTC: a row waits for its match until the watermark (now 2026-01-01 "
        "09:00:00 UTC) rules one out.",
    ),
    "shrunk": (JOIN | {"grown": -1, "since": "r1"}, "in state (1 fewer than after run r1): a row"),
    "the_same": (JOIN | {"grown": 0, "since": "r1"}, "in state (as many as after run r1): a row"),
    "unknown": (JOIN, "12,000 rows are held in state: a row waits"),
    "windows": (
        SUMS | {"bytes": 700, "closes_first": FIRST, "closes_last": LAST},
        "3 groups are held in state (700 B), in windows that end between 2026-01-01 09:00:00 UTC "
        "and 2026-01-01 12:00:00 UTC: each is written by the first batch",
    ),
    "keys": (
        KEYS | {"oldest": FIRST, "closes_first": LAST, "closes_last": LAST},
        "2 keys are held in state, the oldest of 2026-01-01 09:00:00 UTC: each is let go when the "
        "watermark (now 2026-01-01 09:00:00 UTC) is past its time, at 2026-01-01 12:00:00 "
        "UTC.",
    ),
    "keys_with_their_time": (KEYS, "09:00:00 UTC) is past its time."),
    "for_ever": (KEYS | {"forever": True}, "none of it is ever let go"),
    "user_s_own": (
        {"operator": "transformWithStateExec", "amount": 1, "unit": "value"},
        "1 value is held in state by the step's own function.",
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_what_is_held_is_told_with_its_size_its_growth_and_what_ends_its_stay(case):
    fields, sentence = SAID[case]
    (told,) = tell_held([HeldInState(**fields)], NOW)
    assert sentence in told


def test_a_group_above_a_join_waits_for_the_range_of_the_join_as_well():
    windows = SUMS | {"closes_first": FIRST, "closes_last": LAST}
    for number, less in ((0, ", less the range of time of the join below it,"), (2, "")):
        groups, _ = tell_held(
            [HeldInState(**windows, number=number), HeldInState(**JOIN, number=1)], NOW
        )
        assert f"after the watermark (now 2026-01-01 09:00:00 UTC){less} is past it." in groups


def test_nothing_is_said_of_an_operator_that_keeps_nothing():
    assert list(tell_held([HeldInState(**{**SUMS, "amount": 0})], NOW)) == []
