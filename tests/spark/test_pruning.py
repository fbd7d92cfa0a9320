"""What groups hold, said so that file statistics can be asked: no row of a group is ever left out,
and little else is let through."""

import pytest
from pyspark.sql import functions as F
from sluice.spark.pruning import FEW, Spans
from sluice.spark.tables import frame_of

ROWS = """SELECT id, cast(id AS INT) AS number, cast(id AS SMALLINT) AS small,
  if(id % 7 = 0, NULL,
    timestamp'2026-02-20 00:00:00Z' + make_dt_interval(0, 2 * cast(id AS INT))) AS at,
  if(id % 7 = 0, NULL, date'2025-12-20' + cast(id AS INT)) AS day,
  timestamp_ntz'2026-03-20 00:00:00' + make_dt_interval(0, 2 * cast(id AS INT)) AS plain,
  cast(date'2026-03-20' AS STRING) AS iso,
  if(id % 5 = 0, NULL, concat("it's \\\\", id)) AS text, cast(id AS DECIMAL(9, 2)) / 4 AS price,
  cast(id AS DOUBLE) AS ratio, struct(id AS of) AS nested FROM range(400)"""
PRUNED = (
    *("number", "small", "`text`", "day", "plain", "price", "at"),
    *("date(at)", "to_date(at)", "DATE( at )", "cast(at AS date)", "date(plain)", "date(day)"),
    *(f"date_trunc('{unit}', at)" for unit in ("hour", "day", "WEEK", "month", "quarter", "year")),
    *("date_trunc('month', day)", "date(date_trunc('week', at))", "trunc(date(at), 'week')"),
    *("trunc(day, 'quarter')", "trunc(at, 'month')"),
)
UNPRUNED = (
    "ratio",
    "nested",
    "number % 10",
    "upper(text)",
    "date(at + INTERVAL 1 DAY)",
    "date(iso)",
)


@pytest.fixture(scope="module")
def rows(spark):
    return spark.sql(ROWS)


def choose(rows, said: str, where: str) -> tuple:
    """The groups of some rows, and the SQL that holds for every row of them."""
    groups = rows.where(where).select(F.expr(said).alias("group")).distinct()
    return groups, Spans.of(groups).of_columns({"group": said}, rows.schema)


def count_rows(rows, groups, said: str, condition: str) -> tuple[int, int]:
    """Rows of the groups that a condition leaves out, and rows that it lets through."""
    mine = rows.withColumn("_group", F.expr(said))
    known = groups.withColumn("known", F.lit(True))
    mine = mine.join(known, F.col("_group").eqNullSafe(F.col("group")), "left")
    lost = F.count_if(F.expr(f"known AND NOT coalesce({condition}, false)"))
    return tuple(mine.agg(lost, F.count_if(F.expr(condition))).collect()[0])


@pytest.fixture
def far_west(spark):
    """A session in a zone whose clock was put forward among the rows."""
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.usefixtures("far_west")
@pytest.mark.parametrize("said", PRUNED)
def test_no_row_of_a_group_is_left_out_and_others_are(rows, said):
    for where in ("id IN (3, 9, 14, 35, 250)", f"id < {FEW + 60}"):
        groups, condition = choose(rows, said, where)
        lost, _ = count_rows(rows, groups, said, condition)
        assert lost == 0, condition
    groups, condition = choose(rows, said, "id = 3")
    _, kept = count_rows(rows, groups, said, condition)
    assert condition != "TRUE"
    assert kept < rows.count() or "year" in said


@pytest.mark.parametrize("said", UNPRUNED)
def test_of_another_shape_or_type_nothing_is_left_out(rows, said):
    assert choose(rows, said, "id < 5")[1] == "TRUE"


def test_of_no_groups_everything_is_left_out(rows):
    _, condition = choose(rows, "number", "id < 0")
    assert rows.where(condition).count() == 0


def test_files_that_hold_no_row_of_a_group_are_not_read(spark, rows, tmp_path):
    path = str(tmp_path / "table")
    rows.repartitionByRange(8, "id").write.format("delta").save(path)
    table = frame_of(spark, path)
    for said in ("date_trunc('hour', at)", "number", "date(day)"):
        _, condition = choose(rows, said, "id = 200")
        assert len(table.where(condition).inputFiles()) < 8, said


@pytest.mark.usefixtures("far_west")
@pytest.mark.parametrize("column", ["at", "day", "plain"])
@pytest.mark.parametrize(("first", "last"), [(0, 6), (-3, 2), (2, 4)])
def test_no_row_of_a_day_in_a_list_is_left_out_and_others_are(rows, column, first, last):
    said = f"sequence(date_add(date({column}), {first}), date_add(date({column}), {last}))"
    said = said.replace(f"add(date({column}), -3", f"sub(date({column}), 3")
    listed = rows.withColumn("group", F.expr(said))
    for where in ("id IN (3, 9, 250)", f"id < {FEW + 60}"):
        groups = listed.where(where).select(F.explode("group").alias("group")).distinct()
        days = [row["group"] for row in groups.collect()]
        condition = Spans.of(groups).of_columns({"group": said}, rows.schema)
        mine = F.arrays_overlap("group", F.array(*map(F.lit, days)))
        lost = listed.where(mine).where(f"NOT coalesce({condition}, false)").count()
        assert lost == 0, condition
    groups = listed.where("id = 3").select(F.explode("group").alias("group"))
    condition = Spans.of(groups).of_columns({"group": said}, rows.schema)
    assert condition != "TRUE"
    assert 0 < rows.where(condition).count() < rows.count() / 2


AWKWARD = {
    "a setting's name": b"${spark.app.name}",
    "a name of the environment": b"${env:HOME}",
    "quotes": b'it\'s "so"',
    "backslashes": b"\\u0041\\",
    "lines": b"a\nb",
    "nothing": b"",
    "no ASCII": "\u00e9\U0001f600".encode(),
    "no text": b"\x80",
}


@pytest.mark.parametrize("value", AWKWARD.values(), ids=AWKWARD)
def test_text_is_found_whatever_it_holds(spark, value):
    rows = spark.range(1).select(F.lit(bytearray(value)).cast("string").alias("text"))
    for spans in (Spans.of(rows), Spans.ends(rows, ["text"])):
        condition = spans.of_columns({"text": "text"}, rows.schema)
        assert rows.where(condition).count() == 1, condition
