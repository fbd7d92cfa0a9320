"""The support matrix of windows and joins in append mode, cell by cell: what Spark's guide allows
is let through, what it does not, and what Spark takes and gets wrong, is refused before a row is
read.

Plans alone, no query runs: test_windows_any_cut.py runs what is allowed.
"""

import pytest
from sluice.errors import SpecError
from sluice.spark.output_mode import check_output_mode
from sluice.spark.placement import check_placement
from sluice.spark.watermarks import declare_watermark

from tests.spark.several import TEN_MINUTES

COLUMNS = "ad string, id string, n bigint, at timestamp"
STREAMS = {"i": True, "c": True, "d": True, "plain": False}
"""Name -> whether it has a watermark."""


@pytest.fixture(scope="module")
def views(spark, tmp_path_factory):
    """Streams and a table by their names in SQL."""
    names = [*STREAMS, "names"]
    for name, timed in STREAMS.items():
        rows = spark.readStream.schema(COLUMNS).json(str(tmp_path_factory.mktemp(name)))
        if timed:
            rows = declare_watermark(rows, "at", TEN_MINUTES, name)
        rows.createOrReplaceTempView(name)
    spark.createDataFrame([], "id string, name string").createOrReplaceTempView("names")
    yield
    for name in names:
        spark.catalog.dropTempView(name)


def check(spark, sql: str, several: bool = True) -> list[str]:
    """What a step with this query would say before it starts; the warnings."""
    frame = spark.sql(sql)
    told = check_placement(frame, "p.s", several)
    check_output_mode(frame, "append", "p.s")
    return told


def refusal(spark, sql: str) -> str:
    with pytest.raises(SpecError) as refused:
        check(spark, sql)
    return str(refused.value)


def windows(sql: str, by: str = "window(at, '1 hour')") -> str:
    return f"SELECT {sql} FROM i GROUP BY {by}"


HOURS = "(SELECT id, n, window(at, '1 hour') AS hour FROM {0}) {0}"
RANGE = "c.at BETWEEN i.at AND i.at + INTERVAL 1 HOUR"
JOINS = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}
JOINS |= {"semi": "LEFT SEMI JOIN", "anti": "LEFT ANTI JOIN"}
BOUNDS = {
    "range": "SELECT i.id FROM i {0} c ON i.id = c.id AND " + RANGE,
    "equal_times": "SELECT i.id FROM i {0} c ON i.id = c.id AND i.at = c.at",
    "equal_windows": f"SELECT i.id FROM {HOURS.format('i')} {{0}} {HOURS.format('c')} "
    "ON i.id = c.id AND i.hour = c.hour",
    "no_time": "SELECT i.id FROM i {0} c ON i.id = c.id",
    "range_without_end": "SELECT i.id FROM i {0} c ON i.id = c.id AND c.at > i.at",
    "times_cut_to_hours": "SELECT i.id FROM i {0} c ON i.id = c.id "
    "AND date_trunc('hour', i.at) = date_trunc('hour', c.at)",
    "watermark_on_one_side": "SELECT i.id FROM i {0} plain c ON i.id = c.id AND " + RANGE,
    "equal_times_one_watermark": "SELECT i.id FROM i {0} plain c ON i.id = c.id AND i.at = c.at",
    "equal_times_shifted": "SELECT i.id FROM i {0} c ON i.id = c.id "
    "AND i.at = c.at - INTERVAL 1 HOUR",
    "no_equal_column": "SELECT i.id FROM i {0} c ON " + RANGE,
}
BOTH, LEFT, NO = "keeps every row of both", "keeps every row of its left side", "must know of both"
LOST, NONE = "rows that match would be lost", "left anti join of two streams is none"
ALONE = "without a column that has to be equal"
STREAM_STREAM = {  # inner, left, right, full, semi, anti; empty: allowed without a word
    "range": ("", "", "", "", "", NONE),
    "equal_times": ("", "", "", "", "", NONE),
    "equal_windows": ("", "", "", "", "", NONE),
    "no_time": (BOTH, NO, NO, NO, NO, NONE),
    "range_without_end": (LEFT, NO, LEFT, NO, NO, NONE),
    "times_cut_to_hours": (BOTH, NO, NO, NO, NO, NONE),
    "watermark_on_one_side": (BOTH, NO, NO, NO, NO, NONE),
    "equal_times_one_watermark": (LOST, LOST, LOST, LOST, LOST, NONE),
    "equal_times_shifted": (LOST, LOST, LOST, LOST, LOST, NONE),
    "no_equal_column": (ALONE, ALONE, ALONE, ALONE, ALONE, NONE),
}
"""Condition -> what is said of each kind of join of two streams."""


@pytest.mark.parametrize("kind", JOINS)
@pytest.mark.parametrize("condition", BOUNDS)
def test_a_join_of_two_streams(spark, views, condition, kind):
    sql = BOUNDS[condition].format(JOINS[kind])
    said = STREAM_STREAM[condition][list(JOINS).index(kind)]
    if said in (BOTH, LEFT):
        assert [said in warning for warning in check(spark, sql)] == [True]
    elif said:
        assert said in refusal(spark, sql)
    else:
        assert check(spark, sql) == []


STREAM_LEFT = {"inner", "left", "semi", "anti"}
STREAM_RIGHT = {"inner", "right"}


@pytest.mark.parametrize("kind", JOINS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_join_of_a_stream_with_a_table(spark, views, side, kind):
    first, second = ("i", "names n") if side == "left" else ("names n", "i")
    column = "i.id" if side == "left" or kind not in ("semi", "anti") else "n.id"
    sql = f"SELECT {column} FROM {first} {JOINS[kind]} {second} ON i.id = n.id"
    if kind in (STREAM_LEFT if side == "left" else STREAM_RIGHT):
        assert check(spark, sql) == []
    else:
        said = refusal(spark, sql)
        assert f"join with the stream on its {side}" in said and "FROM stream LEFT JOIN" in said


COUNTS = "(SELECT window AS hour, id, count(*) AS n FROM {0} GROUP BY window(at, '1 hour'), id) {0}"
MET = f"(SELECT i.id, i.at FROM i LEFT JOIN c ON i.id = c.id AND {RANGE})"
ALLOWED = {
    "tumbling": windows("count(*) AS n"),
    "sliding": windows("count(*) AS n", "window(at, '1 hour', '20 minutes'), id"),
    "session": windows("id, count(*) AS n", "session_window(at, '5 minutes'), id"),
    "session_dynamic": windows(
        "id", "session_window(at, CASE WHEN n > 3 THEN '1 minute' ELSE '5 minutes' END), id"
    ),
    "session_of_everyone": "SELECT count(*) AS n FROM (SELECT *, 'all' AS everyone FROM i) "
    "GROUP BY session_window(at, '5 minutes'), everyone",
    "chained": "SELECT max(n) AS n FROM (SELECT window AS part, count(*) AS n FROM i "
    "GROUP BY window(at, '10 minutes'), id) GROUP BY window(window_time(part), '1 hour')",
    "distinct": "SELECT DISTINCT id, at FROM i",
    "having": windows("count(*) AS n") + " HAVING count(*) > 1",
    "join_then_window": f"SELECT count(*) AS n FROM {MET} GROUP BY window(at, '1 hour')",
    "window_then_join": f"SELECT i.id FROM {COUNTS.format('i')} LEFT JOIN {COUNTS.format('c')} "
    "ON i.id = c.id AND i.hour = c.hour",
    "three_streams": f"SELECT j.id FROM {MET} j LEFT JOIN d ON j.id = d.id "
    "AND d.at BETWEEN j.at AND j.at + INTERVAL 1 HOUR",
    "a_comma_and_a_where": f"SELECT i.id FROM i, c WHERE i.id = c.id AND {RANGE}",
    "rows_without_a_match": f"SELECT i.id FROM i LEFT JOIN c ON i.id = c.id AND {RANGE} "
    "WHERE c.id IS NULL",
    "distinct_then_window": "SELECT count(*) AS n FROM (SELECT DISTINCT id, at FROM i) "
    "GROUP BY window(at, '1 hour')",
    "union_then_window": "SELECT count(*) AS n FROM (SELECT at FROM i UNION ALL SELECT at FROM c) "
    "GROUP BY window(at, '1 hour')",
    "a_table_asked_of": "SELECT id, (SELECT max(name) FROM names) AS top FROM i "
    "WHERE id IN (SELECT id FROM names) AND NOT EXISTS (SELECT 1 FROM names n WHERE n.name = ad)",
}


@pytest.mark.parametrize("case", ALLOWED)
def test_a_query_that_is_allowed(spark, views, case):
    assert check(spark, ALLOWED[case]) == []


REFUSED = {
    "count_distinct": (windows("count(DISTINCT id) AS n"), "size(collect_set(id))"),
    "rollup": (windows("id", "ROLLUP (window(at, '1 hour'), id)"), "would never come"),
    "cube": (windows("id", "CUBE (window(at, '1 hour'), id)"), "Gather by the finest"),
    "grouping_sets": (
        windows("id", "GROUPING SETS ((window(at, '1 hour'), id), (id))"),
        "Gather by the finest",
    ),
    "row_number": (
        "SELECT row_number() OVER (PARTITION BY id ORDER BY at) AS r FROM i",
        "`dedup` with `order_by`",
    ),
    "running_sum": (
        "SELECT sum(n) OVER (PARTITION BY id ORDER BY at) AS r FROM i",
        "rows that have not come yet",
    ),
    "sample": ("SELECT id FROM i TABLESAMPLE (10 PERCENT)", "pmod(xxhash64(id), 100)"),
    "offset": ("SELECT id FROM i OFFSET 3", "a stream has no first one"),
    "limit": ("SELECT id FROM i LIMIT 3", "LIMIT over a stream"),
    "intersect": ("SELECT id FROM i INTERSECT SELECT id FROM names", "`LEFT SEMI JOIN`"),
    "except": ("SELECT id FROM i EXCEPT SELECT id FROM names", "`LEFT ANTI JOIN`"),
    "except_a_stream": ("SELECT id FROM names EXCEPT SELECT id FROM i", "EXCEPT with a stream"),
    "order_by": ("SELECT id FROM i ORDER BY id", "Sorting is not supported"),
    "a_union_with_a_table": (
        "SELECT id FROM i UNION ALL SELECT id FROM names",
        "Union between streaming and batch",
    ),
    "session_of_all_rows": (
        windows("count(*) AS n", "session_window(at, '5 minutes')"),
        "'all' AS everyone",
    ),
    "session_by_a_literal": (
        windows("count(*) AS n", "session_window(at, '5 minutes'), 'all'"),
        "'all' AS everyone",
    ),
    "an_aggregate_without_time": (windows("id, count(*) AS n", "id"), "output mode append"),
    "distinct_without_time": ("SELECT DISTINCT id FROM i", "output mode append"),
    "an_aggregate_of_windows_without_time": (
        f"SELECT id, sum(n) AS n FROM {COUNTS.format('i')} GROUP BY id",
        "output mode append",
    ),
    "a_window_and_its_time": (
        windows("at, count(*) AS n", "window(at, '1 hour'), at"),
        "two columns of event time (window, at)",
    ),
    "distinct_window_and_time": (
        "SELECT DISTINCT at, window(at, '1 hour') AS hour FROM i",
        "two columns of event time",
    ),
    "two_times_on_a_side_of_a_join": (
        "SELECT i.id, i.at, i.n FROM (SELECT *, window(at, '1 hour') AS hour FROM i) i JOIN "
        f"{HOURS.format('c')} ON i.id = c.id AND i.hour = c.hour",
        "two columns of event time (at, hour)",
    ),
    "a_watermark_in_sql_beside_those_of_inputs": (
        "SELECT i.id FROM i JOIN plain WATERMARK at DELAY OF INTERVAL 1 HOUR c "
        "ON i.id = c.id AND " + RANGE,
        "`watermark: 10 minutes` and `event_time` at the input",
    ),
    "a_watermark_in_sql_above_the_input's": (
        "SELECT count(*) AS n FROM i WATERMARK at DELAY OF INTERVAL 1 HOUR "
        "GROUP BY window(at, '1 hour')",
        "declared above another one",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_query_that_is_refused_with_what_to_write(spark, views, case):
    sql, said = REFUSED[case]
    assert said in refusal(spark, sql)


def test_one_stream_may_declare_its_watermark_in_sql(spark, views):
    sql = windows("count(*) AS n").replace(
        "FROM i", "FROM plain WATERMARK at DELAY OF INTERVAL 10 MINUTES"
    )
    assert check(spark, sql, several=False) == []
