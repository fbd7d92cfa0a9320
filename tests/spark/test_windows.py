"""What is held and what is late of each kind of window, and what may be edited between runs."""

import json
from collections import Counter

import pytest
from sluice.errors import ExitCode
from sluice.report.step_notes import step_notes
from sluice.spark.fingerprint import describe_state
from sluice.spark.watermarks import declare_watermark

from tests.spark.factories import Project
from tests.spark.several import TEN_MINUTES, Ads, moment, without_size

ROW = {"id": "string", "n": "bigint", "gap": "string", "at": "timestamp"}
COUNT = "SELECT window.start AS at, id, count(*) AS n FROM a GROUP BY window(at, '1 hour'), id"
SESSION = """SELECT session_window.start AS at, session_window.end AS until, id, count(*) AS n
  FROM a GROUP BY session_window(at, gap), id"""
CHAINED = """SELECT window(window_time(part), '1 hour').start AS at, max(n) AS n FROM
  (SELECT window AS part, id, count(*) AS n FROM a GROUP BY window(at, '10 minutes'), id)
  GROUP BY window(window_time(part), '1 hour')"""


def row(id_: object, minutes: float, gap: str | None = "5 minutes") -> dict:
    return {"id": id_, "n": 1, "gap": gap, "at": moment(minutes)}


def single(folder, sql: str) -> Ads:
    return Ads(folder, sql, schemas={"a": ROW})


def told(report) -> list[str]:
    assert report.error is None
    (step,) = report.steps
    return [*map(str, step.counts.lines), *map(without_size, step_notes(step))]


def test_sessions_are_held_with_their_ends_and_what_comes_late_is_told(spark, tmp_path):
    ads = single(tmp_path, SESSION)
    early = [row("a", 0), row("a", 3), row("b", 0, "1 minute"), row("x", 1, None)]
    ads.land("a", *early, row("c", 100), row("d", 101, "1 hour"))
    lines = told(ads.run())
    assert lines[1] == "2 made + 0 malformed = 2 written + 0 quarantined + 0 duplicate + 0 late"
    assert (
        "2 groups are held in state, in windows that end between 2026-01-01 13:45:00 UTC and "
        "2026-01-01 14:41:00 UTC: each is written by the first batch after the watermark (now "
        "2026-01-01 13:31:00 UTC) is past it." in lines
    )
    # The first two are one session and too late; the third is over at 13:32, which is not yet.
    ads.land("a", row("a", 0), row("a", 2), row("b", 87), row("e", 110))
    lines = told(ads.run())
    assert lines[1].endswith("= 1 written + 0 quarantined + 0 duplicate + 2 late (groups)")
    found = ads.rows(spark, "id", "n", "minute(at)", "minute(until)")
    assert found == Counter({("a", 2, 0, 8): 1, ("b", 1, 0, 1): 1, ("b", 1, 27, 32): 1})


def test_each_aggregation_of_a_chain_tells_what_it_holds_and_what_came_late(spark, tmp_path):
    ads = single(tmp_path, CHAINED)
    ads.land("a", row("a", 0), row("a", 3), row("b", 3), row("e", 65), row("c", 100), row("d", 105))
    lines = told(ads.run())
    assert [line.partition(": each")[0] for line in lines if "held in state" in line] == [
        "1 group is held in state, in windows that end at 2026-01-01 14:00:00 UTC",
        "2 groups are held in state, in windows that end at 2026-01-01 13:50:00 UTC",
    ]
    assert ads.rows(spark, "n") == Counter([(2,)])
    ads.land("a", row("a", 1), row("a", 2), row("b", 1), row("d", 106))
    lines = told(ads.run())
    assert lines[1].endswith("= 0 written + 0 quarantined + 0 duplicate + 2 late (groups)")


def test_keys_that_are_null_or_nan_are_groups_as_in_a_query_over_a_table(spark, tmp_path):
    sql = """SELECT window.start AS at, id, x, count(*) AS n FROM
      (SELECT *, CASE n WHEN 1 THEN double('NaN') WHEN 2 THEN -0.0D ELSE 0.0D END AS x FROM a)
      GROUP BY window(at, '1 hour'), id, x"""
    ads = single(tmp_path, sql)
    rows = [{"id": id_, "n": n, "at": moment(n)} for id_ in (None, "a") for n in (1, 1, 2, 3)]
    ads.land("a", *rows[:5])
    told(ads.run())
    ads.land("a", *rows[5:], row("last", 1000))
    told(ads.run())
    found = ads.rows(spark, "id", "CAST(x AS string)", "n")
    assert found == Counter([(None, "NaN", 2), (None, "0.0", 2), ("a", "NaN", 2), ("a", "0.0", 2)])


BY_SQL = """SELECT window.start AS hour, count(*) AS n
  FROM source WATERMARK at DELAY OF INTERVAL 10 MINUTES GROUP BY window(at, '1 hour')"""
BY_PYTHON = """
from pyspark.sql import functions as F
def gather(rows):
    timed = rows.withWatermark("at", "10 minutes")
    sessions = timed.groupBy(F.session_window("at", F.col("gap")), "id").count()
    parts = sessions.groupBy(F.window(F.window_time("session_window"), "1 hour"))
    return parts.agg(F.sum("count").alias("n")).select(F.col("window.start").alias("hour"), "n")
"""


@pytest.mark.parametrize(
    ("file", "text"), [("t.sql", BY_SQL), ("t.py:gather", BY_PYTHON)], ids=["sql", "python"]
)
def test_a_transform_of_one_source_may_declare_the_watermark_itself(spark, tmp_path, file, text):
    (tmp_path / file.partition(":")[0]).write_text(text)
    source = {"kind": "files", "format": "json", "schema": ROW}
    project = Project(spark, tmp_path, source, {"transform": file, "sink": {"mode": "append"}})
    for name, rows in {
        "1": [row("a", 0), row("a", 7), row("b", 7)],
        "2": [row("b", 9), row("c", 200)],
        "3": [row("late", 0), row("c", 201)],
    }.items():
        project.land(f"{name}.json", "".join(f"{json.dumps(one)}\n" for one in rows))
        report = project.run()
        assert (report.error, report.exit_code) == (None, ExitCode.DONE)
    assert project.rows("n") == Counter([(4,)])
    assert report.counts.late_groups == 1 and report.steps[0].held


EDITS = {
    "gap": (SESSION, "at, gap", "at, '5 minutes'"),
    "window": (COUNT, "1 hour", "30 minutes"),
    "slide": (COUNT, "'1 hour'", "'1 hour', '30 minutes'"),
    "start": (COUNT, "'1 hour'", "'1 hour', '1 hour', '5 minutes'"),
    "aggregate": (COUNT, "count(*)", "sum(n)"),
    "filter_of_an_aggregate": (COUNT, "count(*)", "count(*) FILTER (WHERE n > 3)"),
    "key": (COUNT, "'1 hour'), id", "'1 hour'), id, gap"),
    "inner_window_of_a_chain": (CHAINED, "10 minutes", "20 minutes"),
    "outer_window_of_a_chain": (CHAINED, "1 hour", "2 hours"),
    "inner_aggregate_of_a_chain": (CHAINED, "count(*)", "sum(n)"),
    "distinct": ("SELECT DISTINCT id, at FROM a", "id, at", "id, gap, at"),
}
HARMLESS = {
    "a_name": (COUNT, "AS n", "AS number"),
    "what_is_made_of_an_aggregate": (COUNT, "count(*) AS n", "count(*) + 1 AS n, count(*) AS m"),
    "what_is_left_out_of_it": (COUNT, "id, count(*) AS n FROM", "count(*) AS n FROM"),
    "what_the_input_is_called": (COUNT, "FROM a", "FROM a AS orders"),
    "an_end_beside_the_start": (COUNT, "window.start AS at", "window.start AS at, window.end AS e"),
}


@pytest.fixture(scope="module")
def stream(spark, tmp_path_factory):
    columns = ", ".join(f"{name} {kind}" for name, kind in ROW.items())
    rows = spark.readStream.schema(columns).json(str(tmp_path_factory.mktemp("a")))
    declare_watermark(rows, "at", TEN_MINUTES, "a").createOrReplaceTempView("a")
    yield
    spark.catalog.dropTempView("a")


def edited(spark, sql: str, before: str, after: str) -> tuple[list[str], list[str]]:
    """What a query keeps in state, and what it does after an edit."""
    assert before in sql
    both = (sql, sql.replace(before, after))
    told, now = (describe_state(spark.sql(text), "append") for text in both)
    return told, now


@pytest.mark.parametrize("case", EDITS)
def test_an_edit_that_changes_what_state_means_is_seen(spark, stream, case):
    before, now = edited(spark, *EDITS[case])
    assert before and before != now


@pytest.mark.parametrize("case", HARMLESS)
def test_an_edit_of_what_is_selected_is_none_of_the_state(spark, stream, case):
    before, now = edited(spark, *HARMLESS[case])
    assert before and before == now
