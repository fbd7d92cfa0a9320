"""A wrong pipeline file dies as it is read, and says file, field, value and what to write."""

from copy import deepcopy
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from sluice.errors import SpecError
from sluice.spec import Pipeline, find_pipelines, load_pipeline
from sluice.storage import PIPELINES

GOOD = {
    "name": "visits",
    "steps": [
        {
            "name": "pages",
            "source": {
                "kind": "files",
                "path": "/landing",
                "format": "json",
                "schema": {"id": "bigint", "at": "timestamp", "page": "string"},
            },
            "event_time": {"column": "at"},
            "dedup": {"keys": ["id"], "within": "2 days"},
            "rules": [
                {
                    "type": "expect_column_values_to_not_be_null",
                    "kwargs": {"column": "page"},
                    "on_fail": "quarantine",
                }
            ],
        }
    ],
}


def write(folder: Path, content: object) -> Path:
    """Write a pipeline file and return its path; text is written as it is."""
    path = folder / "visits.yaml"
    path.write_text(
        content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
    )
    return path


def change(where: str, value: object) -> dict:
    """GOOD with one field set, by a path such as `steps.0.source.path`; `...` removes the field."""
    changed = deepcopy(GOOD)
    *parents, last = [int(part) if part.isdigit() else part for part in where.split(".")]
    target = changed
    for part in parents:
        target = target[part]
    if value is ...:
        del target[last]
    else:
        target[last] = value
    return changed


def test_a_right_file_is_read(tmp_path):
    pipeline = load_pipeline(write(tmp_path, GOOD))
    assert pipeline.steps[0].dedup.within == timedelta(days=2)
    assert pipeline.folder == tmp_path.resolve()


@pytest.mark.parametrize(
    ("where", "value", "says"),
    [
        ("colour", "red", 'colour: unknown field; remove it or mend its spelling (got "red")'),
        ("steps.0.source.paht", "/landing", "steps.0.source.paht: unknown field"),
        ("steps.0.dedup.widthin", "1 day", "steps.0.dedup.widthin: unknown field"),
        ("name", "Visits", "name: String should match pattern"),
        ("name", ..., "name: Field required"),
        ("steps", [], "steps: List should have at least 1 item"),
        ("steps.0.source.path", "", "steps.0.source.path: String should have at least 1 character"),
        ("steps.0.source.format", "yaml", "steps.0.source.format: Input should be 'json', 'csv'"),
        ("steps.0.source.schema", {}, "no columns; `sluice infer` proposes a schema"),
        (
            "steps.0.source.schema",
            {"id": "number"},
            "column 'id' has unknown type 'number'; write a Spark SQL type",
        ),
        (
            "steps.0.source.schema",
            {"_id": "string"},
            "names that start with `_` are kept for system columns",
        ),
        (
            "steps.0.source.schema",
            {"id": "string", "ID": "string"},
            "two columns differ only in case",
        ),
        (
            "steps.0.source.max_files_per_batch",
            0,
            "max_files_per_batch: Input should be greater than or equal to 1",
        ),
        (
            "steps.0.source.max_bytes_per_batch",
            "many",
            "not a size; write a number and a unit: '500 KB'",
        ),
        ("steps.0.dedup.within", "2 moons", "steps.0.dedup.within"),
        ("steps.0.dedup.within", 2, "steps.0.dedup.within"),
        (
            "steps.0.dedup.late",
            "ignore",
            "steps.0.dedup.late: Input should be 'merge', 'keep' or 'drop'",
        ),
        (
            "steps.0.dedup.keys",
            ["nope"],
            "dedup.keys names column 'nope', which the schema does not have; it has id, at, page",
        ),
        ("steps.0.event_time", {"column": "when"}, "event_time.column names column 'when'"),
        (
            "steps.0.event_time",
            {"column": "at", "max_future": "soon"},
            "not a duration; write a number and a unit: '30 seconds'",
        ),
        ("steps.0.event_time", ..., "`dedup` needs `event_time`"),
        ("steps.0.sink", {"mode": "append"}, "sink mode append does not deduplicate"),
        ("steps.0.sink", {"cluster_by": ["day"]}, "sink.cluster_by names column 'day'"),
        (
            "steps.0.rules",
            [{"type": "expect_column_values_to_be_unique", "kwargs": {"column": "user"}}],
            "names column 'user', which the schema does not have",
        ),
        (
            "steps.0.rules",
            [{"type": "not_null", "kwargs": {}}],
            "steps.0.rules.0.type: String should match pattern",
        ),
        (
            "steps.0.rules",
            [{"type": "expect_table_row_count_to_be_between", "on_fail": "explode"}],
            "on_fail: Input should be 'warn', 'quarantine' or 'stop'",
        ),
        (
            "schedule",
            "sometimes",
            "not a schedule; write cron ('0 6 * * *'), a preset ('@daily'), "
            "a duration ('30 minutes'), {after: [orders.orders]} or null",
        ),
        ("budget", "long", "budget: not a duration"),
        (
            "max_batch_failures",
            -1,
            "max_batch_failures: Input should be greater than or equal to 0",
        ),
    ],
)
def test_a_wrong_field_is_named_with_what_to_write(tmp_path, where, value, says):
    path = write(tmp_path, change(where, value))
    with pytest.raises(SpecError) as caught:
        load_pipeline(path)
    assert str(caught.value).startswith(str(path))
    assert says in str(caught.value)


def test_two_steps_with_one_name_are_refused(tmp_path):
    step = GOOD["steps"][0]
    with pytest.raises(
        SpecError, match="two steps are named pages; each has its own checkpoint and table"
    ):
        load_pipeline(write(tmp_path, {**GOOD, "steps": [step, step]}))


def test_a_key_written_twice_is_refused_with_its_line(tmp_path):
    with pytest.raises(SpecError, match=r"key 'name' is written twice.*line 2"):
        load_pipeline(write(tmp_path, "name: a\nname: b\nsteps: []\n"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "a pipeline is a mapping that starts with `name:`"),
        ("- a\n- b\n", "a pipeline is a mapping"),
        ("name: [", "not readable as YAML"),
    ],
)
def test_a_file_that_is_no_mapping_is_refused(tmp_path, text, says):
    with pytest.raises(SpecError, match=says):
        load_pipeline(write(tmp_path, text))


def test_a_file_that_does_not_exist_says_so(tmp_path):
    with pytest.raises(SpecError, match="no such pipeline file"):
        load_pipeline(tmp_path / "gone.yaml")


def test_a_variable_takes_its_value_from_the_environment(tmp_path):
    path = write(tmp_path, change("steps.0.source.path", "${LANDING:-./landing}/visits"))
    assert load_pipeline(path, env={"LANDING": "/data"}).steps[0].source.path == "/data/visits"
    assert load_pipeline(path, env={}).steps[0].source.path == "./landing/visits"
    assert load_pipeline(path, env={"LANDING": ""}).steps[0].source.path == "./landing/visits"


def test_a_variable_that_is_not_set_is_named_with_its_field(tmp_path):
    path = write(tmp_path, change("steps.0.source.path", "${NOWHERE}/visits"))
    with pytest.raises(
        SpecError,
        match=r"steps\[0\]: source: path: environment variable NOWHERE is not set"
        ".*Export it, or write a default",
    ):
        load_pipeline(path, env={})


def test_a_pipeline_cannot_be_changed_after_it_was_read(tmp_path):
    pipeline = load_pipeline(write(tmp_path, GOOD))
    with pytest.raises(ValueError, match="frozen"):
        pipeline.name = "other"


def test_the_pipelines_of_the_project_are_right():
    names = [load_pipeline(path).name for path in find_pipelines(PIPELINES)]
    assert {"orders", "retail"} <= set(names)
    retail = load_pipeline(PIPELINES / "retail.yaml").steps[0]
    assert len(retail.rules) >= 8
    assert {rule.on_fail for rule in retail.rules} == {"warn", "quarantine", "stop"}


def test_every_field_of_a_pipeline_is_in_its_json_schema():
    schema = Pipeline.model_json_schema()
    assert {"name", "schedule", "steps", "pii"} <= set(schema["properties"])
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["FileSource"]["properties"]["max_bytes_per_batch"]["anyOf"][0]["pattern"]


def test_what_a_step_gives_up_is_said():
    from sluice.spec import Step, describe_limits

    source = {"path": "in", "format": "json", "schema": {"id": "string", "at": "timestamp"}}
    dedup = {"keys": ["id"], "within": "2 days"}
    ordered = dedup | {"within": "forever", "order_by": ["at desc"]}
    exact = {"name": "s", "source": source, "event_time": {"column": "at"}, "dedup": ordered}
    assert describe_limits(Step.model_validate(exact)) == []
    assert (
        describe_limits(
            Step.model_validate(exact | {"dedup": dedup | {"keys": "*", "within": "forever"}})
        )
        == []
    )
    unordered = describe_limits(Step.model_validate(exact | {"dedup": dedup}))
    assert (
        "`order_by` names the winner" in unordered[0]
        and "farther than `within` apart" in unordered[1]
    )
    assert (
        "as long as the first by `order_by` arrives first"
        in describe_limits(
            Step.model_validate(exact | {"dedup": ordered | {"first_arrives_first": True}})
        )[0]
    )
    assert (
        "whatever `order_by` says"
        in describe_limits(Step.model_validate(exact | {"dedup": ordered | {"memory": "state"}}))[1]
    )
    state = describe_limits(
        Step.model_validate(exact | {"dedup": dedup | {"memory": "state", "late": "keep"}})
    )
    assert "kept nowhere" in state[0] and "has no effect" in state[1]
    endless = exact | {"dedup": dedup | {"within": "forever", "memory": "state"}}
    assert "never lets a key go" in describe_limits(Step.model_validate(endless))[1]
    timed = exact | {"dedup": dedup | {"keys": ["id", "at"], "memory": "state"}}
    assert "until the watermark is past it" in describe_limits(Step.model_validate(timed))[1]
    (sent,) = describe_limits(
        Step.model_validate(
            exact
            | {
                "sinks": [
                    {"kind": "delta"},
                    {"kind": "kafka", "servers": "b:9092", "topic": "t", "key": "id"},
                ]
            }
        )
    )
    assert "may be sent to Kafka again" in sent
