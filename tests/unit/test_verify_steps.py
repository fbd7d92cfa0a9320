"""Which steps `sluice verify` can read once more, and why it cannot others."""

import re

import pytest
import yaml
from sluice.errors import SpecError
from sluice.spec import load_pipeline
from sluice.verify.steps import choose_steps

FILES = {"kind": "files", "path": "x", "format": "json", "schema": {"at": "timestamp", "k": "int"}}
ORDERS = {"kind": "table", "path": "orders"}
NAMED = {"kind": "table", "name": "shop.names"}
TIMED = {"source": FILES, "event_time": {"column": "at"}}
STATIC = {"orders": {"source": ORDERS}, "names": {"source": ORDERS, "static": True}}


def load(folder, **steps: dict):
    """A pipeline with these steps."""
    (folder / "q.sql").write_text("SELECT * FROM source")
    told = [{"name": name, **step} for name, step in steps.items()]
    file = folder / "p.yaml"
    file.write_text(yaml.safe_dump({"name": "p", "schedule": None, "steps": told}))
    return load_pipeline(file)


@pytest.mark.parametrize(
    "step",
    [
        {"source": FILES},
        {"source": ORDERS},
        {**TIMED, "dedup": {"keys": ["k"], "within": "forever"}},
        {**TIMED, "dedup": {"keys": ["k"], "within": "1 day", "memory": "state"}},
        {"source": ORDERS, "transform": "q.sql", "groups": {"k": "k"}},
        {"inputs": STATIC, "transform": "q.sql"},
        {"source": ORDERS | {"change_feed": True}},
        {"source": ORDERS | {"start": "latest"}},
        {**TIMED, "dedup": {"keys": ["k"], "within": "1 day", "late": "keep"}},
    ],
)
def test_steps_whose_tables_follow_from_their_inputs_are_chosen(tmp_path, step):
    chosen, left_out = choose_steps(load(tmp_path, one=step), None)
    assert ([one.name for one in chosen], left_out) == (["one"], {})


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (
            {"inputs": STATIC | {"names": {"source": NAMED, "static": True}}, "transform": "q.sql"},
            "nobody notes at which version the static input names is read by its name",
        ),
        ({"source": ORDERS | {"schema_tracking": True}}, "`schema_tracking` reads each commit"),
        ({"source": FILES | {"clean_source": "delete"}}, "its files are taken away once"),
        ({"source": {"kind": "rate", "rows": 1}}, "source rate gives other rows"),
        ({"source": FILES, "sink": {"kind": "console"}}, "it writes no table that remembers"),
    ],
)
def test_others_are_left_out_with_the_reason_and_refused_by_name(tmp_path, step, why):
    pipeline = load(tmp_path, one=step, plain={"source": ORDERS})
    chosen, left_out = choose_steps(pipeline, None)
    assert [one.name for one in chosen] == ["plain"]
    assert left_out["one"].startswith(why)
    with pytest.raises(SpecError, match=re.escape(why)):
        choose_steps(pipeline, "one")


def test_a_step_that_is_not_there_is_refused_with_those_that_are(tmp_path):
    with pytest.raises(SpecError, match="no such step.*There are: one"):
        choose_steps(load(tmp_path, one={"source": FILES}), "two")
