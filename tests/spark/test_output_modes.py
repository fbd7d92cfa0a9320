"""Output modes: the programming guide's table, each cell against Spark's own checker.

And what a step says before it starts.
"""

import json
from collections import Counter

import pytest
from pyspark.sql import functions as F
from sluice.errors import ExitCode, SpecError
from sluice.spark.output_mode import (
    QueryType,
    check_output_mode,
    find_query_types,
    is_stateful,
    spark_refusal,
    why_not,
)

from tests.kafka_broker import Record
from tests.spark.factories import Project

pytestmark = pytest.mark.usefixtures("two_partitions")

MODES = ("append", "update", "complete")


def timed(rows):
    return rows.withWatermark("timestamp", "1 minute")


def states(rows, mode):
    return rows.groupBy("k").applyInPandasWithState(
        lambda key, frames, state: frames, "k long", "n long", mode, "NoTimeout"
    )


def joined(rows, other, kind):
    condition = "a.k = b.k AND b.timestamp BETWEEN a.timestamp AND a.timestamp + INTERVAL 1 MINUTE"
    return timed(rows).alias("a").join(timed(other).alias("b"), F.expr(condition), kind)


QUERIES = {
    "aggregation_with_watermark": (
        QueryType.AGGREGATION_IN_TIME,
        lambda a, b: timed(a).groupBy(F.window("timestamp", "1 minute")).count(),
        "append update complete",
    ),
    "other_aggregation": (
        QueryType.OTHER_AGGREGATION,
        lambda a, b: a.groupBy("k").count(),
        "update complete",
    ),
    "watermark_on_no_group": (
        QueryType.OTHER_AGGREGATION,
        lambda a, b: timed(a).groupBy("k").count(),
        "update complete",
    ),
    "flat_map_groups_append": (
        QueryType.FLAT_MAP_APPEND,
        lambda a, b: states(a, "append"),
        "append",
    ),
    "flat_map_groups_update": (
        QueryType.FLAT_MAP_UPDATE,
        lambda a, b: states(a, "update"),
        "update",
    ),
    "inner_join": (QueryType.INNER_JOIN, lambda a, b: joined(a, b, "inner"), "append update"),
    "outer_join": (QueryType.OUTER_JOIN, lambda a, b: joined(a, b, "left"), "append"),
    "stateless": (QueryType.OTHER, lambda a, b: a.where("value > 1"), "append update"),
    "deduplication": (
        QueryType.OTHER,
        lambda a, b: timed(a).dropDuplicatesWithinWatermark(["k"]),
        "append update",
    ),
    "join_with_a_table": (
        QueryType.OTHER,
        lambda a, b: a.join(a.sparkSession.range(3).withColumnRenamed("id", "k"), "k"),
        "append update",
    ),
}
"""The rows of the guide's table, in queries.

mapGroupsWithState cannot be written in Python; for an inner join Spark takes a mode more than the
guide says.
"""


@pytest.fixture
def streams(spark):
    def make():
        return spark.readStream.format("rate").load().withColumn("k", F.col("value") % 3)

    return make(), make()


@pytest.mark.parametrize(("kind", "build", "allowed"), QUERIES.values(), ids=QUERIES)
def test_the_guides_table_is_what_spark_checks(streams, kind, build, allowed):
    query = build(*streams)
    assert find_query_types(query) == {kind}
    assert [mode for mode in MODES if spark_refusal(query, mode) is None] == allowed.split()
    assert [mode for mode in MODES if why_not(kind, mode) is None] == allowed.split()


def test_a_query_that_maps_groups_has_update_alone():
    assert [mode for mode in MODES if why_not(QueryType.MAP_GROUPS, mode) is None] == ["update"]


def test_a_query_that_keeps_something_is_known(streams):
    assert [
        name for name, (_, build, _) in QUERIES.items() if not is_stateful(build(*streams))
    ] == ["stateless", "join_with_a_table"]
    streams[0].createOrReplaceTempView("several")
    assert is_stateful(streams[0].sparkSession.sql("SELECT DISTINCT k FROM several"))


def test_a_refusal_names_mode_query_and_what_to_write(streams):
    with pytest.raises(
        SpecError,
        match="p.s: output mode append does not go with an aggregation without a watermark"
        ".*Declare a watermark.*`mode: update`",
    ):
        check_output_mode(streams[0].groupBy("k").count(), "append", "p.s")
    with pytest.raises(
        SpecError, match="output mode update does not go with an outer join of two streams"
    ):
        check_output_mode(joined(*streams, "left"), "update", "p.s")
    with pytest.raises(
        SpecError,
        match="Spark cannot run this query in output mode append: .*Sorting is not supported",
    ):
        check_output_mode(streams[0].orderBy("k"), "append", "p.s")


FILES = {
    "kind": "files",
    "format": "json",
    "schema": {"id": "string", "n": "bigint", "at": "timestamp"},
    "max_files_per_batch": 1,
}
SUM = "SELECT id, sum(n) AS n, first(_row) AS _row FROM source GROUP BY id"
WINDOWS = """
from pyspark.sql import functions as F
def sums(rows):
    timed = rows.withWatermark("at", "0 seconds").groupBy(F.window("at", "1 hour"))
    return timed.agg(F.sum("n").alias("n")).select(F.col("window.start").alias("at"), "n")
"""


def line(name: str, n: int, hour: int = 0) -> str:
    return json.dumps({"id": name, "n": n, "at": f"2026-01-01T{hour:02d}:30:00Z"}) + "\n"


def test_an_aggregation_without_a_watermark_is_refused_before_the_start(spark, tmp_path):
    (tmp_path / "t.sql").write_text(SUM)
    project = Project(spark, tmp_path, FILES, {"transform": "t.sql", "sink": {"mode": "append"}})
    project.land("1.json", line("a", 1))
    report = project.run()
    assert (
        report.exit_code,
        "p.s: transform t.sql: output mode append does not go with" in report.error,
    ) == (ExitCode.TERMINAL, True)
    assert not (tmp_path / "root" / "checkpoints" / "p" / "s" / "spark").exists()


def test_groups_of_a_window_come_once_when_the_watermark_has_passed(spark, tmp_path):
    (tmp_path / "t.py").write_text(WINDOWS)
    project = Project(
        spark, tmp_path, FILES, {"transform": "t.py:sums", "sink": {"mode": "append"}}
    )
    project.land("1.json", line("a", 1) + line("b", 2))
    project.land("2.json", line("a", 4, hour=3))
    project.land("3.json", line("a", 8, hour=6))
    project.run()
    assert project.rows("n") == Counter([(3,), (4,)])
    project.land("4.json", line("a", 16, hour=9))
    project.run()
    assert project.rows("n") == Counter([(3,), (4,), (8,)])
    assert (
        sum(r.counts.entered for r in project.reports),
        sum(r.counts.made for r in project.reports),
    ) == (5, 3)
    assert sum(r.counts.late_merged for r in project.reports) == 0


def test_a_kafka_sink_in_update_mode_gets_the_groups_that_changed(spark, kafka_broker, tmp_path):
    topic = kafka_broker.create_topic("updates")
    (tmp_path / "t.sql").write_text(SUM)
    project = Project(
        spark,
        tmp_path,
        FILES,
        {
            "transform": "t.sql",
            "sink": {
                "kind": "kafka",
                "servers": kafka_broker.servers,
                "topic": topic,
                "mode": "update",
                "key": "id",
            },
        },
    )
    project.land("1.json", line("a", 1) + line("b", 2))
    project.land("2.json", line("a", 4))
    first = project.run()
    assert first.error is None
    project.land("3.json", line("b", 8))
    project.run()
    sent: list[Record] = kafka_broker.read(topic)
    assert sorted((json.loads(r.value)["id"], json.loads(r.value)["n"]) for r in sent) == [
        ("a", 1),
        ("a", 5),
        ("b", 2),
        ("b", 10),
    ]
