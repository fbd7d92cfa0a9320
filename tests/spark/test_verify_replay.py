"""`sluice verify` reads what a step has read once more, in one batch beside its tables: they hold
the same rows, however the backlog was cut; what is not so is found, and where it cannot be known
that is said."""

import json
import os

import pytest
from click.testing import Result
from sluice.cli import app
from sluice.errors import ExitCode, PreflightError, SourceError
from sluice.spec import load_pipeline
from sluice.streaming.replay import verify_by_replay
from typer.testing import CliRunner

from tests.long_runs import leave
from tests.spark.gold import AFTER, BEFORE, dying
from tests.spark.kept import Kept
from tests.spark.shop import Shop, order

LATEST = {"order_by": ["amount desc"]}
BROKEN = '{"order_id": "o1", "amount": 1.0, "at": "2026-01-01T01:00:00Z"} and more'


def verify(spark, shop: Shop, step: str = "paid"):
    """What verify finds of a step, by table."""
    pipeline = load_pipeline(shop.yaml)
    (chosen,) = (one for one in pipeline.steps if one.name == step)
    found = verify_by_replay(spark, pipeline, chosen, pipeline.paths(shop.root))
    return {one.table: one for one in found}


def fill(shop: Shop) -> Shop:
    """Three runs: rows, copies of a key with other content, refused rows, a line nobody can read;
    and a file that waits."""
    shop.land(*(order(number) for number in range(20)), BROKEN)
    shop.run()
    shop.land(*(order(number, amount=2.0) for number in range(5)), order(40, amount=-1.0))
    shop.land(*(order(number, day=2) for number in range(50, 60)))
    shop.run()
    shop.land(order(50, day=2, amount=9.0), order(61, day=2), BROKEN, order(40, amount=-1.0))
    shop.run()
    shop.land(order(70, day=2))
    return shop


def invoke(*asked: str) -> tuple[Result, str]:
    """The verb, and what it says without its line breaks."""
    told = CliRunner().invoke(app, list(asked))
    return told, " ".join(told.output.split())


@pytest.fixture(scope="module")
def kept(spark, tmp_path_factory) -> Kept[Shop]:
    shop = Shop(tmp_path_factory.mktemp("kept") / "shop", dedup=LATEST)
    shop.land(order(7), order(7, amount=2.0), order(8))
    shop.land(order(9), order(40, amount=-1.0), BROKEN)
    shop.run()
    return Kept(spark, shop)


@pytest.fixture
def shop(kept) -> Shop:
    """One run."""
    return kept.put_back()


def table_of(shop: Shop, name: str = "paid") -> str:
    """A table in SQL."""
    return f"delta.`{shop.root}/tables/orders/{name}`"


def test_what_three_runs_wrote_is_what_one_batch_of_the_same_records_gives(spark, tmp_path):
    shop = fill(Shop(tmp_path, dedup=LATEST))
    found = verify(spark, shop)
    assert [*found] == ["target", "quarantine"] and all(one.equal for one in found.values())
    target = found["target"]
    assert target.rows == 31 and target.read.startswith("41 read = 31 written + 2 quarantined")
    assert found["quarantine"].rows == 2
    assert sorted(path.name for path in (shop.root / "verify" / "orders").iterdir()) == ["lease"]
    assert shop.run().counts.written == 1  # nothing of it has touched the step's own checkpoint
    assert verify(spark, shop)["target"].rows == 32


def test_rows_that_are_gone_doubled_or_others_are_told_by_their_key(spark, shop):
    paid = table_of(shop)
    spark.sql(f"DELETE FROM {paid} WHERE order_id = 'o7'")
    spark.sql(f"UPDATE {paid} SET amount = 3 WHERE order_id = 'o8'")
    spark.sql(f"INSERT INTO {paid} SELECT * FROM {paid} WHERE order_id = 'o9'")
    spark.sql(f"DELETE FROM {table_of(shop, 'paid__quarantine')} WHERE row LIKE '%and more'")
    found = verify(spark, shop)
    told = {one.group: (one.missing, one.surplus) for one in found["target"].samples}
    assert told == {"order_id=o7": (1, 0), "order_id=o8": (1, 1), "order_id=o9": (0, 1)}
    assert (found["target"].missing, found["target"].surplus) == (2, 2)
    assert (found["quarantine"].missing, found["quarantine"].surplus) == (1, 0)


def test_the_verb_says_so_and_exits_with_6(spark, shop):
    asked = ["verify", "--spec", str(shop.yaml), "--root", str(shop.root)]
    told, said = invoke(*asked)
    assert told.exit_code == 0, said
    assert "paid: 3 rows, equal to what its input gives once more (6 read =" in said
    assert "paid, quarantine: 2 rows, equal to" in said
    (told_in,) = (shop.root / "reports" / "orders" / "verified").glob("*.json")
    again = invoke("report", *asked[1:], "--run", told_in.stem)[1]
    assert said.startswith(again) and "(verification)" in again
    assert "(verification)" not in invoke("report", *asked[1:])[1]
    spark.sql(f"DELETE FROM {table_of(shop)} WHERE order_id = 'o7'")
    told, said = invoke(*asked, "--sample", "1")
    assert told.exit_code == ExitCode.TERMINAL
    assert "Warning: paid was compared as a whole: a sample is of groups" in said
    assert "1 are missing, and 0 are too many, in 1 group" in said
    assert "order_id=o7: 1 missing, 0 too many" in said
    assert "Somebody wrote beside the step" in said
    told, _ = invoke(*asked, "--json")
    assert json.loads(told.stdout.splitlines()[-2])["missing"] == 1


def test_values_of_columns_marked_pii_are_not_shown(spark, tmp_path):
    shop = Shop(tmp_path)
    shop.write(pii=["order_id"])
    shop.land(order(1), order(2))
    shop.run()
    spark.sql(f"DELETE FROM {table_of(shop)} WHERE order_id = 'o1'")
    found = verify(spark, shop)["target"]
    assert (found.missing, found.samples) == (1, [])


@pytest.mark.parametrize("when", leave([BEFORE, AFTER], BEFORE))
def test_a_batch_that_is_not_finished_is_refused_and_what_its_retry_wrote_is_verified(
    spark, shop, when
):
    shop.land(order(7, amount=3.0), order(50))
    with dying(when):
        assert shop.run().exit_code is not ExitCode.DONE
    with pytest.raises(PreflightError, match="a batch was planned and is not finished"):
        verify(spark, shop)
    shop.run()
    assert all(one.equal for one in verify(spark, shop).values())


@pytest.mark.parametrize("change", [os.remove, lambda path: os.utime(path, (0, 0))])
def test_files_that_are_gone_or_were_changed_are_named(spark, shop, change):
    change(shop.landing / "0002.json")
    with pytest.raises(SourceError, match=r"1 of the files that were read .*0002\.json"):
        verify(spark, shop)


def test_a_step_that_was_edited_since_its_last_run_or_never_ran_is_refused(spark, tmp_path):
    shop = Shop(tmp_path)
    with pytest.raises(PreflightError, match="has not finished a batch"):
        verify(spark, shop)
    told, said = invoke("verify", "--spec", str(shop.yaml), "--root", str(shop.root))
    assert told.exit_code == ExitCode.NOTHING_NEW
    assert "No step has finished a batch yet" in said
    shop.land(order(1))
    shop.run()
    shop.step["rules"] = []
    shop.write()
    with pytest.raises(PreflightError, match="rules were edited since the last run"):
        verify(spark, shop)


def test_a_step_that_reads_another_steps_table_is_verified_from_it(spark, tmp_path):
    shop = Shop(tmp_path, rules=[])
    columns = {"column": "at"}
    step = {"name": "large", "source": {"kind": "table", "step": "paid"}, "event_time": columns}
    shop.behind = [step | {"dedup": {"keys": "*", "within": "forever"}}]
    shop.write()
    for day in (1, 2, 3):
        shop.land(*(order(number + 100 * day, day=day) for number in range(10)))
        shop.run()
    spark.sql(f"OPTIMIZE {table_of(shop)}")
    shop.run()
    found = verify(spark, shop, "large")["target"]
    assert found.equal and found.rows == 30
    spark.sql(f"DELETE FROM {table_of(shop, 'large')} WHERE order_id = 'o101'")
    found = verify(spark, shop, "large")["target"]
    assert (found.missing, found.surplus, found.groups, found.samples) == (1, 0, 1, [])


def test_a_step_with_maps_and_without_keys_is_compared_by_its_rows(spark, tmp_path):
    fields = {"order_id": "string", "amount": "double", "at": "timestamp"}
    source = {"schema": {**fields, "labels": "map<string,string>"}}
    shop = Shop(tmp_path, dedup=None, source=source)
    shop.step["dedup"] = None
    shop.write()
    shop.land(order(1, labels={"a": "b"}), order(1, labels={"a": "b"}), order(2))
    shop.run()
    shop.land(order(1, labels={"a": "c"}))
    shop.run()
    found = verify(spark, shop)["target"]
    assert found.equal and found.rows == 4
    spark.sql(f"DELETE FROM {table_of(shop)} WHERE labels['a'] = 'c'")
    assert verify(spark, shop)["target"].missing == 1


def test_what_judges_a_batch_as_a_whole_does_not_judge_all_batches_as_one(spark, tmp_path):
    few = {
        "type": "expect_table_row_count_to_be_between",
        "kwargs": {"max_value": 10},
        "on_fail": "stop",
    }
    limit = {"share": "20 %", "on_fail": "stop"}
    shop = Shop(tmp_path, rules=[few], source={"max_malformed": limit})
    for day in (1, 2):
        shop.land(*(order(number + 100 * day, day=day) for number in range(9)), BROKEN)
        assert shop.run().exit_code is ExitCode.DONE
    found = verify(spark, shop)
    assert all(one.equal for one in found.values()) and found["target"].rows == 18


def test_several_inputs_are_read_once_more_each_up_to_where_it_stands(spark, tmp_path):
    shop = Shop(tmp_path, rules=[])
    (tmp_path / "both.sql").write_text("SELECT * FROM here UNION ALL SELECT * FROM there")
    (tmp_path / "there").mkdir()
    # The batch that reads all once more is larger than that: its plan stays all the same.
    here = shop.step.pop("source") | {"max_files_per_batch": 1}
    other = here | {"path": str(tmp_path / "there")}
    shop.step |= {
        "inputs": {"here": {"source": here}, "there": {"source": other}},
        "transform": "both.sql",
    }
    shop.write()
    for number in range(2):
        shop.land(order(number))
        (tmp_path / "there" / f"{number}.json").write_text(json.dumps(order(number + 10)))
        assert shop.run().exit_code is ExitCode.DONE
    shop.land(order(50))
    (found,) = (one for name, one in verify(spark, shop).items() if name == "target")
    assert found.equal and found.rows == 4
