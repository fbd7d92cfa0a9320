"""`sluice verify` of steps that keep rows in state: what one batch makes of all that was read, up
to the watermark that the step has come to, is what its table holds. Windows and joins of every kind
are verified in `test_windows_any_cut.py`."""

import pytest
from sluice.spec import load_pipeline
from sluice.streaming.replay import verify_by_replay

from tests.spark.several import Ads, clicked, moment, shown
from tests.spark.shop import Shop, order

pytestmark = pytest.mark.usefixtures("two_partitions")

HITS = {"id": "string", "n": "bigint", "at": "timestamp"}
BY_HOUR = "SELECT window.start AS at, {0}count(*) AS n FROM hits GROUP BY window(at, '1 hour'){1}"
MODES = {
    "append": ({}, BY_HOUR.format("", "")),
    "update": ({"mode": "update", "keys": ["at", "id"]}, BY_HOUR.format("id, ", ", id")),
    "complete": ({"mode": "complete"}, "SELECT id, sum(n) AS n FROM hits GROUP BY id"),
}


def verify(spark, yaml, root):
    """What verify finds of a pipeline's one step, by table."""
    pipeline = load_pipeline(yaml)
    (step,) = pipeline.steps
    found = verify_by_replay(spark, pipeline, step, pipeline.paths(str(root)))
    return {one.table: one for one in found}


def verify_ads(spark, ads: Ads):
    return verify(spark, ads.folder / "ads.yaml", ads.folder / "root")


def hit(id_: str, hour: int) -> dict:
    return {"id": id_, "n": hour, "at": moment(60 * hour)}


@pytest.fixture
def hits(tmp_path):
    """A query over hits, in an output mode, after three runs, each with a line nobody can read."""

    def make(mode: str, *later: dict) -> Ads:
        sink, sql = MODES[mode]
        changes = {"sink": {"kind": "delta", **sink}}
        ads = Ads(tmp_path, sql, changes=changes, schemas={"hits": HITS})
        days = [hit("a", 1), hit("b", 1), hit("a", 2)], [hit("a", 3), hit("b", 2)], [hit("b", 6)]
        for rows in (*days, later) if later else days:
            ads.land("hits", *rows, "broken")
            assert ads.run().error is None
        return ads

    return make


@pytest.mark.parametrize("mode", MODES)
def test_groups_are_what_one_batch_makes_of_all_rows_up_to_the_watermark(spark, hits, mode):
    ads = hits(mode)
    found = verify_ads(spark, ads)
    assert {name: (one.rows, one.equal) for name, one in found.items()} == {
        "target": ({"append": 3, "update": 6, "complete": 2}[mode], True),
        "quarantine": (3, True),
    }
    assert found["target"].read.startswith("9 read")
    spark.sql(f"UPDATE delta.`{ads.table()}` SET n = n + 1")
    spoiled = verify_ads(spark, ads)["target"]
    assert not spoiled.equal and spoiled.missing == spoiled.surplus


def test_where_rows_were_dropped_as_late_they_are_dropped_once_more(spark, hits):
    """In batches as they were, for in one batch nothing is late."""
    ads = hits("append", hit("c", 1))
    found = verify_ads(spark, ads)["target"]
    assert (found.rows, found.equal) == (3, True)
    assert found.batches > 4 and "1 late" in found.read


def test_a_join_whose_rows_were_dropped_as_late_is_made_again_batch_by_batch(spark, tmp_path):
    ads = Ads(tmp_path)
    for minutes in (0, 400):
        ads.land("impressions", shown(minutes, minutes), shown(minutes + 1, minutes + 1))
        ads.land("clicks", clicked(minutes, minutes + 5))
        assert ads.run().error is None
    ads.land("impressions", shown(7, 1), shown(500, 500))  # the first is behind the watermark
    ads.land("clicks", clicked(500, 501), clicked(1, 2))
    report = ads.run()
    assert report.error is None and report.counts.late == 2
    found = verify_ads(spark, ads)["target"]
    assert found.equal and found.rows >= 4 and "2 late" in found.read


def test_keys_that_state_remembers_are_those_of_one_batch(spark, tmp_path):
    shop = Shop(tmp_path, dedup={"memory": "state"})
    for numbers in ((1, 2, 2), (2, 3), (4, 1)):
        shop.land(*(order(number) for number in numbers), order(9, amount=-1.0))
        assert shop.run().error is None
    found = verify(spark, shop.yaml, shop.root)
    assert (found["target"].rows, found["target"].equal) == (4, True)
    assert found["quarantine"].equal
