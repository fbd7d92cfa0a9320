"""With `order_by` a batch is compared with what the table held before it: also where that version
is weeks old, and where nobody can read it any more."""

import os
import time
from pathlib import Path

import pytest

from .shop import Shop, order


@pytest.fixture
def shop(tmp_path) -> Shop:
    """A shop in which the larger of two amounts stays, with two orders in its table."""
    shop = Shop(tmp_path, dedup={"order_by": ["amount desc"]})
    shop.land(order(1), order(2))
    assert shop.run().error is None
    return shop


def rest(shop: Shop, spark, days: int) -> None:
    """Let so many days go by, in which nobody writes the table."""
    then = time.time() - days * 86_400
    for path in table_of(shop).rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def table_of(shop: Shop) -> Path:
    return shop.root / "tables" / "orders" / "paid"


def test_a_table_that_rested_for_weeks_takes_a_row_that_ranks_before_its_own(spark, shop):
    rest(shop, spark, 20)
    shop.land(order(1, amount=5.0))
    report = shop.run()
    assert (report.status, report.error) == ("done", None)
    assert (report.counts.replaced, report.steps[0].conflicts) == (1, 1)
    assert sorted(row[1] for row in shop.rows(spark).elements()) == [1.0, 5.0]


def test_a_batch_that_survived_a_crash_ends_well_though_what_it_replaced_is_gone(spark, shop):
    shop.land(order(1, amount=5.0), order(2))
    first = shop.run("first")
    commits = shop.root / "checkpoints" / "orders" / "paid" / "spark" / "commits"
    for name in ("1", ".1.crc"):  # as if the process had died before Spark's commit
        (commits / name).unlink(missing_ok=True)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"VACUUM delta.`{table_of(shop)}` RETAIN 0 HOURS")
    again = shop.run("again")
    assert (again.status, again.error) == ("done", None)
    (told,) = [w for w in again.steps[0].warnings if "before batch 1" in w]
    assert told.endswith("whether copies of a key differ in it is not known")
    assert again.counts == first.counts
    assert (again.counts.read, again.counts.duplicate, again.counts.replaced) == (2, 2, 1)
    assert sorted(row[1] for row in shop.rows(spark).elements()) == [1.0, 5.0]
