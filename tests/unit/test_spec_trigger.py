"""Triggers and trials, as far as a pipeline's file says them."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError
from sluice.backlog import measure_pipeline
from sluice.checkpoint import complete_epochs
from sluice.errors import SpecError
from sluice.spec import Pipeline, RunRequest, Step, check_trial, describe_limits
from sluice.storage import Paths

KAFKA = {
    "kind": "kafka",
    "servers": "a:1",
    "subscribe": "t",
    "format": "json",
    "schema": {"id": "string", "at": "timestamp"},
}
OUT = {"kind": "kafka", "servers": "a:1", "topic": "o"}
CONTINUOUS = {"name": "s", "source": KAFKA, "sink": OUT, "trigger": {"continuous": "1 second"}}
FILES = {"path": "in", "format": "json", "schema": {"id": "string"}}
APPEND = {"mode": "append"}


def pipeline(*steps: dict, **more: object) -> Pipeline:
    return Pipeline.model_validate(
        {
            "name": "p",
            "steps": [{"name": f"s{n}", "sink": APPEND, **step} for n, step in enumerate(steps)],
            **more,
        }
    )


@pytest.mark.parametrize(
    ("trigger", "lost"),
    [
        ("once", "one batch takes the whole backlog"),
        ("default", "until its budget is spent"),
        (
            {"processing_time": "10 seconds"},
            "processing_time every 10 seconds: the query does not end by itself",
        ),
        ({"continuous": "1 second"}, "no counts"),
    ],
)
def test_what_a_trigger_gives_up_is_said(trigger, lost):
    limit, *of_sink = describe_limits(Step.model_validate(CONTINUOUS | {"trigger": trigger}))
    assert ["may be sent to Kafka again" in told for told in of_sink] == (
        [] if lost == "no counts" else [True]
    )
    assert (
        limit.startswith("s: trigger ")
        and lost in limit
        and "`available_now` goes on from the same checkpoint" in limit
    )


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"source": FILES, "sink": OUT}, "not from files"),
        ({"source": {"kind": "rate-micro-batch"}}, "not from rate-micro-batch"),
        ({"sink": APPEND}, "the sink delta takes nothing else"),
        ({"sink": [OUT, OUT | {"topic": "p"}]}, "two sinks"),
        ({"event_time": {"column": "at"}}, "`event_time` could be looked at"),
        (
            {
                "rules": [
                    {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"}}
                ]
            },
            "`rules`",
        ),
        (
            {
                "event_time": {"column": "at"},
                "dedup": {"keys": ["id"], "within": "1 day", "memory": "state"},
            },
            "`dedup`",
        ),
        ({"source": KAFKA | {"unknown_fields": "fail"}}, "unknown_fields: fail"),
    ],
    ids=lambda value: "" if isinstance(value, dict) else value,
)
def test_continuous_is_refused_for_what_needs_batches(changed, why):
    with pytest.raises(
        ValidationError, match="trigger continuous does not fit this step: "
    ) as refused:
        Step.model_validate(CONTINUOUS | changed)
    assert why in str(refused.value)


def test_a_trigger_without_an_end_is_the_last_steps():
    with pytest.raises(
        ValidationError,
        match="step s0: trigger default takes all the time of a run, "
        "so no step after it would get any; make it the last step",
    ):
        pipeline({"source": FILES, "trigger": "default"}, {"source": FILES})
    assert (
        pipeline({"source": FILES}, {"source": FILES, "trigger": "default"}).steps[1].trigger
        == "default"
    )


@pytest.mark.parametrize(
    "sink",
    [{"mode": "append"}, OUT, {"kind": "files", "path": "o"}],
    ids=["delta", "kafka_append", "files"],
)
def test_a_sink_in_update_mode_has_no_sink_beside_it_that_adds_rows(sink):
    with pytest.raises(ValidationError, match="give it a step of its own"):
        Step.model_validate(
            {"name": "s", "source": FILES, "sink": [OUT | {"mode": "update"}, sink]}
        )
    assert (
        Step.model_validate(
            {"name": "s", "source": FILES, "sink": [OUT | {"mode": "update"}, {"kind": "console"}]}
        ).output_mode
        == "update"
    )
    assert Step.model_validate({"name": "s", "source": FILES, "sink": OUT}).output_mode == "append"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ({"kind": "rate"}, "knows no availableNow"),
        ({"kind": "rate-micro-batch"}, "no run is ever done"),
        ({"kind": "socket", "port": 1}, "cannot be read again after a crash"),
    ],
    ids=["rate", "rate_micro_batch", "socket"],
)
def test_a_trial_source_is_refused_in_a_schedule_and_in_a_run_that_is_no_trial(source, why):
    with pytest.raises(ValidationError, match=f"is for trials .*{why}.*sluice run --dev"):
        pipeline({"source": source}, schedule="@daily")
    with pytest.raises(SpecError, match=f"p.s0: source: .*{why}.*sluice run --dev"):
        check_trial(pipeline({"source": source}), trial=False)
    check_trial(pipeline({"source": source, "sink": OUT}), trial=True)


def test_a_trial_of_an_ordinary_source_stays_below_its_root():
    check_trial(
        pipeline(
            {
                "source": FILES,
                "sink": [
                    APPEND,
                    {"kind": "console"},
                    {"kind": "files", "path": "out"},
                    {"kind": "memory", "name": "m"},
                ],
            }
        ),
        trial=True,
    )
    for sink in (
        OUT,
        APPEND | {"table": "s3a://b/t"},
        APPEND | {"name": "a.b"},
        {"kind": "files", "path": "/out"},
        {"kind": "foreach_batch", "function": "f.py:f"},
    ):
        with pytest.raises(SpecError, match="lies outside the trial's own root"):
            check_trial(pipeline({"source": FILES, "sink": sink}), trial=True)
        check_trial(pipeline({"source": FILES, "sink": sink}), trial=False)


def test_a_run_is_a_trial_or_a_backfill():
    with pytest.raises(ValidationError, match="not two of them"):
        RunRequest(pipeline="p", dev_seconds=1, window={"start": "2026-01-01", "end": "2026-01-02"})
    assert Paths("/r", "p").trial("x").table("s") == "/r/dev/x/tables/p/s"


def test_a_step_that_waits_for_rows_runs_whatever_waits(tmp_path):
    (tmp_path / "in").mkdir()
    waiting = pipeline({"source": FILES | {"path": str(tmp_path / "in")}, "trigger": "default"})
    assert (
        measure_pipeline(waiting, Paths(str(tmp_path), "p"))[0].reason
        == "trigger default waits for rows until the time budget is spent"
    )


def test_the_newest_notes_of_continuous_mode_get_their_metadata_and_others_stay(tmp_path):
    complete_epochs(str(tmp_path / "nothing"))
    folder = tmp_path / "offsets"
    folder.mkdir()
    place, ready = '{"t":{"0":5}}', '{"batchWatermarkMs":7,"batchTimestampMs":1,"conf":{}}'
    for number, metadata in enumerate(["", "", ready, ""]):
        (folder / str(number)).write_text(f"v1\n{metadata}\n{place}")
        (folder / f".{number}.crc").write_text("sum")
    complete_epochs(str(tmp_path))
    notes = [(folder / str(number)).read_text().split("\n") for number in range(4)]
    assert [note[1] for note in notes[:3]] == ["", "", ready] and [note[2] for note in notes] == [
        place
    ] * 4
    assert json.loads(notes[3][1])["batchWatermarkMs"] == 0
    assert sorted(path.name for path in Path(folder).glob(".*")) == [".0.crc", ".1.crc", ".2.crc"]
