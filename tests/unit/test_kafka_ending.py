"""Topics that end for good: what a run passes over is noted, and no edit makes it "read"."""

import pytest
from sluice.backlog.kafka_ending import clamp, note_ends, passed_over
from sluice.checkpoint import Checkpoint
from sluice.sources.kafka_options import reader_options
from sluice.spec import KafkaSource

TOPIC = {"kind": "kafka", "servers": "b:9092", "subscribe": "t", "format": "text"}


def ending(*ends: int, **more: object) -> KafkaSource:
    """A source whose partitions 0, 1, ... end there."""
    offsets = {"ending_offsets": {"t": dict(enumerate(ends))}} if ends else {}
    return KafkaSource(**TOPIC, schema={"value": "string"}, **offsets, **more)


def test_nothing_behind_an_end_waits_and_other_partitions_have_none():
    assert clamp({"t": {0: 9, 1: 9}, "u": {0: 9}}, ending(4)) == {"t": {0: 4, 1: 9}, "u": {0: 9}}


@pytest.mark.parametrize(
    ("first", "committed", "second", "lost"),
    [
        ((4,), 3, (6,), {}),  # the end was not reached yet
        ((4,), 4, (), {}),
        ((4,), 7, (4,), {}),
        ((4,), 7, (2,), {}),
        ((4,), 7, (6,), {"t": {0: 2}}),
        ((4,), 7, (9,), {"t": {0: 3}}),
        ((4,), 7, (), {"t": {0: 3}}),
    ],
)
def test_an_end_may_move_where_nothing_was_passed_over(tmp_path, first, committed, second, lost):
    checkpoint = Checkpoint.below(str(tmp_path))
    note_ends(ending(*first), checkpoint, {})
    assert passed_over(ending(*second), checkpoint, {"t": {0: committed}}) == lost


def test_what_was_read_before_an_end_was_written_counts_as_read(tmp_path):
    checkpoint = Checkpoint.below(str(tmp_path))
    note_ends(ending(4), checkpoint, {"t": {0: 100}})
    note_ends(ending(4), checkpoint, {"t": {0: 120}})
    assert passed_over(ending(90), checkpoint, {"t": {0: 120}}) == {}
    assert passed_over(ending(), checkpoint, {"t": {0: 120}}) == {"t": {0: 20}}


def test_fields_reach_spark_under_its_own_names():
    told = reader_options(ending(min_partitions=8, group_id_prefix="shop"), {})
    assert (told["minPartitions"], told["groupIdPrefix"]) == ("8", "shop")
    assert (
        not {"minPartitions", "groupIdPrefix", "endingOffsets"}
        & reader_options(ending(4), {}).keys()
    )
