"""A query over a table that belongs to groups through others is taken exactly where a changed row
of it changes no group but those of the rows that are joined to its key."""

import random
from collections import Counter, defaultdict
from datetime import datetime, timedelta

import pytest
from pyspark.sql import DataFrame
from sluice.errors import SpecError
from sluice.spark.grouped_inputs import Through
from sluice.spark.groups import check_groups_kept, mark_input

from tests.spark.views import cached_tables, query_views

Frames = dict[str, DataFrame]
SCHEMAS = {
    "orders": "id int, item int, shop int, at timestamp",
    "refunds": "id int, item int, shop int, at timestamp",
    "products": "item int, shop int, name string",
    "people": "id int, name string",
    "calendar": "day date, holiday boolean",
}
DAY = {"day": {"orders": "date(at)", "refunds": "date(at)"}}
ITEM = Through(["item"], {"orders": ["item"], "refunds": ["item"]})
BOTH = Through(["shop", "item"], {"orders": ["shop", "item"]})
DAILY = "(SELECT date(at) AS day, item, count(*) AS n FROM orders GROUP BY ALL)"
FIT = {
    "inner_join": "SELECT date(at) AS day, name FROM orders JOIN products USING (item)",
    "left_join": "SELECT date(at) AS day, id, name FROM orders o LEFT JOIN products p "
    "ON p.item = o.item AND p.name > 'a'",
    "right_join": "SELECT date(at) AS day, name, count(*) AS n FROM products p "
    "RIGHT JOIN orders o ON p.item <=> o.item GROUP BY ALL",
    "semi_join": "SELECT date(at) AS day, id FROM orders LEFT SEMI JOIN products USING (item)",
    "anti_join": "SELECT date(at) AS day, id FROM orders LEFT ANTI JOIN products USING (item)",
    "a_condition_behind_the_join": "SELECT date(at) AS day, name FROM orders o, products p "
    "WHERE o.item = p.item AND p.shop > 1",
    "behind_an_aggregate": f"SELECT day, name, n FROM {DAILY} d JOIN products p ON d.item = p.item",
    "an_aggregate_of_it": "SELECT date(at) AS day, id, top FROM orders LEFT JOIN "
    "(SELECT item, max(name) AS top FROM products GROUP BY item HAVING count(*) > 1) USING (item)",
    "the_newest_of_it": "SELECT date(at) AS day, id, name FROM orders JOIN (SELECT * FROM "
    "products QUALIFY row_number() OVER (PARTITION BY item ORDER BY shop, name) = 1) USING (item)",
    "before_an_aggregate": "SELECT date(at) AS day, name, count(*) AS n FROM orders "
    "LEFT JOIN products USING (item) GROUP BY ALL",
    "with_a_table_of_no_group": "SELECT date(at) AS day, p.name, q.name AS who FROM orders o JOIN "
    "(products p LEFT JOIN people q ON p.shop = q.id) ON o.item = p.item",
    "itself_by_its_key": "SELECT date(at) AS day, p.name, q.name AS other FROM orders o JOIN "
    "(products p JOIN products q ON p.item = q.item) ON o.item = p.item",
    "both_ends_of_a_join": "SELECT date(o.at) AS day, p.name, q.name AS back FROM orders o "
    "JOIN refunds r ON date(o.at) = date(r.at) JOIN products p ON o.item = p.item "
    "JOIN products q ON r.item = q.item",
    "of_a_union": "SELECT day, name, count(*) AS n FROM (SELECT date(at) AS day, item FROM orders "
    "UNION ALL SELECT date(at), item FROM refunds) LEFT JOIN products USING (item) GROUP BY ALL",
    "a_union_of_it": "SELECT date(at) AS day, name FROM orders JOIN (SELECT item, name FROM "
    "products UNION ALL SELECT item, 'x' FROM products WHERE shop = 1) USING (item)",
}
KEY, TWO = "it does not ask for the key (`item`)", "it does not ask for the key (`shop, item`)"
UNFIT = {
    "another_column": (
        "SELECT date(at) AS day, name FROM orders o JOIN products p ON o.shop = p.item",
        KEY,
    ),
    "a_range": (
        "SELECT date(at) AS day, name FROM orders o JOIN products p ON o.item >= p.item",
        KEY,
    ),
    "or": (
        "SELECT date(at) AS day, name FROM orders o JOIN products p "
        "ON o.item = p.item OR p.shop = 1",
        KEY,
    ),
    "no_condition": (
        "SELECT date(at) AS day, m FROM orders CROSS JOIN "
        "(SELECT item, max(name) AS m FROM products GROUP BY item)",
        KEY,
    ),
    "an_aggregate_of_all": (
        "SELECT date(at) AS day, m FROM orders CROSS JOIN (SELECT max(name) AS m FROM products)",
        "an aggregate without GROUP BY",
    ),
    "an_aggregate_by_another_column": (
        "SELECT date(at) AS day, m FROM orders o JOIN (SELECT shop, "
        "max(item) AS item, max(name) AS m FROM products GROUP BY shop) p ON o.item = p.item",
        "GROUP BY without the group's column `item`",
    ),
    "a_rank_among_all": (
        "SELECT date(at) AS day, n FROM orders JOIN (SELECT item, rank() OVER "
        "(ORDER BY name) AS n FROM products) USING (item)",
        "a window function without",
    ),
    "its_rows_kept": (
        "SELECT date(at) AS day, name FROM products LEFT JOIN orders USING (item)",
        "a join (left outer) keeps rows of a table that has no groups",
    ),
    "a_subquery": (
        "SELECT date(at) AS day FROM orders WHERE item IN (SELECT item FROM products)",
        "a subquery (IN) reads input `products`",
    ),
    "a_key_that_an_aggregate_made": (
        "SELECT day, name FROM (SELECT date(at) AS day, max(item) AS "
        "item FROM orders GROUP BY 1) JOIN products USING (item)",
        KEY,
    ),
    "a_union_with_rows_of_groups": (
        "SELECT date(at) AS day, item FROM orders UNION ALL SELECT NULL, item FROM products",
        "UNION puts rows that belong to groups together",
    ),
    "not_read": ("SELECT date(at) AS day FROM orders", "does not read input `products`"),
}
"""Query -> what the refusal says."""


def random_rows(spark, seed: int) -> Frames:
    """Few rows of few values, NULL among them, so that many meet."""
    chance = random.Random(seed)

    def number() -> int | None:
        return chance.choice([1, 2, 3, None])

    def order(n: int) -> tuple:
        days = timedelta(days=chance.randrange(4), hours=chance.randrange(3))
        at = chance.choice([datetime(2026, 1, 30) + days] * 5 + [None])
        return (n, number(), number(), at)

    names = ("a", "b", "c", None)
    rows = {
        "orders": [order(n) for n in range(24)],
        "refunds": [order(n) for n in range(12)],
        "products": [(number(), number(), chance.choice(names)) for _ in range(9)],
        "people": [(n, chance.choice(names)) for n in (1, 2)],
        "calendar": [(datetime(2026, 1, 31).date(), True)],
    }
    return {name: spark.createDataFrame(rows[name], SCHEMAS[name]).cache() for name in rows}


@pytest.fixture(scope="module")
def tables(spark):
    with cached_tables(spark, random_rows(spark, 20260101)) as frames:
        yield frames


def check(spark, query: str, frames: Frames, through: Through = ITEM) -> None:
    """Raises SpecError for a query that does not fit."""
    read = [name for name in ("orders", "refunds") if name in query]
    marked = {name: mark_input(frames[name], name) for name in (*read, "products")}
    met = Through(through.key, {n: said for n, said in through.others.items() if n in read})
    made = query_views(spark, query, {**frames, **marked})
    check_groups_kept(made, marked, DAY, "step daily", {"products": met})


def by_day(frame: DataFrame) -> dict[object, Counter]:
    found: dict[object, Counter] = defaultdict(Counter)
    for row in frame.collect():
        found[row["day"]][repr(row)] += 1
    return found


def find_strange(spark, query: str, frames: Frames, key: object) -> set[object]:
    """The days that came out otherwise once the rows of a key went, or others came, without a row
    that is joined to it."""
    products, days = frames["products"], set()
    of_key = products["item"].eqNullSafe(key)
    before = by_day(query_views(spark, query, frames))
    for other in (products.where(~of_key), products.union(products.where(of_key))):
        after = by_day(query_views(spark, query, {**frames, "products": other}))
        days |= {day for day in before.keys() | after.keys() if before[day] != after[day]}
    touched = set()
    for name in ("orders", "refunds"):
        rows = frames[name].where(frames[name]["item"].eqNullSafe(key))
        touched |= {row[0] for row in rows.selectExpr("date(at)").collect()}
    return days - touched


@pytest.mark.parametrize("name", FIT)
def test_a_changed_row_of_a_table_changes_the_groups_of_the_rows_that_are_joined_to_it_alone(
    spark, tables, name
):
    check(spark, FIT[name], tables)
    assert all(not find_strange(spark, FIT[name], tables, key) for key in (1, None))


@pytest.mark.parametrize("name", UNFIT)
def test_a_join_by_which_a_changed_row_could_change_any_group_is_refused(spark, tables, name):
    query, what = UNFIT[name]
    with pytest.raises(SpecError) as caught:
        check(spark, query, tables)
    assert what in caught.value.what


@pytest.mark.parametrize("name", ["another_column", "or", "an_aggregate_by_another_column"])
def test_what_is_refused_would_change_other_groups(spark, name):
    tables = [random_rows(spark, seed) for seed in range(3)]
    assert any(find_strange(spark, UNFIT[name][0], one, key) for one in tables for key in (1, 2))


def test_a_key_of_several_columns_is_met_as_a_whole(spark, tables):
    join = "SELECT date(o.at) AS day, name FROM orders o JOIN products p ON {}"
    check(spark, join.format("o.shop = p.shop AND p.item <=> o.item"), tables, BOTH)
    halves = (
        "o.item = p.item",
        "o.shop = p.item AND o.item = p.shop",
    )
    apart = (
        "SELECT date(o.at) AS day, name FROM orders o JOIN orders q ON date(o.at) = date(q.at) "
        "JOIN products p ON o.shop = p.shop AND q.item = p.item"
    )
    for query in (*map(join.format, halves), apart):
        with pytest.raises(SpecError) as caught:
            check(spark, query, tables, BOTH)
        assert TWO in caught.value.what


def test_a_key_is_of_one_type_on_both_sides_and_made_of_one_row(spark, tables):
    query = FIT["inner_join"]
    wrong = {
        "of type INT in input `products` and of type STRING in `orders`": "string(item)",
        "the key cannot be computed": "nope",
        "the key is not made of the columns of one row": "max(item)",
    }
    for what, text in wrong.items():
        with pytest.raises(SpecError) as caught:
            check(spark, query, tables, Through(["item"], {"orders": [text]}))
        assert what in caught.value.what
        assert caught.value.where == "step daily, inputs.products.through.orders"
