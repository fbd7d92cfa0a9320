"""A pipeline or a step gets another name, and with it a table and a checkpoint that know nothing:
a sink that keeps every row does not get all of them once more."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml
from sluice.errors import ExitCode

from tests.servers.store import assert_followed, order, write_to


def rename(shop, what: str, name: str) -> None:
    """Give the step or the pipeline a name."""
    (shop.step if what == "step" else shop.pipeline)["name"] = name


@pytest.mark.parametrize("what", ["step", "pipeline"])
def test_a_sink_that_keeps_every_row_is_not_filled_twice_by_another_name(shop, store, what):
    write_to(shop, store.sink)
    shop.land("1.json", order(1))
    shop.run()
    rename(shop, what, "other")
    refused = shop.run()
    assert refused.exit_code is ExitCode.TERMINAL and "not there any more" in refused.error
    assert store.rows == Counter([("o1", 1)])
    rename(shop, what, {"step": "s", "pipeline": "p"}[what])
    shop.land("2.json", order(2))
    assert shop.run().error is None
    assert_followed(shop, store, ("o1", 1), ("o2", 2))


def test_the_sink_that_was_emptied_is_filled_under_the_new_name_as_the_advice_says(shop, store):
    write_to(shop, store.sink)
    shop.land("1.json", order(1))
    shop.run()
    rename(shop, "pipeline", "other")
    refused = shop.run()
    _, _, advice = refused.error.partition("copy ")
    old, _, new = advice.rstrip(".").partition(" to ")
    store.run(f"DELETE FROM {store.name}")
    Path(new).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(old, new)
    assert shop.run().error is None
    assert store.rows == Counter([("o1", 1)])


def test_two_pipelines_of_one_folder_may_fill_one_table(shop, store):
    write_to(shop, store.sink)
    shop.land("1.json", order(1))
    shop.run()
    (shop.folder / "other.yaml").write_text(
        yaml.safe_dump(yaml.safe_load(shop.write().read_text()) | {"name": "p"})
    )
    rename(shop, "pipeline", "other")
    assert shop.run().error is None
    assert store.rows == Counter([("o1", 1)] * 2)


def test_a_sink_that_replaces_rows_goes_on_under_any_name(shop, store):
    write_to(shop, store.sink | {"mode": "upsert", "keys": ["id"]})
    shop.land("1.json", order(1))
    shop.run()
    rename(shop, "pipeline", "other")
    assert shop.run().error is None
    assert store.rows == Counter([("o1", 1)])
