"""What a transform makes of the rows.

None is out of sight, none is computed that a WHERE left out, and each has its origin.
"""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from sluice.errors import SpecError
from sluice.spark.columns import DEFECT, ENTERED, FILTERED, PARSED, RAW, RESCUED, SOURCE, STAGE
from sluice.streaming.transform import apply_transform, business_columns

SCHEMA = (
    "id string, qty int, amount double, tags map<string,int>, xs array<int>, "
    "_raw string, _defect string, _rescued string, _source string"
)
ROWS = [
    ("a", 2, 6.0, {"x": 1, "y": 2}, [3, 5], "raw a", None, None, "f1"),
    ("b", 0, 1.0, {"x": 7}, [], "raw b", None, '{"more": 1}', "f1"),
    ("c", None, 2.0, None, None, "raw c", None, None, "f2"),
    (None, None, None, None, None, "not json", "no record", None, "f2"),
]


@pytest.fixture
def source(spark) -> DataFrame:
    return spark.createDataFrame(ROWS, SCHEMA)


@pytest.fixture
def transform(source, tmp_path):
    """Apply a text, SQL or (where it says `def`) Python, to the four rows."""

    def apply(text: str, frame: DataFrame = source) -> DataFrame:
        python = "def clean(" in text
        file = tmp_path / ("t.py" if python else "t.sql")
        file.write_text(text)
        return apply_transform(frame, tmp_path, "t.py:clean" if python else "t.sql")

    return apply


def rows(frame: DataFrame, *columns: str, stage: str = ENTERED) -> Counter:
    """The sound rows of a stage, as a multiset."""
    kept = frame.where((frame[STAGE] == stage) & frame[DEFECT].isNull())
    return Counter(tuple(row) for row in kept.select(*columns).collect())


def stages(frame: DataFrame) -> Counter:
    return Counter((row[STAGE], row[DEFECT] is not None) for row in frame.collect())


FILTERS = {
    "sql": "SELECT id, amount / qty AS unit FROM source WHERE qty <> 0",
    "aliased": "SELECT s.id, s.amount / s.qty AS unit FROM source AS s WHERE s.qty <> 0",
    "qualified": "SELECT source.id, source.amount / source.qty AS unit FROM source WHERE qty <> 0",
    "nested": "SELECT id, unit FROM (SELECT *, amount / qty AS unit FROM source WHERE qty <> 0) t",
    "cte": (
        "WITH sold AS (SELECT * FROM source WHERE qty <> 0), "
        "unit AS (SELECT id, amount / qty AS u FROM sold) "
        "SELECT id, u AS unit FROM unit"
    ),
    "pipe": "FROM source |> WHERE qty <> 0 |> SELECT id, amount / qty AS unit",
    "above": (
        "SELECT * FROM (SELECT id, amount / qty AS unit FROM source WHERE qty <> 0) "
        "WHERE 1 / unit < 9"
    ),
    "lateral_alias": (
        "SELECT id, amount / qty AS unit, unit * 2 AS double FROM source WHERE qty <> 0"
    ),
    "python": (
        "def clean(rows):\n"
        "    return rows.where('qty <> 0').selectExpr('id', 'amount / qty AS unit')"
    ),
}


@pytest.mark.parametrize("text", FILTERS.values(), ids=FILTERS)
def test_a_where_guards_what_is_computed_and_the_rows_it_leaves_out_stay_in_sight(transform, text):
    made = transform(text)
    assert rows(made, "id", "unit") == Counter([("a", 3.0)])
    assert stages(made) == Counter({(ENTERED, False): 1, (FILTERED, False): 2, (ENTERED, True): 1})
    assert rows(made, RAW, SOURCE, stage=FILTERED) == Counter([("raw b", "f1"), ("raw c", "f2")])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id, 10 / coalesce(qty, 0) AS n FROM source WHERE qty > 0",
        "SELECT id, CAST(coalesce(id, 'none') AS INT) AS n FROM source WHERE id = '1'",
        "SELECT coalesce(id, raise_error('bad')) AS id, 1 AS n FROM source",
        "SELECT id, 1 AS n FROM source WHERE 1 / coalesce(length(id), 0) > 0",
    ],
)
def test_nothing_is_computed_of_a_malformed_row(transform, text):
    made = transform(text)
    assert len(made.collect()) == 4
    assert [r[RAW] for r in made.where(f"{DEFECT} IS NOT NULL").collect()] == ["not json"]


def test_a_value_that_cannot_be_computed_for_a_kept_row_is_still_an_error(transform):
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        transform("SELECT id, amount / qty AS unit FROM source").collect()


def test_plain_columns_are_passed_on_as_they_are(transform):
    plan = transform("SELECT id, qty, xs FROM source WHERE qty <> 0")._jdf.queryExecution()
    business = [line for line in plan.optimizedPlan().toString().splitlines() if "Project" in line]
    assert all("CASE" not in line.split(FILTERED)[0].split("_raw")[0] for line in business)


ONE_LINE = {
    "array_max": ("SELECT id, array_max(xs) AS n FROM source WHERE id = 'a'", ("a", 5)),
    "regexp_count": ("SELECT id, regexp_count(id, 'a') AS n FROM source WHERE id = 'a'", ("a", 1)),
    "text": (
        "SELECT id, 'count( over explode' AS n FROM source WHERE id = 'a'",
        ("a", "count( over explode"),
    ),
    "column": (
        "SELECT id, `sum(` AS n FROM (SELECT *, 4 AS `sum(` FROM source) WHERE id = 'a'",
        ("a", 4),
    ),
    "aggregate": (
        "SELECT id, aggregate(xs, 0, (s, x) -> s + x) AS n FROM source WHERE id = 'a'",
        ("a", 8),
    ),
    "star": (
        "SELECT * EXCEPT (qty, amount, tags, xs), 1 AS n FROM source WHERE id = 'a'",
        ("a", 1),
    ),
}


@pytest.mark.parametrize(("text", "row"), ONE_LINE.values(), ids=ONE_LINE)
def test_what_a_query_does_is_read_from_its_plan_and_not_from_its_words(transform, text, row):
    made = transform(text)
    assert rows(made, "id", "n") == Counter([row])
    assert stages(made)[(FILTERED, False)] == 2


MANY = {
    "lateral_view": "SELECT id, k, v FROM source LATERAL VIEW explode(tags) t AS k, v",
    "select": "SELECT id, explode(tags) AS (k, v) FROM source",
    "table_function": "SELECT id, t.k, t.v FROM source, LATERAL explode(tags) AS t(k, v)",
    "cte": (
        "WITH tags AS (SELECT id, explode(tags) AS (k, v) FROM source), "
        "same AS (SELECT * FROM tags) "
        "SELECT * FROM same"
    ),
    "selected": "SELECT id, k, v, _row FROM source LATERAL VIEW explode(tags) t AS k, v",
    "star": (
        "SELECT * EXCEPT (qty, amount, tags, xs) FROM source LATERAL VIEW explode(tags) t AS k, v"
    ),
    "union": (
        "SELECT id, 'x' AS k, tags['x'] AS v FROM source WHERE tags IS NOT NULL UNION ALL "
        "SELECT id, 'y', tags['y'] FROM source WHERE tags['y'] > 0"
    ),
    "unpivot": (
        "SELECT id, k, v FROM (SELECT id, tags['x'] AS x, tags['y'] AS y FROM source) "
        "UNPIVOT (v FOR k IN (x, y))"
    ),
    "python": (
        "from pyspark.sql import functions as F\n"
        "def clean(rows):\n    return rows.select('id', F.explode('tags').alias('k', 'v'))"
    ),
}


@pytest.mark.parametrize("kind", MANY)
def test_rows_made_of_one_row_know_where_it_came_from_without_a_word_of_the_user(transform, kind):
    made = transform(MANY[kind])
    # The text of a record that is unfolded tells of none of its rows which it is.
    raw_a, raw_b = ("raw a", "raw b") if kind == "union" else (None, None)
    assert business_columns(made).names == ["id", "k", "v"]
    assert rows(made, "id", "k", "v", RAW, RESCUED, SOURCE) == Counter(
        [
            ("a", "x", 1, raw_a, None, "f1"),
            ("a", "y", 2, raw_a, None, "f1"),
            ("b", "x", 7, raw_b, '{"more": 1}', "f1"),
        ]
    )
    assert stages(made) == Counter({(ENTERED, False): 3, (PARSED, False): 3, (ENTERED, True): 1})


JOINS = {
    "inner": "SELECT s.id, c.country FROM source s JOIN countries c USING (id)",
    "table_first": "SELECT s.id, c.country FROM countries c JOIN source s ON s.id = c.id",
    "only_theirs": "SELECT c.* FROM source s JOIN countries c ON s.id = c.id",
    "cte_twice": (
        "WITH known AS (SELECT s.id, c.country FROM source s JOIN countries c USING (id)) "
        "SELECT a.id, b.country FROM known a JOIN known b ON a.id = b.id"
    ),
    "semi": "SELECT id, 'DE' AS country FROM source WHERE id IN (SELECT id FROM countries)",
    "scalar": (
        "SELECT id, (SELECT max(country) FROM countries) AS country FROM source "
        "WHERE EXISTS (SELECT 1 FROM countries c WHERE c.id = source.id)"
    ),
}


@pytest.mark.parametrize("text", JOINS.values(), ids=JOINS)
def test_rows_joined_with_a_table_know_where_they_came_from(spark, transform, text):
    spark.createDataFrame([("a", "DE"), ("x", "FR")], "id string, country string").where(
        "id = 'a' OR 'max' NOT IN ('FR')" if "max(" not in text else "id = 'a'"
    ).createOrReplaceTempView("countries")
    made = transform(text)
    assert rows(made, "id", "country", RAW, SOURCE) == Counter([("a", "DE", "raw a", "f1")])


GATHERED = {
    "sum": "SELECT coalesce(qty, 0) AS q, count(*) AS n FROM source GROUP BY 1",
    "distinct": "SELECT DISTINCT coalesce(qty, 0) AS q, IF(qty = 2, 1L, 2L) AS n FROM source",
    "python": (
        "from pyspark.sql import functions as F\n"
        "def clean(rows):\n"
        "    groups = rows.groupBy(F.coalesce('qty', F.lit(0)).alias('q'))\n"
        "    return groups.agg(F.count('*').alias('n'))"
    ),
}


@pytest.mark.parametrize("text", GATHERED.values(), ids=GATHERED)
def test_rows_gathered_from_several_have_no_origin_and_need_none(transform, text):
    made = transform(text)
    expected = [(2, 1, None, None, None)] + [(0, 2, None, None, None)]
    assert rows(made, "q", "n", RAW, RESCUED, SOURCE) == Counter(expected)
    assert stages(made) == Counter({(ENTERED, False): 2, (PARSED, False): 3, (ENTERED, True): 1})


def test_an_aggregation_may_still_say_itself_where_its_rows_come_from(transform):
    made = transform("SELECT count(*) AS n, max(_row) AS _row FROM source WHERE qty = 2")
    assert rows(made, "n", RAW, SOURCE) == Counter([(1, "raw a", "f1")])
    assert business_columns(made).names == ["n"]


PANDAS = """
def clean(rows):
    def pass_on(frames):
        for frame in frames:
            yield frame{columns}
    return rows.select('id', '_row').mapInPandas(pass_on, {schema})
"""


def test_a_function_over_batches_of_rows_passes_the_origin_on_or_is_refused(transform):
    kept = PANDAS.format(columns="", schema="rows.select('id', '_row').schema")
    assert rows(transform(kept), "id", RAW) == Counter(
        [("a", "raw a"), ("b", "raw b"), ("c", "raw c")]
    )
    with pytest.raises(SpecError, match="drops the column _row.*MapInPandas.*return _row as well"):
        transform(PANDAS.format(columns="[['id']]", schema="'id string'"))


def test_a_function_of_python_is_called_for_sound_rows_that_a_where_kept_only(transform):
    made = transform(
        "from pyspark.sql import functions as F\n"
        "def clean(rows):\n"
        "    half = F.udf(lambda n: str(10 // n), 'string')\n"
        "    return rows.where('qty <> 0').select('id', half('qty').alias('h'))\n"
    )
    assert rows(made, "id", "h", RAW) == Counter([("a", "5", "raw a")])
    assert stages(made)[(PARSED, False)] == 3


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"SELECT id, amount AS {name} FROM source", name)
        for name in (
            *("_event_time", "_raw", "_batch_id", "_rank", "_RAW", "_Batch_Key", "_mine", "_row"),
        )
    ]
    + [
        ("SELECT explode(xs) AS _source FROM source", "_source"),
        ("SELECT count(*) AS _n FROM source", "_n"),
        ("def clean(rows):\n    return rows.withColumnRenamed('id', '_stage')", "_stage"),
    ],
)
def test_a_name_of_the_engine_is_refused_by_name(transform, text, name):
    with pytest.raises(SpecError, match=f"column '{name}': names that start with `_`"):
        transform(text)


def test_a_column_of_the_source_that_bears_an_engines_name_is_refused_by_name(source):
    with pytest.raises(
        SpecError, match="column '_id': names that start with `_`.*SELECT _id AS id"
    ):
        apply_transform(source.withColumnRenamed("id", "_id"), Path(), None)


def test_two_columns_of_one_name_are_refused(transform):
    with pytest.raises(SpecError, match="two columns have one name.*got 'id, ID'"):
        transform("SELECT *, upper(id) AS ID FROM source")


def test_what_the_engine_knows_of_a_row_can_be_read_and_does_not_become_a_column(transform):
    made = transform(
        "SELECT * EXCEPT (xs, tags), upper(_source) AS file, _raw IS NULL AS bare FROM source"
    )
    assert business_columns(made).names == ["id", "qty", "amount", "file", "bare"]
    assert rows(made, "id", "file", "bare", SOURCE)[("a", "F1", False, "f1")] == 1
    renamed = transform("SELECT id, _source AS file FROM source")
    assert business_columns(renamed)["file"].metadata == {}
    assert rows(renamed, "id", "file")[("a", "f1")] == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("DROP TABLE source", "the SQL is no query"),
        ("INSERT INTO t SELECT * FROM source", "the SQL is no query"),
        ("CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM source", "the SQL is no query"),
        ("SELECT 1 AS id", "does not read the rows"),
        (
            "SELECT 1 AS n FROM range(3) WHERE EXISTS (SELECT 1 FROM source)",
            "does not read the rows",
        ),
        ("def clean(rows):\n    return rows.sparkSession.range(3)", "does not read the rows"),
    ],
)
def test_what_only_looks_like_a_transform_is_refused(transform, text, says):
    with pytest.raises(SpecError, match=says):
        transform(text)


def test_a_view_of_the_name_is_not_left_behind(spark, transform):
    transform("SELECT id FROM source")
    assert not spark.catalog.tableExists("source")
