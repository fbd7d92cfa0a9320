"""A schedule that waits for steps of other pipelines, in the file and on the command line."""

from datetime import timedelta
from pathlib import Path

import pytest
from sluice.cli import app
from sluice.errors import ExitCode, SpecError
from sluice.spec import After, Pipeline, clock_of, describe_schedule, load_pipeline
from typer.testing import CliRunner

YAML = """\
name: {name}
schedule: {schedule}
steps:
  - name: {step}
    source: {{path: landing, format: json, schema: {{id: bigint}}}}
    sink: {{mode: append}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of pipelines with `orders`, whose step is `lines`."""
    monkeypatch.setenv("SLUICE_PIPELINES", str(tmp_path))
    monkeypatch.setenv("SLUICE_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("COLUMNS", "200")
    write(tmp_path, "orders", step="lines")
    return tmp_path


def write(folder: Path, name: str, schedule: str = "null", step: str = "gold") -> Path:
    """A pipeline file with one step."""
    file = folder / f"{name}.yaml"
    file.write_text(YAML.format(name=name, schedule=schedule, step=step))
    return file


def read(folder: Path, schedule: str) -> Pipeline:
    """The pipeline `gold` with this schedule."""
    return load_pipeline(write(folder, "gold", schedule))


def call(*arguments: str):
    """Run `sluice`; colours and breaks of lines are a terminal's."""
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize(
    ("schedule", "steps", "needs_all", "clock", "said"),
    [
        ("{after: [orders.lines]}", ["orders.lines"], True, None, "after orders.lines"),
        ("{after: [a.b, c.d]}", ["a.b", "c.d"], True, None, "after a.b and c.d"),
        ("{after: {any: [a.b, c.d]}}", ["a.b", "c.d"], False, None, "after a.b or c.d"),
        (
            '{after: [a.b], or_at: "0 6 * * *"}',
            ["a.b"],
            True,
            "0 6 * * *",
            "after a.b, or at 0 6 * * *",
        ),
        (
            "{after: {any: [a.b, c.d]}, or_at: 6 hours}",
            ["a.b", "c.d"],
            False,
            timedelta(hours=6),
            "after a.b or c.d, or every 6 hours",
        ),
    ],
)
def test_a_pipeline_runs_after_all_or_any_and_by_a_clock_as_well(
    folder, schedule, steps, needs_all, clock, said
):
    found = read(folder, schedule).schedule
    assert isinstance(found, After)
    assert (found.steps, found.needs_all, clock_of(found)) == (steps, needs_all, clock)
    assert describe_schedule(found) == said
    assert said in call("list").stdout


@pytest.mark.parametrize(
    ("schedule", "clock", "said"),
    [
        ("null", None, "by hand"),
        ("90 minutes", timedelta(minutes=90), "every 90 minutes"),
        ('"@daily"', "@daily", "@daily"),
        ('"0 6 * * *"', "0 6 * * *", "0 6 * * *"),
    ],
)
def test_the_other_schedules_are_what_they_were(folder, schedule, clock, said):
    found = read(folder, schedule).schedule
    assert found == clock_of(found) == clock
    assert describe_schedule(found) == said


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("{after: []}", "schedule.after: nothing to run after, line 2. Name steps"),
        ("{after: {any: []}}", "schedule.after.any: nothing to run after, line 2"),
        ("{after: [a.b, a.b]}", "schedule.after: names a.b twice; once is enough, line 2"),
        ("{after: a.b}", 'schedule.after: not a list (got "a.b"), line 2. Write [a.b]'),
        ("{after: {any: a.b}}", 'schedule.after.any: not a list (got "a.b"), line 2'),
        ("{after: null}", "schedule.after: not a list (got null), line 2"),
        ("{after: [orders]}", "schedule.after.0: not a step of a pipeline; write pipeline.step"),
        ("{after: [7]}", "schedule.after.0: not a step of a pipeline"),
        ("{after: [sluice.a.b]}", "(got \"sluice.a.b\"), line 2. Did you mean 'a.b'?"),
        ("{after: {all: [a.b]}}", "schedule.after: `all` is what a list means"),
        ("{afer: [a.b]}", "schedule.afer: unknown field"),
        ("{after: [a.b], at: '@daily'}", "line 2. There are after, or_at"),
        ("{or_at: '@daily'}", "schedule.after: Field required, line 2. Write `after: ...`"),
        ("[a.b]", "schedule: not a schedule; write cron ('0 6 * * *'), a preset ('@daily'),"),
        ("30", "{after: [orders.orders]} or null (got 30)"),
        ("{after: [a.b], or_at: at six}", "schedule.or_at: not a schedule; write cron"),
        ("{after: [a.b], or_at: 6:00}", "schedule.or_at: not a schedule; write cron"),
        ("{after: [a.b], or_at: '@once'}", "schedule.or_at: @once says no time"),
        ("{after: [gold.gold]}", "the schedule waits for gold.gold, a step of this pipeline"),
        ("{after: {any: [a.b, gold.other]}}", "it would wake itself, line 2. Leave it out"),
    ],
)
def test_a_wrong_one_is_refused_with_field_value_line_and_what_to_write(folder, schedule, said):
    with pytest.raises(SpecError) as caught:
        read(folder, schedule)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("clock", "said"),
    [
        ("@dayly", "no preset of Airflow's (got '@dayly'). Did you mean '@daily'?"),
        ("0 25 * * *", "not a cron expression Airflow understands"),
        ("0 0 31 2 *", "a cron expression whose day never comes"),
    ],
)
def test_validate_asks_airflows_parser_for_the_clock_as_well(folder, clock, said):
    write(folder, "gold", f"{{after: [orders.lines], or_at: '{clock}'}}")
    result = call("validate", "gold")
    assert f"gold.yaml: schedule.or_at: {said}" in result.stderr
    assert result.exit_code == ExitCode.TERMINAL


def test_validate_refuses_a_step_that_the_pipeline_beside_it_does_not_have(folder):
    write(folder, "gold", "{after: {any: [orders.line]}}")
    result = call("validate", "gold")
    assert result.exit_code == ExitCode.TERMINAL
    assert (
        "gold.yaml: schedule.after.any.0: pipeline orders has no such step, so the schedule would "
        "wait for ever (got 'orders.line'), line 2. Did you mean 'orders.lines'?"
    ) in result.stderr


@pytest.mark.parametrize(
    ("awaited", "do"),
    [
        ("order.lines", "Did you mean 'orders'?"),
        ("elsewhere.lines", "It wakes by the asset sluice.elsewhere.lines only"),
    ],
)
def test_validate_warns_of_a_pipeline_that_the_folder_lacks(folder, awaited, do):
    write(folder, "gold", f"{{after: [{awaited}]}}")
    result = call("validate", "gold")
    assert result.exit_code == ExitCode.DONE
    name = awaited.partition(".")[0]
    said = f"schedule.after.0: no other pipeline of this folder that can be read is named {name}"
    assert f"{said} (got '{awaited}'), line 2. {do}" in result.stderr


def test_validate_warns_of_two_that_wait_for_each_other_and_of_nothing_else(folder):
    write(folder, "gold", "{after: [orders.lines]}")
    assert "schedule" not in call("validate").stderr
    write(folder, "orders", "{after: [gold.gold]}", step="lines")
    said = "pipeline orders waits for this one as well: each would wake the next"
    assert said in call("validate", "gold").stderr


def test_validate_warns_of_a_circle_and_names_the_way_around_it(folder):
    write(folder, "gold", "{after: [orders.lines]}")
    write(folder, "orders", "{after: {any: [returns.lines, silver.gold]}}", step="lines")
    write(folder, "silver", "{after: [other.gold]}")
    write(folder, "other", "{after: [orders.lines]}")  # a circle that gold is no part of
    assert "waits for this one" not in call("validate", "gold").stderr
    write(folder, "returns", "{after: [far.gold]}", step="lines")
    write(folder, "far", "{after: [gold.gold]}")
    said = "pipeline orders waits for this one as well, by way of returns, far: each would wake"
    assert said in call("validate", "gold").stderr


def test_a_source_that_cannot_be_read_again_is_refused_by_this_schedule_too(folder):
    file = write(folder, "gold", "{after: [orders.lines]}")
    file.write_text(file.read_text().replace("path: landing, format: json", "kind: rate"))
    file.write_text(file.read_text().replace(", schema: {id: bigint}", ""))
    with pytest.raises(SpecError, match="write `schedule: null`"):
        load_pipeline(file)


def test_a_rename_names_the_schedules_that_wait_for_the_old_name(folder):
    write(folder, "gold", "{after: {any: [orders.lines, returns.lines]}}")
    write(folder, "silver", "{after: [returns.lines]}")
    said = call("rename", "orders", "rows", "--step", "lines").stdout
    assert "Look at the schedule of gold: it waits for orders.lines" in said
    assert "silver" not in said
    write(folder, "gold", "{after: [orders.rows]}")
    said = call("rename", "orders", "sales").stdout
    assert "Look at the schedule of gold: it waits for orders.rows" in said


def test_editors_are_told_the_fields():
    schema = Pipeline.model_json_schema()
    assert set(schema["$defs"]["After"]["properties"]) == {"after", "or_at"}
    assert schema["$defs"]["AnyOf"]["properties"]["any"]["items"]["pattern"]
