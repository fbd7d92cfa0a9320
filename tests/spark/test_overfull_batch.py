"""A batch that was planned and not finished, and is larger than one may be now, is planned anew
where nothing hangs on the cut; whatever an earlier try of it left, each row has one fate."""

from collections import Counter

import pytest
from sluice.checkpoint import again
from sluice.streaming import batch, bounds, parts, step

from tests.long_runs import leave

from .shop import WINDOWS, Shop, order

FILES = 6
NEGATIVE, GONE = ("amount_not_negative",), ("unreadable_file",)


@pytest.fixture
def shop(tmp_path) -> Shop:
    """Six files of an order each; the amount of the last is refused."""
    shop = Shop(tmp_path)
    for number in range(FILES):
        shop.land(order(number, amount=1.0 if number < FILES - 1 else -1.0))
    return shop


def die(*_: object, **__: object) -> None:
    raise RuntimeError("killed")


def die_in(shop: Shop, monkeypatch, module, name: str, *, after: bool = False) -> None:
    """Run, and die where a function is called, or as it returns."""
    whole = getattr(module, name)

    def act(*args, **kwargs):
        if after:
            whole(*args, **kwargs)
        die()

    with monkeypatch.context() as patch:
        patch.setattr(module, name, act)
        assert "killed" in shop.run().error


def count_batches(shop: Shop, most: int | None = 1) -> list[int]:
    """What the batches of the next run read, under another bound."""
    if most is not None:
        shop.step["source"]["max_files_per_batch"] = most
        shop.write()
    report = shop.run()
    assert report.error is None
    told = [w for w in report.steps[0].warnings if "planned anew" in w]
    counts = [entry.counts.read for entry in report.steps[0].batches]
    assert bool(told) == (counts[0] < FILES)
    return counts


def check_rows(spark, shop: Shop) -> None:
    """Each order is once where it belongs, and nothing is left to do."""
    assert shop.ids(spark) == [f"o{number}" for number in range(FILES - 1)]
    assert shop.reasons(spark) == Counter([NEGATIVE])
    assert shop.run().status == "nothing new"


DEATHS = {
    "before the batch": (step, "process"),
    "before it is counted": (batch, "take_survey"),
    "before its rows are written": (parts, "_write_target"),
}


@pytest.mark.parametrize("when", leave(DEATHS, "before the batch", "before it is counted"))
def test_a_bound_that_was_lowered_holds_for_the_batch_that_killed_the_run(
    spark, shop, monkeypatch, when
):
    die_in(shop, monkeypatch, *DEATHS[when])
    assert count_batches(shop) == [1] * FILES
    check_rows(spark, shop)


def test_a_batch_whose_rows_are_in_the_target_comes_again_as_it_is(spark, shop, monkeypatch):
    die_in(shop, monkeypatch, step, "process", after=True)
    assert count_batches(shop) == [FILES]
    check_rows(spark, shop)


def test_a_batch_within_the_bound_comes_again_as_it_is(spark, shop, monkeypatch):
    die_in(shop, monkeypatch, step, "process")
    shop.land(order(1))  # waits behind the batch
    assert count_batches(shop, FILES) == [FILES, 1]
    check_rows(spark, shop)


def test_less_memory_is_a_lower_bound(spark, shop, monkeypatch):
    die_in(shop, monkeypatch, step, "process")
    monkeypatch.setattr(bounds, "storage_memory", lambda spark: 150 / bounds.SHARE)
    assert 2 < len(count_batches(shop, None)) <= FILES
    check_rows(spark, shop)


@pytest.mark.parametrize("late", ["keep", "drop"])
def test_where_the_cut_decides_what_is_late_the_plan_stays(shop, monkeypatch, late):
    shop.step["dedup"]["late"] = late
    shop.write()
    die_in(shop, monkeypatch, step, "process")
    assert count_batches(shop) == [FILES]


def test_where_one_batch_takes_all_the_plan_stays(spark, shop, monkeypatch):
    shop.step["trigger"] = "once"
    shop.write()
    die_in(shop, monkeypatch, step, "process")
    assert count_batches(shop) == [FILES]
    check_rows(spark, shop)


def test_where_a_state_hangs_on_the_cut_the_plan_stays(shop, monkeypatch):
    (shop.folder / "t.py").write_text(WINDOWS)
    shop.step |= {"dedup": None, "sink": {"mode": "append"}, "rules": []}
    shop.step["transform"] = "t.py:sums"
    shop.write()
    die_in(shop, monkeypatch, step, "process")
    shop.step["source"]["max_files_per_batch"] = 1
    shop.write()
    assert [entry.counts.read for entry in shop.run().steps[0].batches][0] == FILES


def test_a_file_that_is_gone_is_told_by_its_plan_alone(spark, shop, monkeypatch):
    die_in(shop, monkeypatch, step, "process")
    min(shop.landing.glob("*.json")).unlink()
    assert count_batches(shop) == [FILES]
    assert shop.reasons(spark) == Counter([NEGATIVE, GONE])


def test_a_kill_while_the_plan_is_taken_back_loses_no_file(spark, shop, monkeypatch):
    die_in(shop, monkeypatch, step, "process")
    shop.step["source"]["max_files_per_batch"] = 1
    shop.write()
    with monkeypatch.context() as patch:
        patch.setattr(again, "replace_file", die)
        assert "killed" in shop.run().error
    report = shop.run()
    assert (report.error, report.counts.read) == (None, FILES)
    check_rows(spark, shop)


def test_what_was_read_before_stays_read_also_where_spark_has_just_packed_its_notes(
    spark, tmp_path, monkeypatch
):
    shop = Shop(tmp_path, source={"max_files_per_batch": 1})
    packed = 9  # the tenth note holds those before it
    for number in range(packed):
        shop.land(order(number))
    assert len(shop.run().steps[0].batches) == packed
    shop.step["source"]["max_files_per_batch"] = 10
    shop.write()
    for number in range(packed, packed + 3):
        shop.land(order(number))
    die_in(shop, monkeypatch, step, "process")
    notes = shop.root / "checkpoints" / "orders" / "paid" / "spark" / "sources" / "0"
    assert (notes / f"{packed}.compact").exists()
    assert count_batches(shop) == [1, 1, 1]
    assert shop.ids(spark) == sorted(f"o{number}" for number in range(packed + 3))
    for number in range(packed + 3, packed + 5):
        shop.land(order(number))
    assert [entry.counts.read for entry in shop.run().steps[0].batches] == [1, 1]
    assert shop.ids(spark) == sorted(f"o{number}" for number in range(packed + 5))
