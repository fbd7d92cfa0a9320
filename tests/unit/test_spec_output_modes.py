"""What sinks ask of the query's output mode: what does not go together is refused by the file
alone."""

import pytest
from sluice.backlog.ranges import refuse_doubling
from sluice.errors import SpecError
from sluice.spec import RunRequest, Step, load_pipeline

from tests.unit.test_spec_refusals import CONSOLE, DAY, JDBC, refusal, step, write

UPDATE = {"kind": "delta", "mode": "update", "keys": ["id"]}
COMPLETE = {"kind": "delta", "mode": "complete"}
KAFKA = {"kind": "kafka", "servers": "h:1", "topic": "t"}
FILES = {"kind": "files", "path": "out"}
CODE = {"kind": "foreach_batch", "function": "f.py:f"}
MEMORY = {"kind": "memory", "name": "m"}


def gathering(*sinks: dict, **fields: object) -> dict:
    """A step whose transform makes groups."""
    return step(**{"dedup": ..., "transform": "t.sql", "sink": list(sinks), **fields})


@pytest.mark.parametrize(
    ("sinks", "mode"),
    [
        ([{"kind": "delta"}], "append"),
        ([UPDATE], "update"),
        ([COMPLETE], "complete"),
        ([JDBC | {"mode": "update", "keys": ["id"]}], "update"),
        ([KAFKA | {"mode": "update"}], "update"),
        ([CODE | {"mode": "complete"}], "complete"),
        ([CONSOLE | {"mode": "complete"}, MEMORY], "complete"),
        ([UPDATE, JDBC | {"mode": "upsert", "keys": ["id"]}, CODE, CONSOLE], "update"),
        ([UPDATE, KAFKA | {"mode": "update", "key": "id"}], "update"),
        ([COMPLETE, MEMORY, CODE], "complete"),
    ],
)
def test_the_sinks_say_in_which_mode_the_query_runs(sinks, mode):
    assert Step.model_validate(gathering(*sinks)).output_mode == mode


@pytest.mark.parametrize(
    ("sinks", "said"),
    [
        ([UPDATE, COMPLETE], "two Delta sinks"),
        ([UPDATE, CONSOLE | {"mode": "complete"}], "its sinks ask for two"),
        ([UPDATE, JDBC], "write `mode: update` with `keys` there"),
        ([UPDATE, FILES], "give it a step of its own"),
        ([UPDATE, KAFKA | {"mode": "update"}], "kafka with a `key`"),
        ([UPDATE, JDBC | {"mode": "upsert", "keys": ["id"], "order_by": ["n"]}], "need none"),
        ([{"kind": "delta"}, KAFKA | {"mode": "update"}], "write `mode: update` with `keys` there"),
        ([COMPLETE, JDBC | {"mode": "upsert", "keys": ["id"]}], "cannot put it in place"),
        ([COMPLETE, KAFKA | {"key": "id"}], "cannot put it in place"),
        ([COMPLETE, {"kind": "foreach", "writer": "f.py:F"}], "cannot put it in place"),
        ([{"kind": "delta", "mode": "update"}], "`mode: update` needs `keys`"),
        ([COMPLETE | {"keys": ["id"]}], "`keys` go with `mode: update`"),
        ([JDBC | {"mode": "update"}], "`mode: update` needs `keys`"),
        ([JDBC | {"keys": ["id"]}], "`keys` go with `mode: upsert` or `mode: update`"),
        (
            [JDBC | {"mode": "update", "keys": ["id"], "order_by": ["n"]}],
            "update keeps the newest batch's",
        ),
    ],
)
def test_sinks_that_cannot_be_given_one_query_are_refused(tmp_path, sinks, said):
    assert said in refusal(tmp_path, gathering(*sinks))


@pytest.mark.parametrize("sink", [UPDATE, COMPLETE], ids=["update", "complete"])
def test_groups_need_a_transform_that_makes_them_and_no_dedup(tmp_path, sink):
    assert "this step has none; write `transform`" in refusal(
        tmp_path, gathering(sink, transform=...)
    )
    keys = {"keys": ["id"], "within": "2 days"}
    assert "put `dedup` into a step before" in refusal(tmp_path, gathering(sink, dedup=keys))


def test_an_upsert_of_groups_needs_no_order_for_the_newest_batch_says_what_a_group_is():
    upsert = JDBC | {"mode": "upsert", "keys": ["id"]}
    made = Step.model_validate(gathering(UPDATE, upsert))
    assert made.further_sinks["jdbc t"].order == []
    Step.model_validate(gathering(UPDATE, upsert, event_time=...))


@pytest.mark.parametrize("sink", [UPDATE, COMPLETE], ids=["update", "complete"])
def test_a_stream_of_new_rows_is_refused_behind_groups_that_change(tmp_path, sink):
    behind = {"name": "b", "source": {"kind": "table", "step": "s"}, "sink": {"mode": "append"}}
    said = refusal(tmp_path, gathering(sink), behind)
    assert f"with `mode: {sink['mode']}` rows of it give way" in said and "`static: true`" in said


@pytest.mark.parametrize("sink", [UPDATE, COMPLETE], ids=["update", "complete"])
def test_a_backfill_of_groups_is_refused_at_its_start(tmp_path, sink):
    (tmp_path / "t.sql").write_text("SELECT id, count(*) AS n FROM source GROUP BY id")
    file = write(tmp_path, gathering(sink))
    request = RunRequest(pipeline=str(file), window=DAY)
    with pytest.raises(SpecError, match="in place of groups that have others.*sluice reset p"):
        refuse_doubling(load_pipeline(file), request)
