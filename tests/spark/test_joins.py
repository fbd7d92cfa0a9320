"""Joins with tables and of streams: every kind gives what a query over tables gives, whatever the
keys are and however large one side is."""

from collections import Counter

import pytest
from sluice.report.step_notes import step_notes

from tests.long_runs import leave
from tests.spark.several import Ads, clicked, moment, shown

pytestmark = pytest.mark.usefixtures("two_partitions")

NEAR = "b.at BETWEEN a.at AND a.at + INTERVAL 30 MINUTES"


@pytest.fixture
def prices(spark, tmp_path):
    """A table with prices, and how to fill it anew."""
    place = str(tmp_path / "prices")

    def fill(schema: str, *rows: tuple) -> str:
        frame = spark.createDataFrame(rows, schema).write.format("delta").mode("overwrite")
        frame.option("overwriteSchema", "true").save(place)
        return place

    return fill


def beside_prices(folder, place: str, sql: str) -> Ads:
    """Impressions and a static table."""
    static = {"source": {"kind": "table", "path": place}, "static": True}
    schemas = {"impressions": {"ad": "string", "id": "string", "at": "timestamp"}}
    return Ads(folder, sql, asked={"prices": static}, schemas=schemas)


EACH = """SELECT '{0}' AS kind, i.id, {1} AS price FROM {2} {3} ON i.id = p.id"""
OF_A_TABLE = " UNION ALL ".join(
    [
        EACH.format("inner", "p.price", "impressions i JOIN", "prices p"),
        EACH.format("left", "p.price", "impressions i LEFT JOIN", "prices p"),
        EACH.format("right", "p.price", "prices p RIGHT JOIN", "impressions i"),
        EACH.format("semi", "NULL", "impressions i LEFT SEMI JOIN", "prices p"),
        EACH.format("anti", "NULL", "impressions i LEFT ANTI JOIN", "prices p"),
        "SELECT 'in', id, NULL FROM impressions WHERE id IN (SELECT id FROM prices)",
        "SELECT 'not exists', id, NULL FROM impressions i "
        "WHERE NOT EXISTS (SELECT 1 FROM prices p WHERE p.id = i.id)",
    ]
)


def test_every_join_with_a_table_gives_what_it_gives_over_tables(spark, tmp_path, prices):
    place = prices("id string, price int", ("1", 5), ("1", 6), ("3", 7), (None, 8))
    ads = beside_prices(tmp_path, place, OF_A_TABLE)
    ads.land("impressions", shown(1, 0), shown(2, 0), {"id": None, "at": moment(0)})
    report = ads.run()
    assert report.error is None
    spark.read.format("delta").load(place).createOrReplaceTempView("prices")
    columns = ("kind", "id", "price")
    assert ads.rows(spark, *columns) == ads.expected(spark, *columns)
    kinds = Counter(row[0] for row in ads.rows(spark, *columns).elements())
    assert kinds == Counter(
        {"inner": 2, "left": 4, "right": 4, "semi": 1, "anti": 2, "in": 1, "not exists": 2}
    )


CHANGED = {
    "a_column_is_gone": ("id string, cost int", ("1", 5), "price"),
    "a_key_of_another_type": ("id int, price int", (1, 5), ""),
    "a_column_of_another_type": ("id string, price string", ("1", "5 EUR"), "price"),
    "a_column_more": ("id string, price int, note string", ("1", 5, "new"), ""),
}
"""What a table has now; the column that the error names, or none where the run goes on."""


@pytest.mark.parametrize("case", leave(CHANGED, "a_key_of_another_type"))
def test_a_table_of_another_schema_than_before(spark, tmp_path, prices, case):
    place = prices("id string, price int", ("1", 5))
    sql = "SELECT i.id, p.price FROM impressions i LEFT JOIN prices p ON i.id = p.id"
    ads = beside_prices(tmp_path, place, sql)
    ads.land("impressions", shown(1, 0))
    assert ads.run().error is None
    schema, row, named = CHANGED[case]
    prices(schema, row)
    ads.land("impressions", shown(1, 1), shown(2, 1))
    report = ads.run()
    if named:
        assert named in (report.error or "") and report.counts.written == 0
        prices("id string, price int", ("1", 5))
        report = ads.run()
    assert report.error is None
    assert ads.rows(spark, "id", "price") == Counter({("1", 5): 2, ("2", None): 1})


MET = """SELECT '{0}' AS kind, a.at, {1} AS met, CAST(a.x AS string) AS x, {2} AS y
  FROM a {0} JOIN b ON {3}"""
KINDS = " UNION ALL ".join(
    MET.format(
        kind,
        *(("NULL", "NULL") if kind == "LEFT SEMI" else ("b.at", "CAST(b.x AS string)")),
        f"{on} AND {NEAR}",
    )
    for kind, on in (
        *((kind, "a.x = b.x") for kind in ("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI")),
        ("FULL", "a.x <=> b.x"),
    )
)


KEYS = {"nan_and_zero": ["NaN", -0.0, 0.0, 1.5], "null": [None, 1.5]}


@pytest.mark.parametrize("case", KEYS)
def test_keys_meet_as_in_a_query_over_tables(spark, tmp_path, case):
    keys = KEYS[case]
    sql = KINDS
    ads = Ads(tmp_path, sql, schemas=dict.fromkeys("ab", {"x": "double", "at": "timestamp"}))
    for minute in (0, 15):
        ads.land("a", *({"x": x, "at": moment(minute)} for x in keys))
        ads.land("b", *({"x": x, "at": moment(minute + 1)} for x in reversed(keys)))
    for name in "ab":
        ads.land(name, {"x": 9.0, "at": moment(10_000)})
    assert ads.run().error is None
    columns = ("kind", "at", "met", "x", "y")
    assert ads.rows(spark, *columns) == ads.expected(spark, *columns)


@pytest.mark.parametrize("large", leave(["impressions", "clicks"], "clicks"))
def test_one_row_meets_a_side_of_twenty_thousand(spark, tmp_path, large):
    ads, make = Ads(tmp_path), {"impressions": shown, "clicks": clicked}
    small = "clicks" if large == "impressions" else "impressions"
    at = {"impressions": 0.0, "clicks": 5.0}
    ads.land(large, *(make[large](n, at[large]) for n in range(20_000)))
    ads.land(small, make[small](7, at[small]))
    assert ads.run().error is None
    ads.land(small, make[small](19_999, at[small]))
    report = ads.run()
    assert report.error is None and report.counts.late == 0
    assert "20,002 rows are held in state" in " ".join(step_notes(report.steps[0]))
    for name in make:
        ads.land(name, make[name]("last", 10_000))
    assert ads.run().error is None
    found = Counter(row[0] is None for row in ads.rows(spark, "clicked", "id").elements())
    unmatched = 19_998 if large == "impressions" else 0
    assert found == Counter({False: 3, True: unmatched})


def test_operators_over_the_same_rows_each_close_what_the_watermark_has_passed(spark, tmp_path):
    join = """SELECT '{0}' AS kind, i.id, c.at AS clicked FROM impressions i {0} JOIN clicks c
      ON i.id = c.id AND c.at BETWEEN i.at AND i.at + INTERVAL 1 HOUR"""
    ads = Ads(tmp_path, f"{join.format('LEFT')} UNION ALL {join.format('FULL')}")
    ads.land("impressions", shown(1, 0), shown(2, 1))
    ads.land("clicks", clicked(1, 5))
    for name, make in (("impressions", shown), ("clicks", clicked)):
        ads.land(name, make("last", 10_000))
    assert ads.run().error is None
    columns = ("kind", "id", "clicked")
    assert ads.rows(spark, *columns) == ads.expected(spark, *columns)
