"""Refresh by a group that the query does not select: it is carried to the result, kept beside the
user's columns, and seen by nobody else."""

import random

import pytest
from pyspark.sql import functions as F
from sluice.errors import SpecError
from sluice.spark.groups import carry_groups, check_groups_kept, mark_input
from sluice.spec import load_pipeline
from sluice.streaming.verifying import verify_groups

from tests.spark.gold_queries import Query
from tests.spark.test_groups_fit import among, random_rows, rows_of
from tests.spark.test_refresh_history import add, fates, open_gold, order
from tests.spark.views import cached_tables, query_views

HIDDEN = "_group_day"
SAID = {"orders": "date(at)", "refunds": "date(at)"}
BACK = "(SELECT at, user, sum(amount) AS back FROM refunds GROUP BY ALL)"
CARRIED = {
    "columns": "SELECT id, user FROM orders WHERE amount > 1 ORDER BY id",
    "an_aggregate": "SELECT user, sum(amount) AS s FROM orders GROUP BY date(at), user",
    "an_aggregate_of_an_aggregate": "SELECT max(s) AS most FROM (SELECT date(at) AS d, user, "
    "sum(amount) AS s FROM orders GROUP BY ALL) GROUP BY d HAVING count(*) > 1",
    "grouping_sets": "SELECT user, count(*) AS n FROM orders GROUP BY GROUPING SETS "
    "((date(at)), (date(at), user))",
    "distinct": "SELECT DISTINCT user, date(at) AS d FROM orders",
    "a_rank": "SELECT id, rank() OVER (PARTITION BY date(at) ORDER BY amount) AS place FROM orders",
    "top_of_a_group": "SELECT id FROM orders QUALIFY "
    "row_number() OVER (PARTITION BY date(at) ORDER BY amount, id, at, user, price, tags) = 1",
    "inner_join": f"SELECT o.id, back FROM orders o JOIN {BACK} r ON date(o.at) = date(r.at)",
    "left_join": f"SELECT o.id, back FROM orders o LEFT JOIN {BACK} r "
    "ON date(r.at) = date(o.at) AND r.user = o.user",
    "right_join": f"SELECT o.id, back FROM orders o RIGHT JOIN {BACK} r ON date(r.at) = date(o.at)",
    "full_join": "SELECT o.n, r.n AS back FROM (SELECT date(at) AS d, count(*) AS n FROM orders "
    "GROUP BY 1) o FULL JOIN (SELECT date(at) AS d, count(*) AS n FROM refunds GROUP BY 1) r "
    "ON o.d = r.d",
    "anti_join": "SELECT id FROM orders o LEFT ANTI JOIN refunds r ON date(o.at) = date(r.at)",
    "self_join": "SELECT a.id, b.id AS next FROM orders a JOIN orders b ON date(a.at) = date(b.at)",
    "a_table_joined": "SELECT o.id, name FROM products p RIGHT JOIN orders o ON o.id = p.id",
    "a_table_before": "SELECT o.id, name FROM products p JOIN orders o ON o.id = p.id",
    "union_all": "SELECT id FROM orders UNION ALL SELECT -id FROM refunds",
    "except": "SELECT id, date(at) AS d FROM orders EXCEPT SELECT id, date(at) FROM refunds",
    "explode": "SELECT tag, count(*) AS n FROM orders LATERAL VIEW explode(tags) AS tag "
    "GROUP BY date(at), tag",
    "a_with": "WITH d AS (SELECT date(at) AS d, user, count(*) AS n FROM orders GROUP BY ALL) "
    "SELECT x.user, y.n FROM d x JOIN d y ON x.d = y.d AND x.n > y.n",
}


@pytest.fixture(scope="module")
def tables(spark):
    with cached_tables(spark, random_rows(spark, 20260101)) as frames:
        yield frames


def run(spark, query, frames):
    """The query over some frames, with the group carried, and the frames that are marked."""
    read = [name for name in SAID if name in query]
    marked = {name: mark_input(frames[name], name) for name in read}
    groups = {HIDDEN: {name: SAID[name] for name in read}}
    plain = query_views(spark, query, {**frames, **marked})
    return plain, carry_groups(plain, marked, groups, "step daily"), marked, groups


@pytest.mark.parametrize("name", CARRIED)
def test_a_group_that_is_not_selected_is_carried_beside_the_rows_and_tells_them_apart(
    spark, tables, name
):
    plain, carried, marked, groups = run(spark, CARRIED[name], tables)
    check_groups_kept(carried, marked, groups, "step daily")
    assert carried.columns == [*plain.columns, HIDDEN]
    assert rows_of(carried.drop(HIDDEN)) == rows_of(plain)
    values = sorted({row[0] for row in carried.select(HIDDEN).collect()}, key=repr)
    some = [(one,) for one in random.Random(name).sample(values, (len(values) + 1) // 2)]
    few = {
        name: frame.where(among(some, [F.to_date(frame["at"])])) if name in SAID else frame
        for name, frame in tables.items()
    }
    _, again, *_ = run(spark, CARRIED[name], few)
    assert rows_of(again) == rows_of(carried.where(among(some, [carried[HIDDEN]])))


def test_a_query_that_mixes_groups_is_refused_though_it_does_not_select_them(spark, tables):
    mixing = {
        "SELECT sum(amount) AS s FROM orders": "one row of all groups",
        "SELECT user, count(*) AS n FROM orders GROUP BY user": "GROUP BY without",
        "SELECT DISTINCT user FROM orders": "DISTINCT over columns without",
        "SELECT user FROM orders UNION SELECT user FROM refunds": "DISTINCT over columns without",
        "SELECT user FROM orders EXCEPT SELECT user FROM refunds": "EXCEPT of queries that",
    }
    for query, what in mixing.items():
        with pytest.raises(SpecError, match=what):
            run(spark, query, tables)


TOTALS = "SELECT customer, sum(amount) AS total FROM source GROUP BY date(at), customer"


def test_a_table_of_hidden_groups_is_refreshed_read_and_verified_as_any_other(spark, tmp_path):
    gold = open_gold(spark, tmp_path, Query(TOTALS, {HIDDEN: "date(at)"}))
    gold.behind = [
        {
            "name": "most",
            "source": {"kind": "table", "step": "daily"},
            "transform": "most.sql",
            "groups": {"customer": "customer"},
        }
    ]
    gold.step["sink"] = [{"kind": "delta"}, {"kind": "files", "path": "out", "format": "json"}]
    (tmp_path / "most.sql").write_text(
        "SELECT *, count(*) OVER (PARTITION BY customer) AS days FROM source"
    )
    assert gold.run().error is None
    add(gold, order(9, 2, customer="bob"), order(10, 3))
    report = gold.run()
    assert report.error is None
    assert fates(report.steps[0].batches[0].refresh) == (0, 2, 0, 0)
    gold.check()
    assert gold.table("most").columns == ["customer", "total", "days"]
    assert spark.read.json(str(tmp_path / "root" / "out")).columns == ["customer", "total"]
    pipeline = load_pipeline(gold.write())
    paths = pipeline.paths(str(tmp_path / "root"))
    for step in pipeline.steps:
        assert verify_groups(spark, pipeline, step, paths).equal
    with gold.unseen():
        spark.sql(f"UPDATE delta.`{gold.target()}` SET total = 0 WHERE {HIDDEN} = '2026-01-02'")
    assert verify_groups(spark, pipeline, pipeline.steps[0], paths).missing == 2
