"""`sluice verify` of steps whose batches cannot all be read once more as one: static tables that
change, rows that are late by when they came, commits and not what a table held after them, state of
one's own. It reads them in as few batches as give the same rows."""

import os
import shutil
from pathlib import Path

import pytest
from sluice.errors import PreflightError, SourceError
from sluice.spec import load_pipeline
from sluice.streaming.replay import verify_by_replay

from tests.long_runs import further, leave
from tests.spark.factories import Project
from tests.spark.gold import AFTER, BEFORE, dying
from tests.spark.sessions import FUNCTION, SOURCE, STEP, lines
from tests.spark.several import Ads, clicked
from tests.spark.shop import Shop, order

DAYS = {"event_time": {"column": "at"}, "dedup": {"keys": ["order_id"], "within": "1 day"}}
APPEND = {"sink": {"mode": "append"}}


def verify(spark, file: Path, root: Path):
    """What verify finds of a pipeline's last step, by table."""
    pipeline = load_pipeline(file)
    found = verify_by_replay(spark, pipeline, pipeline.steps[-1], pipeline.paths(str(root)))
    return {one.table: one for one in found}


class Priced:
    """Orders that meet a static table of prices."""

    def __init__(self, spark, folder: Path, **step: object) -> None:
        self.spark, self.prices = spark, folder / "prices"
        self.shop = Shop(folder, rules=[], **step)
        (folder / "priced.sql").write_text(
            "SELECT o.order_id, o.at, o.amount * p.price AS amount "
            "FROM orders o LEFT JOIN prices p ON p.product = o.amount"
        )
        source = self.shop.step.pop("source")
        static = {"source": {"kind": "table", "path": str(self.prices)}, "static": True}
        inputs = {"orders": {"source": source}, "prices": static}
        self.shop.step |= {"inputs": inputs, "transform": "priced.sql"}
        self.shop.write()

    def price(self, price: float) -> None:
        """A version of the table."""
        rows = self.spark.createDataFrame([(1.0, price)], "product double, price double")
        rows.coalesce(1).write.format("delta").mode("overwrite").save(str(self.prices))

    def run(self, *numbers: int) -> None:
        """A run over orders more."""
        self.shop.land(*(order(number) for number in numbers))
        assert self.shop.run().error is None

    def verify(self):
        return verify(self.spark, self.shop.yaml, self.shop.root)["target"]


@pytest.fixture
def priced(spark, tmp_path) -> Priced:
    return Priced(spark, tmp_path)


def test_static_tables_are_read_as_they_were_in_as_many_batches_as_they_had_versions(spark, priced):
    priced.price(2.0)
    for numbers in ((1, 2), (3, 1), (4,)):
        priced.run(*numbers)
    priced.price(3.0)
    for numbers in ((5, 2), (6,)):
        priced.run(*numbers)
    priced.price(4.0)
    priced.run(7)
    priced.price(5.0)
    found = priced.verify()
    assert (found.rows, found.equal, found.batches) == (7, True, 3)
    assert found.read.startswith("9 read")
    spark.sql(f"UPDATE delta.`{priced.shop.root}/tables/orders/paid` SET amount = 2 WHERE amount=3")
    found = priced.verify()
    assert (found.missing, found.surplus) == (2, 2)


@pytest.mark.parametrize("when", [BEFORE, AFTER])
def test_a_batch_that_was_cut_off_counts_with_the_version_that_its_rows_are_of(spark, priced, when):
    """Before its commit it is made anew, of the newer version; behind it it is of the older."""
    priced.price(2.0)
    priced.run(1)
    priced.shop.land(order(2))
    with dying(when):
        assert priced.shop.run().error
    priced.price(3.0)
    assert priced.shop.run().error is None
    priced.run(4)
    found = priced.verify()
    assert (found.rows, found.equal, found.batches) == (3, True, 2)


def test_a_version_that_is_vacuumed_or_that_nobody_noted_is_told(spark, priced):
    priced.price(2.0)
    priced.run(1)
    priced.price(3.0)
    priced.run(2)
    stretches = priced.shop.root / "checkpoints" / "orders" / "paid" / "stretches"
    away = shutil.move(stretches, stretches.with_name("away"))
    with pytest.raises(PreflightError, match="made before Sluice noted what that takes"):
        priced.verify()
    shutil.move(away, stretches)
    for file in priced.prices.glob("*.parquet"):
        os.utime(file, (0, 0))
    prices = f"delta.`{priced.prices}`"
    at_once = "'delta.deletedFileRetentionDuration' = '0 hours'"
    spark.sql(f"ALTER TABLE {prices} SET TBLPROPERTIES ({at_once})")
    spark.sql(f"VACUUM {prices}")
    with pytest.raises(SourceError, match="read once more: a file of static input prices: the"):
        priced.verify()
    assert priced.shop.run().status == "nothing new"


def test_a_static_table_that_was_made_anew_is_told(priced):
    for price in (2.0, 3.0):
        priced.price(price)
        priced.run(int(price))
    shutil.rmtree(priced.prices)
    priced.price(2.0)
    with pytest.raises(SourceError, match="static input prices has no version 1 any more"):
        priced.verify()


def test_rows_are_late_where_they_were_late(spark, tmp_path):
    shop = Shop(tmp_path, rules=[], dedup={"within": "1 day", "late": "keep"})
    for days in ((1, 1, 2), (5, 4), (1, 5, 6), (2, 6), (9,), (3, 3)):
        shop.land(*(order(shop.landed * 10 + at, day=day) for at, day in enumerate(days)))
        assert shop.run().error is None
    found = verify(spark, shop.yaml, shop.root)
    assert all(one.equal for one in found.values())
    assert "+ 4 late" in found["target"].read and found["target"].batches == 5
    assert found["late"].rows == 4
    shutil.rmtree(shop.root / "checkpoints" / "orders" / "paid" / "stretches")
    found = verify(spark, shop.yaml, shop.root)  # Spark has the plans of so few still
    assert found["target"].equal and found["target"].batches == 6


class Upstream:
    """A table that people write to, and a step that reads its commits."""

    def __init__(self, spark, folder: Path, **source: object) -> None:
        self.spark, self.path = spark, str(folder / "upstream")
        self.project = Project(spark, folder, {"kind": "table", "path": self.path, **source})

    def do(self, statement: str) -> None:
        self.spark.sql(statement.format(table=f"delta.`{self.path}`"))

    def run(self) -> None:
        assert self.project.run().error is None

    def verify(self):
        return verify(self.spark, self.project.write(), self.project.folder / "root")["target"]


READS = {
    "the change feed": ({"change_feed": True}, 12, 2),
    "past commits that change": ({"skip_change_commits": True}, 5, 2),
    "from a version on": ({"change_feed": True, "start": {"version": 2}}, 9, 2),
    "from the end on": ({"change_feed": True, "start": "latest"}, 9, 2),
}


@pytest.mark.parametrize("case", leave(READS, "from the end on"))
def test_commits_are_read_once_more_and_not_what_the_table_held_after_them(spark, tmp_path, case):
    source, rows, batches = READS[case]
    upstream = Upstream(spark, tmp_path, **source)
    upstream.do(
        "CREATE TABLE {table} (id string, n bigint) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    upstream.do("INSERT INTO {table} VALUES ('a', 1), ('b', 2), ('c', 3)")
    if source.get("start") == "latest":
        upstream.project.run()
    for statement in (
        "INSERT INTO {table} VALUES ('d', 4)",
        "UPDATE {table} SET n = n + 1 WHERE id < 'd'",
        "DELETE FROM {table} WHERE id = 'a'",
        "INSERT INTO {table} VALUES ('e', 5)",
    ):
        if source.get("start") != {"version": 2} or upstream.project.landed:
            upstream.run()
        upstream.project.landed += 1
        upstream.do(statement)
    upstream.run()
    upstream.do("DELETE FROM {table}")
    found = upstream.verify()
    assert (found.rows, found.equal, found.batches) == (rows, True, batches)


def test_a_state_of_ones_own_is_made_again_batch_by_batch(spark, tmp_path, two_partitions):
    (tmp_path / "t.py").write_text(FUNCTION)
    shop = Project(spark, tmp_path, SOURCE, STEP)
    days = [
        lines(("ann", "/", 0), ("bob", "/", 1), ("ann", "/a", 20)),
        lines(("ann", "/b", 45), ("bob", "/c", 200)),
        lines(("ann", "/", 5), ("cid", "/", 230)),
        lines(("bob", "/", 500)),
    ]
    for number, content in enumerate(days):
        shop.land(f"{number}.json", content)
        assert shop.run().error is None
    found = verify(spark, shop.write(), tmp_path / "root")["target"]
    assert found.equal and found.rows >= 4 and found.batches >= 4


@further
def test_a_state_beside_static_tables_is_made_again_with_each_as_it_was(
    spark, tmp_path, two_partitions
):
    folder = tmp_path / "names"
    static = {"source": {"kind": "table", "path": str(folder)}, "static": True}
    sql = (
        "SELECT window.start AS at, n.name, count(*) AS n FROM clicks c JOIN names n USING (id) "
        "GROUP BY window(c.at, '1 hour'), n.name"
    )
    clicks = {"clicks": {"id": "string", "at": "timestamp"}}
    ads = Ads(tmp_path, sql, asked={"names": static}, schemas=clicks)
    for number in range(4):
        named = spark.createDataFrame([("1", f"name {number // 2}")], "id string, name string")
        if number % 2 == 0:
            named.write.format("delta").mode("overwrite").save(str(folder))
        ads.land("clicks", *(clicked(1, 60 * number + 10 * at) for at in range(5)))
        assert ads.run().error is None
    found = verify(spark, ads.folder / "ads.yaml", ads.folder / "root")["target"]
    assert (found.rows, found.equal) == (3, True) and found.batches >= 4
    assert ads.rows(spark, "name")[("name 1",)] == 1
