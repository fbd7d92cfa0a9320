"""A query with groups is taken exactly where a group can be computed from its own rows alone: what
fits is compared with the query over all rows, and what does not is refused with what to write."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import reduce
from itertools import count

import pytest
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from sluice.errors import SpecError
from sluice.spark.groups import check_groups_kept, mark_input

from tests.spark.views import cached_tables, query_views

Frames = dict[str, DataFrame]
DAY = {"day": {"orders": "date(at)", "refunds": "date(at)"}}
SCHEMAS = {
    "orders": "id int, user string, at timestamp, amount int, price double, tags array<string>",
    "refunds": "id int, user string, at timestamp, amount int",
    "products": "id int, name string",
    "calendar": "day date, holiday boolean",
}
"""The last two belong to no group."""


@dataclass(frozen=True)
class Case:
    """A query over some of the tables."""

    query: str | Callable[[Frames], DataFrame]
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: DAY)

    def run(self, spark, frames: Frames) -> DataFrame:
        """What it makes of the tables."""
        if not isinstance(self.query, str):
            return self.query(frames)
        return query_views(spark, self.query, frames)

    def check(self, spark, frames: Frames, *read: str) -> dict[str, frozenset[str]]:
        """By input, the groups of which a row has several. Raises SpecError where it does not fit.
        Args: read: its inputs that have groups; unless they are named, those that its text
        names."""
        text = self.query if isinstance(self.query, str) else ""
        named = read or [name for name in ("orders", "refunds") if name in text]
        marked = {name: mark_input(frames[name], name) for name in named}
        made = self.run(spark, {**frames, **marked})
        return check_groups_kept(made, marked, self.groups, "step daily")


def by(**groups: str) -> dict[str, dict[str, str]]:
    """Groups that follow from rows of both inputs in the same way."""
    return {column: dict.fromkeys(("orders", "refunds"), sql) for column, sql in groups.items()}


def random_rows(spark, seed: int) -> Frames:
    """Few rows of few values, NULL among them, so that many are equal."""
    chance, ids = random.Random(seed), count()
    days = [datetime(2026, 1, 30) + timedelta(days=n) for n in range(4)]

    def some(*values: object) -> object:
        return chance.choice([*values, None])

    def row(days: list[datetime]) -> tuple:
        at = chance.choice([*(day + timedelta(hours=chance.randrange(4)) for day in days), None])
        return (next(ids) % 7, some("a", "b"), at, some(1, 2, 3))

    rows = {
        "orders": [
            (*row(days[:3]), some(0.0, -0.0, 1.5), some(["x"], ["x", "y"])) for _ in range(30)
        ],
        "refunds": [row(days[1:]) for _ in range(20)],
        "products": [(n % 5, some("a", "b", "c")) for n in range(8)],
        "calendar": [(day.date(), some(True, False)) for day in [*days, days[0]]],
    }
    return {name: spark.createDataFrame(rows[name], SCHEMAS[name]).cache() for name in rows}


@pytest.fixture(scope="module")
def tables(spark):
    """Random rows in each of the tables."""
    with cached_tables(spark, random_rows(spark, 20260101)) as frames:
        yield frames


def double(value: int | None) -> int | None:
    return None if value is None else 2 * value


def as_it_comes(parts):
    yield from parts


DAILY = "(SELECT date(at) AS day, count(*) AS n FROM orders GROUP BY day)"
BACK = "(SELECT date(at) AS day, sum(amount) AS back FROM refunds GROUP BY day)"
FIT = {
    "columns": "SELECT *, date(at) AS day FROM orders WHERE amount > 1",
    "a_name_in_capitals": "SELECT id, date(at) AS DAY FROM orders",
    "group_by": "SELECT date(at) AS day, user, count(*) AS n FROM orders GROUP BY 1, 2",
    "having": "SELECT date(at) AS day FROM orders GROUP BY day HAVING sum(amount) > 5",
    "a_group_made_of_the_key": Case(
        f"SELECT trunc(day, 'MM') AS month, day, n FROM {DAILY}",
        by(month="trunc(date(at), 'MM')"),
    ),
    "two_groups": Case(
        "SELECT o.day, o.user, o.n, r.n AS back FROM (SELECT date(at) AS day, user, count(*) AS n "
        "FROM orders GROUP BY ALL) o JOIN (SELECT date(at) AS day, user, count(*) AS n "
        "FROM refunds GROUP BY ALL) r ON o.day <=> r.day AND o.user <=> r.user",
        by(day="date(at)", user="user"),
    ),
    "a_group_of_several_functions": Case(
        "SELECT coalesce(nullif(user, 'b'), 'none') AS who, sum(amount) AS s FROM orders GROUP BY "
        "coalesce(nullif(user, 'b'), 'none')",
        by(who="coalesce(nullif(user, 'b'), 'none')"),
    ),
    "a_group_of_an_array": Case(
        "SELECT filter(tags, t -> t > 'x') AS t, count(*) AS n FROM orders GROUP BY t",
        {"t": {"orders": "filter(tags, one -> one > 'x')"}},
    ),
    "a_group_of_floating_point": Case(
        "SELECT price, count(*) AS n FROM orders GROUP BY price", {"price": {"orders": "price"}}
    ),
    "distinct": "SELECT DISTINCT date(at) AS day, user FROM orders",
    "drop_duplicates": Case(
        lambda t: t["orders"].select("user", F.to_date("at").alias("day")).dropDuplicates()
    ),
    "top_of_a_group": "SELECT * FROM (SELECT date(at) AS day, id, amount, row_number() OVER "
    "(PARTITION BY date(at) ORDER BY at, amount, id, user, price, tags) AS n FROM orders) "
    "WHERE n <= 2",
    "qualify": "SELECT date(at) AS day, amount FROM orders WHERE true "
    "QUALIFY rank() OVER (PARTITION BY date(at), user ORDER BY amount) = 1",
    "running_total": "SELECT date(at) AS day, sum(amount) OVER (PARTITION BY date(at), user ORDER "
    "BY at) AS s FROM orders",
    "inner_join": "SELECT day, o.id, r.id AS back FROM (SELECT *, date(at) AS day FROM orders) o "
    "JOIN (SELECT *, date(at) AS day FROM refunds) r USING (day) WHERE o.amount >= r.amount",
    "null_safe_join": f"SELECT r.day, n, back FROM {DAILY} o JOIN {BACK} r ON o.day <=> r.day",
    "join_by_what_the_group_is_made_of": "SELECT date(r.at) AS day, o.id FROM orders o JOIN "
    "refunds r ON r.at <=> o.at",
    "left_join": f"SELECT o.day, n, back FROM {DAILY} o LEFT JOIN {BACK} r ON r.day = o.day",
    "right_join": f"SELECT day, n, back FROM {DAILY} RIGHT JOIN {BACK} USING (day)",
    "full_join": f"SELECT day, n, back FROM {DAILY} FULL JOIN {BACK} USING (day)",
    "full_join_by_condition": "SELECT coalesce(date(r.at), date(o.at)) AS day, o.id, r.id AS back "
    "FROM orders o FULL JOIN refunds r ON date(o.at) <=> date(r.at) AND o.user = r.user",
    "full_join_of_three": f"SELECT coalesce(a.day, b.day, c.day) AS day, a.n, back, c.n AS m FROM "
    f"{DAILY} a FULL JOIN {BACK} b ON a.day = b.day FULL JOIN {DAILY} c ON c.day = "
    "coalesce(a.day, b.day) AND c.n > 3",
    "aggregate_above_a_full_join": f"SELECT coalesce(o.day, r.day) AS day, sum(back) AS s FROM "
    f"{DAILY} o FULL JOIN {BACK} r ON o.day = r.day GROUP BY coalesce(o.day, r.day)",
    "semi_join": "SELECT date(o.at) AS day, id FROM orders o LEFT SEMI JOIN refunds r "
    "ON date(o.at) = date(r.at) AND o.user = r.user",
    "anti_join": "SELECT date(o.at) AS day, id FROM orders o LEFT ANTI JOIN refunds r "
    "ON date(o.at) = date(r.at) AND o.amount < r.amount",
    "comma_join": "SELECT date(o.at) AS day, o.id, name FROM orders o, refunds r, products p "
    "WHERE date(o.at) = date(r.at) AND r.id = p.id",
    "self_join": "SELECT date(b.at) AS day, a.id, b.id AS next FROM orders a JOIN orders b "
    "ON date(a.at) = date(b.at) AND a.amount < b.amount",
    "self_join_of_frames": Case(
        lambda t: (
            t["orders"]
            .alias("a")
            .join(t["orders"].alias("b"), F.expr("date(a.at) <=> date(b.at) AND a.id = b.amount"))
            .select(F.expr("date(a.at) AS day"), "a.user", "b.id")
        )
    ),
    "a_with_used_twice": "WITH d AS (SELECT date(at) AS day, user, count(*) AS n FROM orders GROUP "
    "BY ALL) SELECT x.day, x.user, y.n FROM d x JOIN d y ON x.day = y.day AND x.n > y.n",
    "a_with_within": "SELECT * FROM (WITH d AS (SELECT date(at) AS day, id FROM orders) "
    "SELECT day, count(*) AS n FROM d GROUP BY day) WHERE n > 1",
    "union_all": "SELECT date(at) AS day, sum(amount) AS s FROM (SELECT at, amount FROM orders "
    "UNION ALL SELECT at, -amount FROM refunds) GROUP BY date(at)",
    "union": "SELECT date(at) AS day, user FROM orders UNION SELECT date(at), user FROM refunds",
    "union_by_name": Case(
        lambda t: (
            t["orders"]
            .select(F.expr("date(at) AS day"), "id", "price")
            .unionByName(t["refunds"].selectExpr("id", "date(at) AS day"), True)
        )
    ),
    "intersect": "SELECT id, date(at) AS day FROM orders INTERSECT "
    "SELECT id, date(at) FROM refunds",
    "except_all": "SELECT user, date(at) AS day FROM orders EXCEPT ALL SELECT user, date(at) FROM "
    "refunds",
    "left_join_of_a_table": "SELECT date(at) AS day, name FROM orders "
    "LEFT JOIN products USING (id)",
    "a_table_right_joined": "SELECT date(at) AS day, name FROM products p RIGHT JOIN orders o "
    "ON o.id = p.id AND o.user = p.name",
    "anti_join_of_a_table": "SELECT date(at) AS day, id FROM orders LEFT ANTI JOIN products "
    "USING (id)",
    "cross_join_of_a_table": "SELECT date(at) AS day, n FROM orders CROSS JOIN (SELECT count(*) AS "
    "n FROM products)",
    "the_day_of_a_calendar": "SELECT c.day, holiday, sum(amount) AS s FROM calendar c JOIN orders "
    "ON c.day = date(at) GROUP BY c.day, holiday",
    "subqueries_over_a_table": "SELECT date(at) AS day, (SELECT max(name) FROM products p WHERE "
    "p.id = o.id) AS name FROM orders o WHERE id IN (SELECT id FROM products) "
    "OR NOT EXISTS (SELECT 1 FROM products p WHERE p.name = o.user)",
    "lateral_over_a_table": "SELECT date(at) AS day, m FROM orders o LEFT JOIN LATERAL "
    "(SELECT count(*) AS m FROM products p WHERE p.id = o.id)",
    "explode": "SELECT date(at) AS day, tag, count(*) AS n FROM orders LATERAL VIEW OUTER "
    "explode(tags) t AS tag GROUP BY ALL",
    "grouping_sets": "SELECT date(at) AS day, user, count(*) AS n FROM orders "
    "GROUP BY GROUPING SETS ((date(at)), (date(at), user))",
    "sliding_window": "SELECT date(at) AS day, window(at, '2 hours', '1 hour') AS w, count(*) AS n "
    "FROM orders GROUP BY 1, 2",
    "session_of_a_user": Case(
        "SELECT user, session_window(at, '90 minutes').start AS s, count(*) AS n FROM orders "
        "GROUP BY user, session_window(at, '90 minutes')",
        by(user="user"),
    ),
    "pivot": "SELECT * FROM (SELECT date(at) AS day, user, amount FROM orders) "
    "PIVOT (sum(amount) FOR user IN ('a', 'b'))",
    "unpivot": "SELECT * FROM (SELECT date(at) AS day, id, amount FROM orders) "
    "UNPIVOT (v FOR c IN (id, amount))",
    "aggregates_in_any_order": "SELECT date(at) AS day, array_sort(collect_list(user)) AS l, "
    "size(collect_set(user)) AS n, listagg(user, ',') WITHIN GROUP (ORDER BY user) AS u, "
    "mode(user, true) AS m, max_by(amount, amount) AS b, count(DISTINCT user) AS d "
    "FROM orders GROUP BY day",
    "a_function": Case(
        lambda t: t["orders"].select(F.expr("date(at) AS day"), F.udf(double, "int")("amount"))
    ),
    "hints_and_partitions": Case(
        lambda t: (
            t["orders"]
            .hint("broadcast")
            .observe("seen", F.count("*").alias("n"))
            .repartition(2, "id")
            .sortWithinPartitions("id")
            .coalesce(1)
            .groupBy(F.to_date("at").alias("day"))
            .agg(F.max("id").alias("top"))
            .orderBy("day")
        )
    ),
}
READ = {"union_by_name": ("orders", "refunds")}
"""Of a query that is no text: the inputs that it reads, unless they are the orders alone."""


def case_of(said: object) -> Case:
    return said if isinstance(said, Case) else Case(said)


def read_of(name: str, case: Case) -> tuple[str, ...]:
    return () if isinstance(case.query, str) else READ.get(name, ("orders",))


def among(touched: list[tuple], values: list[Column]) -> Column:
    """True for a row of one of the groups; NULL is a group like any other."""
    tests = [
        reduce(Column.__and__, [v.eqNullSafe(F.lit(g)) for v, g in zip(values, group, strict=True)])
        for group in touched
    ]
    return reduce(Column.__or__, tests, F.lit(False))


def rows_of(frame: DataFrame) -> Counter:
    # 0.0 and -0.0 are one value, of which a group shows either.
    return Counter(repr(row).replace("-0.0", "0.0") for row in frame.collect())


@pytest.mark.parametrize("name", FIT)
def test_a_query_that_keeps_its_groups_fits_and_commutes_with_a_filter_by_group(
    spark, tables, name
):
    case = case_of(FIT[name])
    case.check(spark, tables, *read_of(name, case))
    assert commutes(spark, tables, case, random.Random(name))


def commutes(spark, tables: Frames, case: Case, chance: random.Random) -> bool:
    """True for a query that gives of some groups the same over their rows as over all rows."""
    whole, columns = case.run(spark, tables), list(case.groups)
    groups = [tuple(row) for row in whole.select(*columns).distinct().collect()]
    some = chance.sample(sorted(groups, key=repr), (len(groups) + 1) // 2)
    for touched in (some, [(None,) * len(columns)]):
        wanted = rows_of(whole.where(among(touched, [whole[c] for c in columns])))
        filtered = {
            name: frame.where(among(touched, [F.expr(case.groups[c][name]) for c in columns]))
            if name in case.groups[columns[0]]
            else frame
            for name, frame in tables.items()
        }
        if rows_of(case.run(spark, filtered)) != wanted:
            return False
    return True


THREE_DAYS = "sequence(date(at), date_add(date(at), 2))"
EACH = f"{{}} LATERAL VIEW explode({THREE_DAYS}) AS day"
ROLLING = by(day=THREE_DAYS)
LISTS = {
    "lateral_view": f"SELECT day, count(*) AS n, sum(amount) AS s FROM {EACH.format('orders')} "
    "GROUP BY day",
    "in_the_select": f"SELECT day, max(id) AS top FROM (SELECT *, explode({THREE_DAYS}) AS day "
    "FROM orders WHERE amount > 1) GROUP BY day",
    "with_its_place": "SELECT day, count(*) AS n FROM orders LATERAL VIEW "
    f"posexplode({THREE_DAYS}) AS place, day WHERE place < 2 GROUP BY day",
    "rows_as_they_are": f"SELECT day, id, user FROM {EACH.format('orders')}",
    "a_join": f"SELECT o.day, o.n, r.back FROM (SELECT day, count(*) AS n FROM "
    f"{EACH.format('orders')} GROUP BY day) o LEFT JOIN (SELECT day, sum(amount) AS back FROM "
    f"{EACH.format('refunds')} GROUP BY day) r ON o.day <=> r.day",
    "a_list_beside_a_group": Case(
        "SELECT o.day, o.id, r.id AS back FROM (SELECT *, date(at) AS day FROM orders) o "
        f"LEFT JOIN (SELECT day, id, at FROM {EACH.format('refunds')}) r ON o.day <=> r.day "
        "AND o.at > r.at",
        {"day": {"orders": "date(at)", "refunds": THREE_DAYS}},
    ),
    "another_list_beside_it": f"SELECT day, tag, count(*) AS n FROM {EACH.format('orders')} "
    "LATERAL VIEW explode(tags) AS tag GROUP BY day, tag",
    "python": Case(
        lambda t: (
            t["orders"]
            .select(F.explode(F.expr(THREE_DAYS)).alias("day"), "user")
            .groupBy("day")
            .agg(F.count_distinct("user").alias("users"))
        ),
        {"day": {"orders": THREE_DAYS}},
    ),
    "the_words_of_a_row": Case(
        "SELECT tag, count(*) AS n FROM orders LATERAL VIEW explode(tags) AS tag GROUP BY tag",
        {"tag": {"orders": "tags"}},
    ),
}
"""Queries over rows that belong to several groups at once."""


@pytest.mark.parametrize("name", LISTS)
def test_a_list_of_groups_fits_where_the_query_makes_a_row_of_each(spark, tables, name):
    said = LISTS[name]
    case = said if isinstance(said, Case) else Case(said, ROLLING)
    (column,) = case.groups
    lists = case.check(spark, tables, *read_of(name, case))
    assert {column} in lists.values()
    whole = case.run(spark, tables)
    values = sorted({row[0] for row in whole.select(column).collect()} - {None})
    for touched in (values[:1], values[1:3], values[-1:]):
        some = dict(tables)
        for name, of_lists in lists.items():
            sql = case.groups[column][name]
            listed = sql if column in of_lists else f"array({sql})"
            belongs = F.arrays_overlap(F.expr(listed), F.array(*map(F.lit, touched)))
            some[name] = tables[name].where(belongs)
        wanted = rows_of(whole.where(F.col(column).isin(touched)))
        assert wanted
        assert rows_of(case.run(spark, some).where(F.col(column).isin(touched))) == wanted


@pytest.mark.parametrize(
    ("query", "what", "do"),
    [
        (
            "SELECT date(at) AS day, count(*) AS n FROM orders GROUP BY date(at)",
            "column `day` of the result does not hold the group",
            "LATERAL VIEW explode(",
        ),
        (
            "SELECT date(at) AS day, id FROM orders",
            "column `day` of the result does not hold the group",
            "LATERAL VIEW explode(<what stands under groups>) AS day",
        ),
        (
            f"SELECT day, id FROM orders LATERAL VIEW OUTER explode({THREE_DAYS}) AS day",
            "column `day` of the result does not hold the group",
            "LATERAL VIEW explode(",
        ),
        (
            f"SELECT max(day) AS day, user FROM {EACH.format('orders')} GROUP BY user",
            "GROUP BY without the group's column `day`",
            "GROUP BY day",
        ),
        (
            "SELECT day, id FROM orders LATERAL VIEW "
            "explode(sequence(date(at), date_add(date(at), 3))) AS day",
            "column `day` of the result does not hold the group",
            "LATERAL VIEW explode(",
        ),
    ],
)
def test_a_list_of_groups_that_is_not_made_rows_of_does_not_fit(spark, tables, query, what, do):
    error = refusal(spark, tables, Case(query, ROLLING))
    assert what in error.what and do in error.do


JOINED = (
    "FROM (SELECT *, date(at) AS day FROM orders) o {} (SELECT *, date(at) AS day FROM refunds) r"
)
BOTH = f"{JOINED.format('JOIN')} USING (day)"
UNFIT = {
    "an_aggregate_of_all": (
        "SELECT max(date(at)) AS day, count(*) AS n FROM orders",
        "an aggregate without GROUP BY makes one row of all groups",
        "GROUP BY day",
    ),
    "group_by_another_column": (
        "SELECT max(date(at)) AS day, user FROM orders GROUP BY user",
        "GROUP BY without the group's column `day`",
        "GROUP BY day, ...",
    ),
    "group_by_what_only_looks_like_it": (
        Case(
            "SELECT cast(price AS string) AS p, count(*) AS n FROM orders GROUP BY price",
            {"p": {"orders": "cast(price AS string)"}},
        ),
        "GROUP BY without the group's column `p`",
        "GROUP BY p, ...",
    ),
    "rollup": (
        "SELECT date(at) AS day, user, count(*) AS n FROM orders GROUP BY ROLLUP (date(at), user)",
        "ROLLUP, CUBE or GROUPING SETS without the group's column `day`",
        "GROUPING SETS ((day), (day, product))",
    ),
    "cube": (
        "SELECT date(at) AS day, user, count(*) AS n FROM orders GROUP BY CUBE (date(at), user)",
        "ROLLUP, CUBE or GROUPING SETS",
        "a step of their own",
    ),
    "limit": (
        "SELECT date(at) AS day, id FROM orders ORDER BY id LIMIT 3",
        "LIMIT counts rows of all groups together",
        "ROW_NUMBER() OVER (PARTITION BY <group> ORDER BY ...)",
    ),
    "offset": ("SELECT date(at) AS day FROM orders OFFSET 2", "OFFSET counts rows", "ROW_NUMBER()"),
    "limit_within": (
        "SELECT date(at) AS day FROM orders WHERE id IN (SELECT id FROM products LIMIT 2)",
        "LIMIT counts rows",
        "ROW_NUMBER()",
    ),
    "sample": (
        "SELECT date(at) AS day FROM orders TABLESAMPLE (50 PERCENT)",
        "TABLESAMPLE takes other rows",
        "pmod(xxhash64(id), 100)",
    ),
    "distinct": (
        "SELECT DISTINCT user FROM orders",
        "DISTINCT over columns without the group's column `day`",
        "SELECT DISTINCT day, ...",
    ),
    "duplicates_of_some_columns": (
        Case(lambda t: t["orders"].withColumn("day", F.to_date("at")).dropDuplicates(["day"])),
        "dropDuplicates over some of the columns keeps any of the rows",
        "WHERE n = 1",
    ),
    "window": (
        "SELECT date(at) AS day, lag(amount) OVER (PARTITION BY user ORDER BY at) AS b FROM orders",
        "a window function without the group's column `day` in PARTITION BY",
        "PARTITION BY day, ...",
    ),
    "window_without_an_order": (
        "SELECT date(at) AS day, row_number() OVER (PARTITION BY date(at) ORDER BY 1) AS n "
        "FROM orders",
        "ordered by what is the same in all rows",
        "ORDER BY at, id",
    ),
    "inner_join": (
        f"SELECT o.day, r.id {JOINED.format('JOIN')} ON o.user = r.user",
        "a join (inner) of two inputs lets rows of different groups meet",
        "ON l.day = r.day AND ...",
    ),
    "join_by_a_condition_that_need_not_hold": (
        f"SELECT o.day, r.id {JOINED.format('LEFT JOIN')} ON o.day = r.day OR o.user = r.user",
        "a join (left outer) of two inputs",
        "ON l.day = r.day AND ...",
    ),
    "where_above_a_left_join": (
        f"SELECT o.day, r.id {JOINED.format('LEFT JOIN')} ON o.id = r.id WHERE o.day = r.day "
        "OR r.day IS NULL",
        "a join (left outer)",
        "ON l.day = r.day AND ...",
    ),
    "join_by_another_time": (
        f"SELECT o.day {JOINED.format('JOIN')} ON o.at = r.at + INTERVAL 1 HOUR",
        "a join (inner) of two inputs",
        "as it is written under `groups`",
    ),
    "join_by_what_only_looks_like_it": (
        Case(
            "SELECT cast(a.price AS string) AS p, b.id FROM orders a JOIN orders b "
            "ON a.price = b.price",
            {"p": {"orders": "cast(price AS string)"}},
        ),
        "a join (inner) of two inputs",
        "ON l.p = r.p AND ...",
    ),
    "one_of_two_groups": (
        Case(
            f"SELECT o.day, o.user {JOINED.format('JOIN')} ON o.day = r.day",
            by(day="date(at)", user="user"),
        ),
        "it does not ask for an equal `user`",
        "ON l.user = r.user AND ...",
    ),
    "full_join_by_a_group_that_is_never_null": (
        Case(
            "SELECT coalesce(coalesce(o.user, 'none'), coalesce(r.user, 'none')) AS who, o.id "
            "FROM orders o FULL JOIN refunds r "
            "ON coalesce(o.user, 'none') = coalesce(r.user, 'none')",
            by(who="coalesce(user, 'none')"),
        ),
        "a full join of inputs of which the group's column `who` is not a column on both sides",
        "USING (who)",
    ),
    "a_table_left_joined": (
        "SELECT date(at) AS day, name FROM products LEFT JOIN orders USING (id)",
        "a join (left outer) keeps rows of a table that has no groups",
        "FROM orders LEFT JOIN products",
    ),
    "full_join_of_a_table": (
        "SELECT date(at) AS day, name FROM orders FULL JOIN products USING (id)",
        "a join (full outer) keeps rows of a table",
        "or write JOIN",
    ),
    "a_table_by_its_matches": (
        "SELECT * FROM calendar LEFT SEMI JOIN orders ON day = date(at)",
        "a join (left semi) keeps rows of a table",
        "FROM orders LEFT JOIN products",
    ),
    "a_table_without_matches": (
        "SELECT * FROM calendar LEFT ANTI JOIN orders ON day = date(at)",
        "a join (left anti) keeps rows of a table",
        "FROM orders LEFT JOIN products",
    ),
    "union_with_a_table": (
        "SELECT date(at) AS day FROM orders UNION ALL SELECT day FROM calendar",
        "UNION puts rows that belong to groups together with rows of a table that has none",
        "Join that table",
    ),
    "union_of_columns_apart": (
        "SELECT date(at) AS day, cast(null AS date) AS other FROM orders "
        "UNION ALL SELECT null, date(at) FROM refunds",
        "UNION of queries that do not have the group's column `day` in the same place",
        "SELECT day, ... UNION ALL SELECT day, ...",
    ),
    "intersect": (
        "SELECT id FROM orders INTERSECT SELECT id FROM refunds",
        "INTERSECT of queries that do not have",
        "Select it in each of them",
    ),
    "except": (
        "SELECT id, date(at) AS day FROM orders EXCEPT SELECT id, day FROM refunds, calendar",
        "EXCEPT of queries that do not have",
        "Select it in each of them",
    ),
    "in": (
        "SELECT date(at) AS day FROM orders WHERE amount IN (SELECT id FROM refunds)",
        "a subquery (IN) reads input `refunds`",
        "LEFT SEMI JOIN",
    ),
    "exists": (
        "SELECT date(at) AS day FROM orders o WHERE NOT EXISTS (SELECT 1 FROM refunds r WHERE "
        "r.id = o.id AND date(r.at) = date(o.at))",
        "a subquery (EXISTS) reads input `refunds`",
        "LEFT ANTI JOIN",
    ),
    "a_value_of_all_rows": (
        "SELECT date(at) AS day, amount / (SELECT sum(amount) FROM orders) AS part FROM orders",
        "a subquery (a value) reads input `orders`",
        "LEFT JOIN with an aggregate",
    ),
    "lateral": (
        "SELECT c.day, n FROM calendar c, LATERAL (SELECT count(*) AS n FROM orders WHERE "
        "date(at) = c.day)",
        "a subquery (LATERAL) reads input `orders`",
        "Write a join",
    ),
    "map_in_pandas": (
        Case(
            lambda t: t["orders"].selectExpr("date(at) AS day").mapInPandas(as_it_comes, "day date")
        ),
        "mapInPandas makes rows of which nothing tells to which group they belong",
        "pandas_udf",
    ),
    "apply_in_pandas": (
        Case(
            lambda t: (
                t["orders"]
                .selectExpr("date(at) AS day")
                .groupBy("day")
                .applyInPandas(lambda rows: rows, "day date")
            )
        ),
        "applyInPandas makes rows",
        "groupBy('day').agg(...)",
    ),
    "as_of_join": (
        Case(
            lambda t: (
                t["orders"]
                .withColumn("day", F.to_date("at"))
                ._joinAsOf(t["products"], t["orders"]["amount"], t["products"]["id"])
            )
        ),
        "the operator AsOfJoin is none",
        "leave `groups` out",
    ),
    "rand": (
        "SELECT date(at) AS day, rand(1) AS r FROM orders",
        "rand() gives another",
        "xxhash64",
    ),
    "uuid": ("SELECT date(at) AS day, uuid() AS r FROM orders", "uuid() gives another", "uuid"),
    "row_ids": (
        Case(
            lambda t: t["orders"].select(F.expr("date(at) AS day"), F.monotonically_increasing_id())
        ),
        "monotonically_increasing_id() gives another value",
        "Make it of the row",
    ),
    "file_names": (
        "SELECT date(at) AS day, input_file_name() AS f FROM orders",
        "input_file_name() gives another value",
        "Make it of the row",
    ),
    "a_function_that_is_not_deterministic": (
        Case(
            lambda t: t["orders"].select(
                F.expr("date(at) AS day"), F.udf(len, "int").asNondeterministic()("user")
            )
        ),
        "len() gives another value",
        "no `asNondeterministic`",
    ),
    "chance_in_a_table": (
        "SELECT date(at) AS day, p.r FROM orders JOIN (SELECT id, rand() AS r FROM products) p "
        "USING (id)",
        "rand() gives another value",
        "Make it of the row",
    ),
    "now": (
        "SELECT date(at) AS day, now() AS t FROM orders",
        "now() changes from run to run",
        "a column of an input changes only with a commit",
    ),
    "days_before_today": (
        "SELECT date(at) AS day FROM orders WHERE date(at) > current_date() - 7",
        "current_date() changes from run to run",
        "let a row carry the moment",
    ),
    "first": (
        "SELECT date(at) AS day, first(id) AS i FROM orders GROUP BY day",
        "first() hangs on the order in which rows come",
        "min_by(x, at)",
    ),
    "any_value": (
        "SELECT date(at) AS day, any_value(id) AS i FROM orders GROUP BY day",
        "any_value() hangs on the order",
        "max_by(x, at)",
    ),
    "collect_list": (
        "SELECT date(at) AS day, collect_list(id) AS i FROM orders GROUP BY day",
        "collect_list() hangs on the order",
        "array_sort(collect_list(x))",
    ),
    "collect_set": (
        "SELECT date(at) AS day, concat_ws(',', collect_set(user)) AS i FROM orders GROUP BY day",
        "collect_set() hangs on the order",
        "array_sort(collect_set(x))",
    ),
    "mode": (
        "SELECT date(at) AS day, mode(user) AS m FROM orders GROUP BY day",
        "mode() hangs on the order",
        "mode(x, true)",
    ),
    "listagg": (
        "SELECT date(at) AS day, listagg(user, ',') AS m FROM orders GROUP BY day",
        "listagg() hangs on the order",
        "WITHIN GROUP (ORDER BY x)",
    ),
    "first_value_without_an_order": (
        "SELECT date(at) AS day, first_value(id) OVER (PARTITION BY date(at)) AS f FROM orders",
        "first_value() hangs on the order",
        "min_by(x, at)",
    ),
    "no_column_of_the_group": (
        "SELECT id FROM orders",
        "column `day`, which tells the group of a row, stands 0 times in the result",
        "Select it once",
    ),
    "the_column_twice": (
        f"SELECT o.day, r.day {JOINED.format('JOIN')} ON o.day = r.day",
        "column `day`, which tells the group of a row, stands 2 times",
        "Select it once",
    ),
    "another_value_in_the_column": (
        "SELECT date_add(date(at), 1) AS day FROM orders",
        "column `day` of the result does not hold the group",
        "the expression that stands under `groups`",
    ),
    "the_column_of_the_side_that_may_be_missing": (
        f"SELECT r.day {JOINED.format('LEFT JOIN')} ON o.day = r.day",
        "column `day` of the result does not hold the group",
        "the expression that stands under `groups`",
    ),
    "the_column_of_one_side_of_a_full_join": (
        f"SELECT o.day {JOINED.format('FULL JOIN')} ON o.day = r.day",
        "column `day` of the result does not hold the group",
        "`coalesce` of both",
    ),
    "the_start_of_a_session": (
        "SELECT date(session_window(at, '1 hour').start) AS day, count(*) AS n FROM orders "
        "GROUP BY user, session_window(at, '1 hour')",
        "GROUP BY without the group's column `day`",
        "GROUP BY day, ...",
    ),
}


def refusal(spark, tables: Frames, case: Case, *read: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        case.check(spark, tables, *read)
    assert caught.value.where.startswith("step daily")
    return caught.value


@pytest.mark.parametrize("name", UNFIT)
def test_a_query_that_mixes_groups_is_refused_with_what_to_write(spark, tables, name):
    said, operator, advice = UNFIT[name]
    case = case_of(said)
    error = refusal(spark, tables, case, *read_of(name, case))
    assert operator in error.what
    assert advice in error.do


@pytest.mark.parametrize(
    "name",
    [
        *("rollup", "window", "inner_join", "join_by_a_condition_that_need_not_hold", "in"),
        *("a_table_left_joined", "a_table_without_matches", "union_of_columns_apart"),
        *("a_value_of_all_rows", "another_value_in_the_column"),
        "the_column_of_the_side_that_may_be_missing",
    ],
)
def test_what_is_refused_would_give_other_rows(spark, tables, name):
    case = case_of(UNFIT[name][0])
    assert not all(commutes(spark, tables, case, random.Random(seed)) for seed in range(4))


WRONG = {
    "a_name_that_no_column_has": ("date(nope)", "the group cannot be computed: "),
    "no_sql": ("date(", "the group cannot be computed: "),
    "of_several_rows": ("max(at)", "the group is not made of the columns of one row"),
    "of_a_window": ("max(at) OVER ()", "the group is not made of the columns of one row"),
    "of_no_column": ("'all'", "the group is not made of the columns of one row"),
    "of_a_query": ("id + (SELECT 1)", "the group is not made of the columns of one row"),
    "by_chance": ("id + rand()", "rand() gives another value"),
    "of_the_moment": ("current_date() - date(at)", "current_date() changes"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_group_is_made_of_the_columns_of_one_row(spark, tables, name):
    text, what = WRONG[name]
    case = Case("SELECT *, date(at) AS day FROM orders", {"day": {"orders": text}})
    error = refusal(spark, tables, case)
    assert what in error.what
    assert (error.where, error.value) == ("step daily, groups.day.orders", text)


def test_a_group_has_one_type_in_all_inputs(spark, tables):
    groups = {"day": {"orders": "date(at)", "refunds": "string(date(at))"}}
    error = refusal(
        spark, tables, Case(f"SELECT o.day {JOINED.format('JOIN')} USING (day)", groups)
    )
    assert "type DATE in input `orders` and of type STRING in `refunds`" in error.what


def test_each_group_follows_from_each_input(spark, tables):
    groups = {"day": {"orders": "date(at)"}}
    error = refusal(
        spark, tables, Case(f"SELECT o.day {JOINED.format('JOIN')} USING (day)", groups)
    )
    assert "nothing says how the group follows from a row of input `refunds`" in error.what


@pytest.mark.parametrize("hidden", ["unread", "checkpoint"])
def test_an_input_that_the_plan_does_not_show_is_refused(spark, tables, hidden):
    def query(frames: Frames) -> DataFrame:
        orders = frames["orders"].selectExpr("date(at) AS day")
        if hidden == "unread":
            return orders
        frames["refunds"].count()
        return orders.join(frames["refunds"].localCheckpoint().selectExpr("date(at) day"), "day")

    error = refusal(spark, tables, Case(query), "orders", "refunds")
    assert "the query does not read input `refunds`" in error.what


def test_columns_that_tell_of_files_are_refused(spark, tables, tmp_path):
    tables["products"].write.format("delta").save(str(tmp_path / "products"))
    frames = {**tables, "products": spark.read.format("delta").load(str(tmp_path / "products"))}

    def query(frames: Frames) -> DataFrame:
        files = frames["products"].selectExpr("id", "_metadata.file_path AS f")
        return frames["orders"].join(files, "id").selectExpr("date(at) AS day", "f")

    error = refusal(spark, frames, Case(query), "orders")
    assert "column `_metadata` tells of files" in error.what


def test_an_id_that_two_places_share_links_no_groups(spark, tables):
    """Spark names columns apart where a join shows them, not below."""

    def query(frames: Frames) -> DataFrame:
        a, b = (
            frames[n].select(F.expr(f"date(at) AS {n[0]}"), F.col("id").alias(f"{n[0]}i"))
            for n in ("orders", "refunds")
        )
        both = a.crossJoin(b)
        again = both.select((F.col("oi") + F.col("ri")).alias("x"))
        return both.where("o = r").crossJoin(again).selectExpr("o AS day", "x")

    assert "a join (" in refusal(spark, tables, Case(query), "orders", "refunds").what


def test_the_mark_of_an_input_shows_in_no_name_and_no_schema(spark, tables):
    marked = mark_input(tables["orders"], "orders")
    assert marked.schema == tables["orders"].schema
    ranked = marked.selectExpr("row_number() OVER (PARTITION BY user ORDER BY at)")
    assert "sluice" not in ranked.columns[0]
    assert marked.count() == tables["orders"].count()
