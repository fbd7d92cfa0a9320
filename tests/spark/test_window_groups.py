"""Groups that are windows of time: the same SQL as over a stream, `GROUP BY window(at, '1 hour')`.
What a call of `window` means for one row is what Spark makes of it; a query fits where its windows
are the group's; and files that hold no row of a window are not read."""

import pytest
from pyspark.sql import functions as F
from sluice.errors import SpecError
from sluice.spark.pruning import Spans
from sluice.spark.windows import read_window, spell_out

from tests.long_runs import leave
from tests.spark.test_groups_fit import SCHEMAS, Case

WEEK = "window(at, '7 days', '1 day')"
CALLS = (
    *("'1 hour'", "'1 day'", "'90 minutes', '90 minutes', '7 minutes'", "'1 week', '1 week'"),
    *(
        "'7 days', '1 day'",
        "'2 hours', '45 minutes'",
        "'1 hour 30 minutes', '1 hour', '10 minutes'",
    ),
    *("'interval 3 seconds'", "'1 day', '1 day', '-5 hours'", "'2 days', '1 day', '6 hours'"),
)
TIMES = """SELECT id, if(id % 9 = 0, NULL, timestamp_micros(pmod(xxhash64(id), 4000000000000000)
  - 1000000000000000)) AS at, date_add(date'2026-03-01', cast(id AS INT)) AS day FROM range(300)
  UNION ALL SELECT -1, timestamp'2026-03-08 02:00:00Z', date'1969-12-31'"""


@pytest.fixture(scope="module")
def times(spark):
    """Moments from 1938 to 2065, some of them NULL."""
    return spark.sql(TIMES)


@pytest.fixture(params=["UTC", "America/New_York"])
def zone(spark, request):
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.usefixtures("zone")
@pytest.mark.parametrize("call", CALLS)
def test_the_windows_of_a_row_are_those_that_spark_makes_of_it(times, call):
    for column, part in (("at", ""), ("`day`", ".start"), ("at", ".end")):
        said = f"window({column}, {call}){part}"
        ours = times.where(f"{column} IS NOT NULL").select("id", F.expr(spell_out(said)).alias("w"))
        if dict(ours.dtypes)["w"].startswith("array"):
            ours = ours.select("id", F.explode("w").alias("w"))
        wanted = times.select("id", F.expr(said).alias("w"))
        assert (
            ours.schema["w"].dataType.simpleString() == wanted.schema["w"].dataType.simpleString()
        )
        assert ours.exceptAll(wanted).count() == wanted.exceptAll(ours).count() == 0
        assert wanted.count() >= 260


def test_a_row_without_a_time_lies_in_no_window(times):
    for said in (WEEK, f"{WEEK}.start", "window(at, '1 day').end"):
        none = times.where("at IS NULL").where(F.expr(spell_out(said)).isNotNull())
        assert none.count() == 0


FITS = {
    "whole": (f"SELECT window, user, sum(amount) AS s FROM orders GROUP BY {WEEK}, user", WEEK),
    "start": (
        f"SELECT window.start AS window, sum(amount) AS s FROM orders GROUP BY {WEEK}",
        f"{WEEK}.start",
    ),
    "end": (
        f"SELECT window.end AS window, count(*) AS n FROM orders GROUP BY {WEEK}",
        f"{WEEK}.end",
    ),
    "day of the start": (
        f"SELECT date(window.start) AS window, sum(amount) AS s FROM orders GROUP BY {WEEK}",
        f"date({WEEK}.start)",
    ),
    "uneven": (
        "SELECT window.start AS window, sum(amount) AS s FROM orders "
        "GROUP BY window(at, '5 hours', '2 hours', '1 hour')",
        "window(at, '5 hours', '2 hours', '1 hour').start",
    ),
    "tumbling": (
        "SELECT window, max(id) AS id FROM orders GROUP BY window(at, '1 day')",
        "window(at, '1 day')",
    ),
    "tumbling start": (
        "SELECT window.start AS window, sum(amount) AS s FROM orders "
        "GROUP BY window(at, '2 hours')",
        "window(at, '2 hours').start",
    ),
    "tumbling day": (
        "SELECT date(window.start) AS window, user, count(*) AS n FROM orders "
        "GROUP BY window(at, '1 day'), user",
        "date(window(at, '1 day').start)",
    ),
    "of two tables": (
        "SELECT window, count(*) AS n FROM (SELECT id, at FROM orders UNION ALL SELECT id, at "
        f"FROM refunds) GROUP BY {WEEK}",
        WEEK,
    ),
    "joined": (
        "SELECT o.w AS window, o.n, r.back FROM (SELECT window AS w, count(*) AS n FROM orders "
        "GROUP BY window(at, '1 day')) o LEFT JOIN (SELECT window AS w, sum(amount) AS back FROM "
        "refunds GROUP BY window(at, '1 day')) r ON o.w <=> r.w",
        "window(at, '1 day')",
    ),
    "top of each": (
        "SELECT window, id FROM (SELECT *, row_number() OVER (PARTITION BY window ORDER BY amount "
        f"DESC, id) AS n FROM (SELECT {WEEK} AS window, id, amount FROM orders)) WHERE n = 1",
        WEEK,
    ),
}


def check(spark, frames, query: str, said: str) -> dict:
    read = [name for name in ("orders", "refunds") if name in query]
    return Case(query, {"window": dict.fromkeys(read, said)}).check(spark, frames, *read)


@pytest.fixture(scope="module")
def orders(spark):
    """Orders and refunds of some days, a few of them without a time."""
    rows = spark.sql(
        "SELECT cast(id AS INT) AS id, concat('u', id % 3) AS user, if(id % 8 = 0, NULL, "
        "timestamp'2026-01-01 00:00:00Z' + make_dt_interval(0, 5 * cast(id AS INT))) AS at, "
        "cast(id % 7 AS INT) AS amount FROM range(60)"
    )
    shown = {"orders": rows, "refunds": rows.where("id % 3 = 1")}
    empty = {name: spark.createDataFrame([], schema) for name, schema in SCHEMAS.items()}
    return {name: shown.get(name, frame).cache() for name, frame in empty.items()}


@pytest.mark.parametrize("name", leave(FITS, "end", "tumbling", "tumbling day", "uneven"))
def test_a_query_whose_windows_are_the_groups_gives_them_from_their_rows_alone(spark, orders, name):
    query, said = FITS[name]
    lists = check(spark, orders, query, said)
    case = Case(query, {})
    whole = case.run(spark, orders)
    groups = whole.select("window").distinct().orderBy("window")
    assert groups.count() >= 5
    for touched in (groups.limit(1), groups.offset(2).limit(2)):
        some = dict(orders)
        for table, listed in lists.items():
            mine = orders[table].withColumn("_mine", F.expr(spell_out(said)))
            held = F.array_contains("_mine", F.col("t.window"))
            belongs = held if listed else F.col("_mine").eqNullSafe(F.col("t.window"))
            some[table] = mine.join(touched.alias("t"), belongs, "left_semi").drop("_mine")
        made = case.run(spark, some).join(touched, "window", "left_semi")
        wanted = whole.join(touched, "window", "left_semi")
        assert wanted.count() > 0
        assert made.exceptAll(wanted).count() == wanted.exceptAll(made).count() == 0


OTHER = "puts rows of several groups together"
REFUSED = {
    "of another slide": (FITS["start"][0], "window(at, '7 days', '2 days').start", OTHER),
    "of another length": (FITS["start"][0], "window(at, '6 days', '1 day').start", OTHER),
    "counted from elsewhere": (
        FITS["tumbling start"][0],
        "window(at, '2 hours', '2 hours', '1 hour').start",
        OTHER,
    ),
    "by its start where the query has its end alone": (
        f"SELECT max(window.start) AS window FROM orders GROUP BY user, {WEEK}.end",
        f"{WEEK}.start",
        OTHER,
    ),
    "its end under the name of its start": (
        f"SELECT window.end AS window, count(*) AS n FROM orders GROUP BY {WEEK}",
        f"{WEEK}.start",
        "does not hold the group",
    ),
    "of months": (FITS["start"][0], "window(at, '1 month').start", "cannot be computed"),
    "that leave gaps": (FITS["start"][0], "window(at, '1 day', '2 days').start", "cannot be"),
    "of what is no column": (
        FITS["start"][0],
        "window(date_trunc('hour', at), '7 days', '1 day').start",
        "is not made of the columns of one row",
    ),
    "of no time": (FITS["start"][0], "window(amount, '1 day').start", "cannot be computed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_windows_that_are_not_the_groups_are_refused(spark, orders, name):
    query, said, why = REFUSED[name]
    with pytest.raises(SpecError, match=why):
        check(spark, orders, query, said)


def test_a_window_of_times_without_a_zone_is_refused_with_what_to_write(spark, orders):
    plain = orders["orders"].withColumn("at", F.col("at").cast("timestamp_ntz"))
    with pytest.raises(SpecError, match=r"without a zone.*date_trunc"):
        check(spark, {**orders, "orders": plain}, *FITS["tumbling start"])


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("window(at, '1 hour').start", ("at", "3600000000 MICROSECOND")),
        ("WINDOW(`at`, '7 days', '1 day').START", ("at", "604800000000 MICROSECOND")),
        ("window(at, '1 hour').end", None),
        ("window(at, '1 hour')", None),
        ("date(window(at, '1 day').start)", None),
        ("date(at)", None),
    ],
)
def test_the_length_of_a_window_is_read_from_its_sql(said, found):
    assert read_window(said) == found


@pytest.mark.parametrize("call", ["'6 hours'", "'2 days', '1 day'", "'1 day', '1 day', '5 hours'"])
def test_no_row_of_a_window_is_left_out_and_others_are(orders, call):
    rows, said = orders["orders"].where("at IS NOT NULL"), f"window(at, {call}).start"
    groups = rows.where("id = 30").select(F.expr(said).alias("group"))
    condition = Spans.of(groups).of_columns({"group": said}, rows.schema)
    held = rows.select("id", F.expr(said).alias("group")).join(groups, "group", "left_semi")
    kept = {row["id"] for row in rows.where(condition).select("id").collect()}
    assert {row["id"] for row in held.select("id").collect()} <= kept
    assert len(kept) < rows.count() / 2
