"""A chain of three refreshed steps whose runs are killed at random moments, while rows are added,
moved and deleted. `make crash REFRESH_KILLS=100`.

Each table ends as the query over all that there is, and the sinks beside it as the table.
"""

import os
import random
from collections import Counter

import pytest
import yaml
from sluice.spec import load_pipeline
from sluice.streaming.verifying import verify_groups
from sluice.verify.roots import count_rows

from tests.crash.killing import Killer

KILLS = int(os.environ.get("SLUICE_REFRESH_KILLS", "0"))
SEED = int(os.environ.get("SLUICE_CRASH_SEED", "20260101"))
STEPS = {
    "daily": (
        "orders",
        {"day": "date(at)"},
        "SELECT date(at) AS day, country, sum(amount) AS revenue, count(*) AS orders, "
        "count(DISTINCT customer) AS customers FROM source GROUP BY date(at), country",
    ),
    "weekly": (
        "daily",
        {"week": "date_trunc('WEEK', day)"},
        "SELECT date_trunc('WEEK', day) AS week, country, sum(revenue) AS revenue, "
        "sum(orders) AS orders FROM source GROUP BY date_trunc('WEEK', day), country",
    ),
    "best": (
        "weekly",
        {"week": "week"},
        "SELECT week, country, revenue, rank() OVER (PARTITION BY week ORDER BY revenue DESC) "
        "AS place, concat_ws('/', date(week), coalesce(country, 'no country')) AS id FROM source",
    ),
}
"""Step -> what it reads, its groups, its query."""
FILES = {"kind": "files", "format": "parquet"}
EXPORTS = {"daily": ["country"], "weekly": ["week", "country"]}
"""Step -> the partitions of files beside its table."""


class Orders:
    """A table of orders that changes in every way, and the chain over it."""

    def __init__(self, spark, folder, database: dict) -> None:
        self.spark, self.path, self.count = spark, folder / "orders", 0
        self.exports = folder / "exports"
        further = {
            name: {**FILES, "path": str(self.exports / name), "partition_by": partition}
            for name, partition in EXPORTS.items()
        }
        further["best"] = {**database, "mode": "upsert", "keys": ["id"]}
        self.spec = folder / "gold.yaml"
        steps = []
        for name, (reads, groups, query) in STEPS.items():
            (folder / f"{name}.sql").write_text(query)
            place = {"path": str(self.path)} if reads == "orders" else {"step": reads}
            source = {"kind": "table", **place}
            step = {"name": name, "source": source, "transform": f"{name}.sql", "groups": groups}
            steps.append(step | {"sink": [{"kind": "delta"}, further[name]]})
        told = {"name": "gold", "schedule": None, "steps": steps}
        self.spec.write_text(yaml.safe_dump(told, sort_keys=False))
        spark.sql(
            f"CREATE TABLE {self.table} (id INT, customer INT, country STRING, at TIMESTAMP, "
            "amount DECIMAL(12, 2)) USING delta "
            "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
        )

    @property
    def table(self) -> str:
        """Its name in SQL."""
        return f"delta.`{self.path}`"

    def change(self, chance: random.Random) -> None:
        """New orders, and one more commit of another kind."""
        first, self.count = self.count, self.count + 200
        made = f"pmod(xxhash64(id, {chance.randint(0, 9)}), 1000)"
        self.spark.sql(
            f"INSERT INTO {self.table} SELECT id, cast({made} % 40 AS INT), "
            f"element_at(array('NL', 'DE', NULL), cast(1 + {made} % 3 AS INT)), "
            f"timestamp'2026-01-01' + make_dt_interval(cast({made} % 30 AS INT)), "
            f"{made} / 10 FROM (SELECT cast(id AS INT) FROM range({first}, {self.count}))"
        )
        some = f"id % 17 = {chance.randrange(17)}"
        act = chance.choice(
            [
                f"UPDATE {self.table} SET at = at + INTERVAL 3 DAYS WHERE {some}",
                f"DELETE FROM {self.table} WHERE {some}",
                f"DELETE FROM {self.table} WHERE date(at) = '2026-01-{chance.randint(1, 30):02}'",
                f"OPTIMIZE {self.table}",
            ]
        )
        self.spark.sql(act)

    def expected(self) -> dict[str, Counter]:
        """What each table has to hold: the chain as views over all orders."""
        found = {}
        views = {"orders": self.spark.read.format("delta").load(str(self.path))}
        for name, (reads, _, query) in STEPS.items():
            views[reads].createOrReplaceTempView("source")
            views[name] = self.spark.sql(query)
            found[name] = Counter(map(tuple, views[name].collect()))
        return found


@pytest.mark.skipif(not KILLS, reason="`make crash` kills these")
@pytest.mark.timeout(86400)
def test_a_chain_that_is_killed_again_and_again_equals_its_queries(
    spark, tmp_path, postgres, monkeypatch
):
    monkeypatch.setenv("PG_PASSWORD", postgres.password)
    chance, orders = random.Random(SEED), Orders(spark, tmp_path, postgres.as_sink("best_kills"))
    killer = Killer(chance, orders.spec, tmp_path / "root")
    killer.kill(KILLS, lambda: orders.change(chance))
    killer.drain()
    pipeline = load_pipeline(orders.spec)
    paths = pipeline.paths(killer.root)
    for name, wanted in orders.expected().items():
        held = spark.read.format("delta").load(paths.table(name))
        columns = [column for column in held.columns if not column.startswith("_")]
        assert Counter(map(tuple, held.select(*columns).collect())) == wanted, name
        if name in EXPORTS:
            read = spark.read.schema(held.select(*columns).schema).parquet(
                f"{orders.exports / name}"
            )
            assert Counter(map(tuple, read.select(*columns).collect())) == wanted, (
                f"files of {name}"
            )
    with postgres.connect() as connection:
        rows = connection.execute("SELECT id, revenue, place FROM best_kills").fetchall()
    best = spark.read.format("delta").load(paths.table("best")).select("id", "revenue", "place")
    assert Counter(rows) == Counter(map(tuple, best.collect()))
    for step in pipeline.steps:
        found = verify_groups(spark, pipeline, step, paths)
        assert found.equal and found.rows, found
    told = count_rows(killer.root, "gold")
    print(f"{KILLS} kills, seed {SEED}: {told.line}")
    assert told.balanced
