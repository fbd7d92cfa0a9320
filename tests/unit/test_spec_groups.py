"""A step with `groups`: what its file may say, and which runs work on it."""

import re

import pytest
import yaml
from sluice.errors import SpecError
from sluice.report.story import Story
from sluice.spec import RunRequest, Window, group_expressions, load_pipeline

ORDERS = {"kind": "table", "path": "orders"}
RETURNS = {"kind": "table", "path": "returns"}
FILES = {"kind": "files", "path": "x", "format": "json", "schema": {"at": "timestamp"}}
PRODUCTS = {"source": {"kind": "table", "path": "products"}, "key": "id"} | {
    "through": {"orders": "product"}
}
BOTH = {"orders": {"source": ORDERS}, "returns": {"source": RETURNS}}
JDBC = {"kind": "jdbc", "connection": "shop", "table": "daily"}
UPSERT = {"mode": "upsert", "keys": ["day"]}
KAFKA = {"kind": "kafka", "servers": "broker:9092", "topic": "daily"}
NO_FEED = {"kind": "delta", "properties": {"delta.enableChangeDataFeed": "false"}}


def write(folder, *steps: dict):
    """A pipeline file with these steps, of which each says what it says beside the usual."""
    usual = {"name": "daily", "transform": "daily.sql", "groups": {"day": "date(at)"}}
    told = [{**usual, **step} for step in steps]
    told = [{name: value for name, value in step.items() if value is not None} for step in told]
    for name in ("daily", "next", "some"):
        (folder / f"{name}.sql").write_text("SELECT * FROM source")
    file = folder / "gold.yaml"
    file.write_text(yaml.safe_dump({"name": "gold", "schedule": None, "steps": told}))
    return file


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"source": FILES}, "refreshed from Delta tab"),
        ({"source": {"kind": "table", "name": "a.orders"}}, "write `path` in place of `name`"),
        ({"source": ORDERS | {"change_feed": True}}, "leave `change_feed` out"),
        ({"source": ORDERS | {"start": "latest"}}, "leave `start` out"),
        ({"source": ORDERS | {"max_files_per_batch": 3}}, "leave `max_files_per_batch` out"),
        ({"source": ORDERS, "transform": None}, "need a `transform`"),
        (
            {"source": ORDERS, "dedup": {"keys": "*", "within": "forever"}},
            "takes no `dedup`: copies are what the query",
        ),
        ({"source": ORDERS, "event_time": {"column": "at"}}, "takes no `event_time`"),
        ({"source": ORDERS, "state_store": "hdfs"}, "takes no `state_store`"),
        ({"source": ORDERS, "trigger": "once"}, "refreshed once a run"),
        ({"source": ORDERS, "groups": None, "refresh": "never"}, "`refresh` says nothing of a"),
        (
            {"source": ORDERS, "groups": None, "on_lost_history": "recompute"},
            "`on_lost_history` says nothing of a step without `groups`",
        ),
        ({"source": ORDERS, "sink": {"kind": "delta", "mode": "complete"}}, "says nothing"),
        (
            {"source": ORDERS, "sink": [{"kind": "delta"}, {"kind": "console"}]},
            "groups change and go, and console could not be told what went; write jdbc with",
        ),
        (
            {"source": ORDERS, "sink": [{"kind": "delta"}, JDBC]},
            "jdbc daily could not be told what went; write jdbc with `mode: upsert` and `keys`",
        ),
        (
            {"source": ORDERS, "sink": [{"kind": "delta"}, JDBC | UPSERT | {"order_by": ["day"]}]},
            "jdbc daily becomes what the table is, and no row of a key waits for another",
        ),
        (
            {"source": ORDERS, "sink": [{"kind": "delta"}, KAFKA]},
            "kafka daily could not be told what went",
        ),
        (
            {"source": ORDERS, "sink": [NO_FEED, JDBC | UPSERT]},
            "told by the table's change feed what went; leave `delta.enableChangeDataFeed` out",
        ),
        ({"source": ORDERS, "groups": {"_day": "date(at)"}}, "names that start with `_`"),
        ({"inputs": BOTH, "groups": {"day": {"orders": "date(at)"}}}, "a row of returns; write it"),
        (
            {"inputs": BOTH, "groups": {"day": {"orders": "at", "returns": "at", "x": "at"}}},
            "'x' is no input whose rows say their groups; there are orders, returns",
        ),
        (
            {"inputs": BOTH | {"products": {"source": ORDERS, "key": "id"}}},
            "`key` needs `through`: a row of products belongs to the groups of rows that are",
        ),
        (
            {"inputs": BOTH | {"products": PRODUCTS | {"static": True}}},
            "`key` says nothing of a static input",
        ),
        (
            {"inputs": BOTH | {"products": PRODUCTS | {"through": {"sales": "product"}}}},
            "'sales' is no input whose rows say their groups; there are orders, returns",
        ),
        (
            {"inputs": BOTH | {"products": PRODUCTS | {"key": ["shop", "id"]}}},
            "the key of products has 2 parts and this 1; write what each part is equal to",
        ),
        (
            {"inputs": {name: PRODUCTS | {"through": {"b": "id"}} for name in ("a", "b")}},
            "'b' is no input whose rows say their groups; there are none",
        ),
        (
            {
                "inputs": BOTH | {"products": PRODUCTS},
                "groups": {"day": {"orders": "at", "returns": "at", "products": "at"}},
            },
            "'products' is no input whose rows say their groups; there are orders, returns",
        ),
        (
            {"inputs": {"products": PRODUCTS | {"through": {"orders": "id"}}}, "groups": None},
            "`key` says nothing of an input of a step without `groups`",
        ),
        (
            {"inputs": BOTH | {"orders": {"source": ORDERS, "transform": "some.sql"}}},
            "reads its inputs as they are; write `transform` in the step that makes the table",
        ),
    ],
)
def test_what_a_refresh_cannot_give_is_refused_with_what_to_write(tmp_path, said, message):
    with pytest.raises(SpecError, match=re.escape(message)):
        load_pipeline(write(tmp_path, said))


def test_groups_are_the_same_for_all_inputs_or_said_by_each(tmp_path):
    (step,) = load_pipeline(write(tmp_path, {"inputs": BOTH})).steps
    assert group_expressions(step) == {"day": {"orders": "date(at)", "returns": "date(at)"}}
    own = {"day": {"orders": "date(at)", "returns": "date(returned_at)"}}
    (step,) = load_pipeline(write(tmp_path, {"inputs": BOTH, "groups": own})).steps
    assert group_expressions(step) == own


def test_a_static_input_needs_no_group(tmp_path):
    inputs = {**BOTH, "products": {"source": ORDERS, "static": True}}
    (step,) = load_pipeline(write(tmp_path, {"inputs": inputs})).steps
    assert group_expressions(step)["day"].keys() == BOTH.keys()


def test_an_input_that_is_joined_by_its_key_needs_no_group(tmp_path):
    inputs = BOTH | {"products": PRODUCTS | {"through": {"orders": "product", "returns": "what"}}}
    (step,) = load_pipeline(write(tmp_path, {"inputs": inputs})).steps
    assert group_expressions(step)["day"].keys() == BOTH.keys()
    assert step.streams["products"].key == ["id"]
    assert step.streams["products"].through == {"orders": ["product"], "returns": ["what"]}


def test_a_refreshed_table_keeps_a_feed_of_its_changes_unless_the_file_says_otherwise(tmp_path):
    (step,) = load_pipeline(write(tmp_path, {"source": ORDERS})).steps
    assert step.keeps_changes
    (step,) = load_pipeline(write(tmp_path, {"source": ORDERS, "sink": NO_FEED})).steps
    assert not step.keeps_changes


def test_sinks_that_can_take_back_what_they_were_given_may_follow_a_refreshed_table(tmp_path):
    files = {"kind": "files", "path": "out", "partition_by": ["day"]}
    sinks = [{"kind": "delta"}, JDBC | UPSERT, KAFKA | {"key": "day"}, files]
    (step,) = load_pipeline(write(tmp_path, {"source": ORDERS, "sink": sinks})).steps
    assert [sink.mirrored_by for sink in step.followers.values()] == [["day"], ["day"], ["day"]]


def test_a_stream_of_new_rows_cannot_follow_a_refreshed_table_and_its_changes_can(tmp_path):
    first = {"source": ORDERS}
    plain = {"name": "copy", "transform": None, "groups": None}
    reader = {**plain, "source": {"kind": "table", "step": "daily"}}
    with pytest.raises(SpecError, match="with `groups` rows of it give way to later ones"):
        load_pipeline(write(tmp_path, first, reader))
    follower = {**plain, "source": {"kind": "table", "step": "daily", "change_feed": True}}
    load_pipeline(write(tmp_path, first, follower))
    load_pipeline(
        write(
            tmp_path,
            first,
            {**reader, **{"groups": {"day": "day"}, "name": "next"}} | {"transform": "next.sql"},
        )
    )


def test_a_backfill_leaves_refreshed_steps_and_their_readers_to_the_next_scheduled_run(tmp_path):
    silver = {"name": "orders", "groups": None, "transform": None, "source": ORDERS}
    daily = {"source": {"kind": "table", "step": "orders"}}
    feed = {"kind": "table", "step": "daily", "change_feed": True}
    copy = {"name": "copy", "transform": None, "groups": None, "source": feed}
    file = write(tmp_path, silver, daily, copy)
    window = Window(start="2026-01-01", end="2026-01-02")
    asked = RunRequest(pipeline=str(file), root=str(tmp_path), window=window)
    chosen = Story(asked).begin(load_pipeline(file))
    assert [step.name for step in chosen.steps] == ["orders"]
    scheduled = RunRequest(pipeline=str(file), root=str(tmp_path))
    assert len(Story(scheduled).begin(load_pipeline(file)).steps) == 3
    with pytest.raises(SpecError, match="every step has `groups`"):
        Story(asked).begin(load_pipeline(write(tmp_path, {"source": ORDERS})))
