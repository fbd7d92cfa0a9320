"""What a checkpoint says of Kafka's offsets, and what that makes of the brokers' answers.

And patterns that Java and Python read alike.
"""

import json
import re
from datetime import datetime

import pytest
from sluice.backlog.kafka import TopicBacklog, measure_topics
from sluice.backlog.kafka_offsets import (
    compare_offsets,
    find_start,
    offsets_after,
    planned_offsets,
)
from sluice.backlog.kafka_pattern import compile_pattern
from sluice.checkpoint import Checkpoint
from sluice.spec import KafkaSource, KafkaStart


@pytest.fixture
def log(tmp_path):
    """Writes a checkpoint as Spark 4.2's Kafka source does."""
    for name in ("offsets", "commits", "sources/0"):
        (tmp_path / name).mkdir(parents=True)

    class Log:
        checkpoint = Checkpoint(tmp_path)

        def begin(self, offsets: dict, first: str = "\0") -> None:
            (tmp_path / "sources/0/0").write_text(f"{first}v1\n{json.dumps(offsets)}")

        def plan(self, batch: int, offsets: dict | None) -> None:
            metadata = json.dumps(
                {"batchWatermarkMs": 0, "batchTimestampMs": 1795314107235, "conf": {}}
            )
            (tmp_path / f"offsets/{batch}").write_text(
                f"v1\n{metadata}\n{'-' if offsets is None else json.dumps(offsets)}"
            )

        def commit(self, batch: int) -> None:
            (tmp_path / f"commits/{batch}").write_text('v1\n{"nextBatchWatermarkMs":0}')

    return Log()


def test_an_empty_checkpoint_knows_nothing(log):
    assert offsets_after(log.checkpoint, log.checkpoint.newest_commit) is None


@pytest.mark.parametrize("first", ["\0", ""])
def test_before_the_first_batch_reading_goes_on_where_the_source_began(log, first):
    log.begin({"t": {"0": 7, "1": 0}}, first)
    log.plan(0, {"t": {"0": 9, "1": 5}})
    assert offsets_after(log.checkpoint, log.checkpoint.newest_commit) == {"t": {0: 7, 1: 0}}


def test_a_planned_batch_is_not_a_committed_one(log):
    log.begin({"t": {"0": 7}})
    log.plan(0, {"t": {"0": 9}})
    log.commit(0)
    log.plan(1, {"t": {"0": 12}})
    assert offsets_after(log.checkpoint, log.checkpoint.newest_commit) == {"t": {0: 9}}


def test_a_batch_reads_from_where_the_one_before_ended(log):
    log.begin({"t": {"0": 7}, "u": {"0": 1}})
    log.plan(0, {"t": {"0": 9}, "u": {"0": 1}})
    log.plan(1, {"t": {"0": 12, "1": 4}})
    assert planned_offsets(log.checkpoint, 0) == {"t": {0: (7, 9)}, "u": {0: (1, 1)}}
    assert planned_offsets(log.checkpoint, 1) == {
        "t": {0: (9, 12), 1: (0, 4)}
    }  # partition 1 is new, topic u is gone


def test_a_batch_reads_nothing_of_a_partition_that_was_made_anew(log):
    log.begin({"t": {"0": 7}})
    log.plan(0, {"t": {"0": 3}})
    assert planned_offsets(log.checkpoint, 0) == {"t": {0: (3, 3)}}


def test_a_source_that_wrote_no_offset_knows_no_partition(log):
    log.plan(0, None)
    log.commit(0)
    assert offsets_after(log.checkpoint, log.checkpoint.newest_commit) == {}


def test_a_damaged_checkpoint_is_an_error_and_not_an_empty_one(log):
    log.plan(0, {"t": {"0": 9}})
    log.commit(0)
    (log.checkpoint.folder / "offsets/0").write_text('v1\n{}\n{"t":{"0":')
    with pytest.raises(ValueError):
        offsets_after(log.checkpoint, log.checkpoint.newest_commit)


def compare(start, first, end, **more):
    return {
        name: value for name, value in compare_offsets(start, first, end, **more).items() if value
    }


def test_what_lies_between_the_checkpoint_and_the_end_is_waiting():
    assert compare({"t": {0: 7, 1: 5}}, {"t": {0: 0, 1: 2}}, {"t": {0: 10, 1: 5}}) == {
        "waiting": {"t": {0: 3}}
    }


def test_records_that_expired_before_they_were_read_are_lost_and_the_others_wait():
    assert compare({"t": {0: 7}}, {"t": {0: 9}}, {"t": {0: 12}}) == {
        "lost": {"t": {0: 2}},
        "waiting": {"t": {0: 3}},
    }
    assert compare({"t": {0: 7}}, {"t": {0: 12}}, {"t": {0: 12}}) == {"lost": {"t": {0: 5}}}


def test_a_new_partition_is_read_from_its_first_record_and_what_expired_of_it_is_lost():
    assert compare({"t": {0: 1}}, {"t": {0: 0, 1: 0, 2: 4}}, {"t": {0: 1, 1: 2, 2: 5}}) == {
        "new": {"t": [1, 2]},
        "waiting": {"t": {1: 2, 2: 1}},
        "lost": {"t": {2: 4}},
    }


def test_a_topic_that_is_gone_is_named_even_when_nothing_else_waits():
    assert compare({"t": {0: 1}, "u": {0: 1, 1: 0}}, {"t": {0: 0}}, {"t": {0: 1}}) == {
        "gone": {"u": [0, 1]}
    }


def test_a_topic_that_ends_before_the_checkpoint_was_made_anew_and_all_of_it_waits():
    assert compare({"t": {0: 7}}, {"t": {0: 0}}, {"t": {0: 3}}) == {
        "recreated": {"t": [0]},
        "waiting": {"t": {0: 3}},
    }
    assert compare({"t": {0: 7}}, {"t": {0: 0}}, {"t": {0: 0}}) == {"recreated": {"t": [0]}}


def test_a_first_run_may_begin_beyond_the_end():
    assert compare({"t": {0: 7}}, {"t": {0: 0}}, {"t": {0: 3}}, first_run=True) == {}


@pytest.mark.parametrize(
    "found",
    [
        {"waiting": {"t": {0: 1}}},
        {"lost": {"t": {0: 1}}},
        {"gone": {"t": [0]}},
        {"recreated": {"t": [0]}},
        {"unknown_start": True},
        {"unknown_topics": True},
    ],
)
def test_whatever_somebody_should_hear_of_makes_a_run(found):
    assert TopicBacklog(**found).must_run


def test_new_partitions_without_records_make_no_run():
    assert not TopicBacklog(new={"t": [1]}).must_run


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("earliest", ({"t": {0: 1, 1: 2}}, False)),
        ("latest", ({"t": {0: 5, 1: 6}}, True)),
        (KafkaStart(offsets={"t": {0: 4}}), ({"t": {0: 4, 1: 2}}, False)),
        (KafkaStart(offsets={"t": {0: "latest", 1: "earliest"}}), ({"t": {0: 5, 1: 2}}, True)),
        (KafkaStart(timestamp=datetime(2026, 1, 1)), ({"t": {0: 3, 1: 6}}, True)),
    ],
)
def test_the_first_run_begins_where_the_source_says(start, expected):
    assert (
        find_start(start, {"t": {0: 1, 1: 2}}, {"t": {0: 5, 1: 6}}, {"t": {0: 3, 1: -1}})
        == expected
    )


@pytest.mark.parametrize(
    ("pattern", "matches", "others"),
    [
        (
            "orders",
            ["orders", "old-orders-2"],
            ["order"],
        ),  # Spark looks for the pattern anywhere in the name
        ("^orders$", ["orders"], ["orders2"]),
        (r"^(?:eu|us)\.orders-\d{2}$", ["eu.orders-01"], ["eu_orders-01", "eu.orders-1"]),
        ("^[a-c_.]+x?$", ["abc_.x"], ["dx"]),
        ("^(?!test).*-v[0-9]+$", ["shop-v1"], ["test-v1"]),
        ("(?i)^ORDERS$", ["orders"], ["borders"]),
    ],
)
def test_a_common_pattern_is_understood(pattern, matches, others):
    compiled = compile_pattern(pattern)
    assert isinstance(compiled, re.Pattern)
    assert all(compiled.search(name) for name in matches)
    assert not any(compiled.search(name) for name in others)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\p{Alpha}+",
        "[a-z&&[^b]]",
        r"\Qa.b\E",
        "(?<name>a)",
        "a(?-i)b",
        "(a",
        r"(a)\1",
        r"a\Z",
        "[a-c[x-z]]",
        "(?<=a*)b",
        "a**",
        r"\bx",
    ],
)
def test_a_pattern_that_only_java_can_read_is_left_to_a_run(pattern, log):
    assert compile_pattern(pattern) is None
    source = KafkaSource(
        kind="kafka",
        servers="127.0.0.1:1",
        subscribe_pattern=pattern,
        format="text",
        columns={"value": "string"},
    )
    assert measure_topics(source, log.checkpoint).must_run
