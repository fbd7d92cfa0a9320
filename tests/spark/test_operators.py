"""What each operator with state drops as late is counted, in the batch that it drops it from."""

import json
import os
from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sluice.spark.operators import LateInOperator, count_late_in_operators


def lines(hour: int, *names: str, n: int = 1) -> str:
    at = f"2026-01-01T{hour:02d}:30:00Z"
    return "".join(json.dumps({"id": name, "at": at}) + "\n" for name in names for _ in range(n))


BATCHES = [
    lines(10, "a", "b"),
    lines(18, "c"),
    lines(18, "e"),
    lines(10, "a", "z", n=10) + lines(18, "d"),
    lines(18, "c"),
]
"""The fourth has twenty rows of an hour that is closed.

Late is what the batch before it would have called late.
"""
LATE = 3


@pytest.fixture
def count(spark, tmp_path):
    """Run the batches through a query, read each once and ask what was dropped."""
    for number, text in enumerate(BATCHES):
        (tmp_path / "in").mkdir(exist_ok=True)
        path = tmp_path / "in" / f"{number}.json"
        path.write_text(text)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))  # files are read in this order

    def run(query: Callable[[DataFrame], DataFrame]) -> list[list[LateInOperator]]:
        found = []

        def ask(rows: DataFrame, _batch: int) -> None:
            rows.collect()
            found.append(count_late_in_operators(spark))

        rows = (
            spark.readStream.schema("id string, at timestamp")
            .option("maxFilesPerTrigger", 1)
            .json(str(tmp_path / "in"))
            .withWatermark("at", "1 hour")
        )
        writer = query(rows).writeStream.foreachBatch(ask).trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "check")).start().awaitTermination()
        return found

    return run


def dropped(found: list[list[LateInOperator]], batch: int) -> list[tuple[str, int, str]]:
    return [(late.operator, late.dropped, late.unit) for late in found[batch]]


def test_an_aggregation_counts_the_groups_it_dropped(count):
    found = count(lambda rows: rows.groupBy(F.window("at", "1 hour"), "id").count())
    assert dropped(found, 0) == [("StateStoreSave", 0, "groups")]
    assert dropped(found, LATE) == [("StateStoreSave", 2, "groups")]
    assert dropped(found, 4) == [("StateStoreSave", 0, "groups")]


def test_a_deduplication_counts_the_rows_it_dropped(count):
    found = count(lambda rows: rows.dropDuplicatesWithinWatermark(["id"]))
    assert dropped(found, 1) == [("StreamingDeduplicateWithinWatermark", 0, "rows")]
    assert dropped(found, LATE) == [("StreamingDeduplicateWithinWatermark", 20, "rows")]


def test_each_operator_of_a_query_is_asked(count):
    found = count(
        lambda rows: (
            rows.dropDuplicatesWithinWatermark(["id"]).groupBy(F.window("at", "1 hour")).count()
        )
    )
    assert sorted(name for name, *_ in dropped(found, LATE)) == [
        "StateStoreSave",
        "StreamingDeduplicateWithinWatermark",
    ]
    assert max(late.dropped for late in found[LATE]) == 20


def test_a_query_without_state_has_no_such_operator(count):
    assert count(lambda rows: rows.where("id <> 'z'")) == [[]] * len(BATCHES)
