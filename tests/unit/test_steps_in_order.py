"""Which steps wait for which, and what happens to the others when one does not end well."""

from types import SimpleNamespace

import pytest
from sluice.errors import (
    ExitCode,
    LeaseLost,
    PreflightError,
    RuleStop,
    SourceError,
    TransientError,
)
from sluice.launch import spark_settings
from sluice.report.ending import Ending
from sluice.report.story import Story
from sluice.sources import Room
from sluice.spark.session import open_session
from sluice.spark.stages import Stages, look_at_stages
from sluice.spec import Pipeline, RunRequest
from sluice.spec.order import count_at_once, order_steps
from sluice.streaming import bounds
from sluice.streaming.together import run_steps

LANDED = {"path": "/landing", "format": "json", "schema": {"id": "string"}}
READS_A = {"kind": "table", "step": "a"}


def pipeline(*steps: dict, **fields: object) -> Pipeline:
    """A pipeline of steps a, b, c, ..."""
    named = [{"name": "abcdef"[n], "source": LANDED, **step} for n, step in enumerate(steps)]
    return Pipeline.model_validate({"name": "p", "steps": named, **fields})


def order(*steps: dict, **fields: object) -> dict[str, str]:
    """Step -> the names of those that it waits for."""
    made = pipeline(*steps, **fields)
    found = order_steps(made, made.paths("/root"))
    return {name: "".join(sorted(before)) for name, before in found.items()}


def test_steps_that_share_nothing_but_what_they_read_wait_for_nobody():
    assert order({}, {}, {}) == {"a": "", "b": "", "c": ""}


def test_a_step_waits_for_those_that_it_reads_and_for_those_that_they_wait_for():
    reads_b = {"kind": "table", "step": "b"}
    assert order({}, {"source": READS_A}, {"source": reads_b}, {}) == {
        "a": "",
        "b": "a",
        "c": "ab",
        "d": "",
    }


def test_a_static_input_is_waited_for_as_a_stream_is():
    static = {"now": {"source": LANDED}, "known": {"source": READS_A, "static": True}}
    reader = {"source": None, "inputs": static, "transform": "t.sql"}
    assert order({}, reader)["b"] == "a"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"sink": {"table": "shared"}}, {"sink": {"table": "shared"}}),
        ({"sink": {"name": "main.shared"}}, {"sink": {"name": "main.shared"}}),
        ({"sink": {"kind": "files", "path": "out"}}, {"sink": {"kind": "files", "path": "./out"}}),
        ({"sink": {"kind": "console"}}, {"sink": {"kind": "console"}}),
        ({"sink": {"kind": "memory", "name": "v"}}, {"sink": {"kind": "memory", "name": "v"}}),
        ({"sink": {"table": "t"}}, {"source": {"kind": "table", "path": "t"}}),
        ({"sink": {"table": "/x/t"}}, {"source": {"kind": "table", "path": "/x/t"}}),
        ({"sink": {"name": "main.t"}}, {"source": {"kind": "table", "name": "main.t"}}),
        ({"source": {"kind": "table", "path": "t"}}, {"sink": {"table": "t"}}),
        (
            {"sink": {"kind": "files", "path": "/x/out/new"}},
            {"source": {**LANDED, "path": "/x/out"}},
        ),
        ({"sink": {"kind": "files", "path": "/x/o/1"}}, {"source": {**LANDED, "path": "/x/*/1"}}),
    ],
    ids=lambda step: str(next(iter(step.values()))),
)
def test_steps_that_touch_one_place_keep_the_order_of_the_file(first, second):
    assert order(first, second)["b"] == "a"
    assert order({}, second)["b"] == ""


def kafka(**fields: object) -> dict:
    return {"kind": "kafka", "servers": "b:9092", **fields}


def test_a_topic_that_is_written_is_read_afterwards():
    written = {"sink": kafka(topic="orders")}
    of_values = {"format": "text", "schema": {"value": "string"}}
    reads = {
        name: {"source": kafka(**chosen, **of_values)}
        for name, chosen in {
            "it": {"subscribe": "orders"},
            "other": {"subscribe": "orders_eu"},
            "pattern": {"subscribe_pattern": "ord.*"},
        }.items()
    }
    assert order(written, reads["it"], reads["other"], reads["pattern"]) == {
        "a": "",
        "b": "a",
        "c": "",
        "d": "a",
    }


def test_a_folder_whose_name_only_begins_like_another_is_another():
    assert order({"sink": {"table": "/x/t"}}, {"sink": {"table": "/x/t2"}})["b"] == ""


@pytest.mark.parametrize("told", ["main.orders", "p/a"])
def test_a_transform_that_names_a_table_of_an_earlier_step_waits_for_it(tmp_path, told):
    (tmp_path / "t.sql").write_text(f"-- p/a\nSELECT * FROM source JOIN x.`{told}` USING (id)")
    (tmp_path / "u.sql").write_text("-- p/a main.orders\nSELECT * FROM source")
    named = {"sink": {"name": "main.orders"}}
    found = order(named, {"transform": "t.sql"}, {"transform": "u.sql"}, folder=tmp_path)
    assert found == {"a": "", "b": "a", "c": ""}


def test_a_continuous_step_waits_for_all():
    endless = {
        "source": {"kind": "rate"},
        "sink": {"kind": "console"},
        "trigger": {"continuous": "1 second"},
    }
    assert order({}, {}, endless) == {"a": "", "b": "", "c": "ab"}


@pytest.mark.parametrize(
    ("steps", "fields", "most"),
    [
        (({}, {}, {}), {}, 2),
        (({}, {}, {}), {"parallel_steps": 8}, 3),
        (({}, {}, {}), {"parallel_steps": 1}, 1),
        (({}, {"source": READS_A}), {"parallel_steps": 8}, 1),
        (({}, {"source": READS_A}, {"source": READS_A}), {"parallel_steps": 8}, 2),
    ],
)
def test_at_most_as_many_run_at_once_as_do_not_wait_for_each_other(steps, fields, most):
    made = pipeline(*steps, **fields)
    assert count_at_once(made, order_steps(made, made.paths("/root"))) == most
    fair = spark_settings(made, 0).get("spark.scheduler.mode")
    assert fair == ("FAIR" if most > 1 else None)


def run(made: Pipeline, ends: dict[str, object]) -> tuple[list[str], object]:
    """The steps that were begun, and how all ended. Args: ends: what a step raises or says."""
    begun = []

    def work(_: object, step: object) -> bool:
        begun.append(step.name)
        end = ends.get(step.name, True)
        if isinstance(end, BaseException):
            raise end
        return end

    order = order_steps(made, made.paths("/root"))
    return begun, run_steps(SimpleNamespace(pipeline=made, at_once=1), order, work)


CHAIN = pipeline({}, {"source": READS_A}, {}, {"source": {"kind": "table", "step": "c"}})


def test_one_at_a_time_they_run_in_the_order_of_the_file():
    begun, ended = run(CHAIN, {})
    assert (begun, ended.failures, ended.unfinished) == (["a", "b", "c", "d"], {}, False)


def test_a_step_that_fails_holds_back_those_that_wait_for_it_and_no_others():
    begun, ended = run(CHAIN, {"a": SourceError("gone", where="p.a")})
    assert begun == ["a", "c", "d"]
    end = Ending.of_steps(ended.failures, order_steps(CHAIN, CHAIN.paths("/root")))
    assert (end.status, end.exit_code) == ("failed", ExitCode.TERMINAL)
    assert end.error == "step a: p.a: gone.\nNot started, because they wait for it: b."


def test_the_worst_of_several_failures_decides_whether_to_try_again():
    stop, passing, bug = RuleStop("10 rows"), TransientError("away"), KeyError("x")
    before = order_steps(CHAIN, CHAIN.paths("/root"))
    end = Ending.of_steps({"c": stop, "a": stop}, before)
    assert (end.status, end.exit_code) == ("stopped by a rule", ExitCode.STOPPED_BY_RULE)
    end = Ending.of_steps({"c": stop, "a": passing}, before)
    assert (end.status, end.exit_code) == ("failed", ExitCode.TRANSIENT)
    assert end.error.startswith("step a: away.\nstep c: 10 rows.\n")
    end = Ending.of_steps({"c": SourceError("gone"), "a": bug}, before)
    assert end.exit_code is ExitCode.TERMINAL and "unexpected KeyError" in end.error


def test_a_step_alone_in_its_file_is_not_named():
    end = Ending.of_steps({"a": SourceError("gone")}, order_steps(pipeline({}), CHAIN.paths("/")))
    assert end.error == "gone."


def test_when_the_time_is_over_no_step_starts_any_more():
    begun, ended = run(CHAIN, {"a": False})
    assert (begun, ended.failures, ended.unfinished) == (["a"], {}, True)


def test_when_the_lease_is_lost_no_step_starts_any_more():
    with pytest.raises(LeaseLost):
        run(CHAIN, {"a": LeaseLost("taken over")})


def test_a_report_tells_of_steps_in_the_order_of_the_file():
    story = Story(RunRequest(pipeline="p.yaml", root="/root"))
    story.begin(CHAIN)
    for name in "dac":
        story.add(SimpleNamespace(step=name))
    assert [tally.step for tally in story.tallies] == ["a", "c", "d"]


@pytest.mark.parametrize(("at_once", "share"), [(1, 1.0), (2, 0.5)])
def test_steps_at_once_share_the_memory(monkeypatch, at_once, share):
    asked, size = [], lambda _: 1000
    monkeypatch.setattr(bounds, "fit_to_executors", lambda *_: None)
    monkeypatch.setattr(bounds, "storage_memory", size)
    monkeypatch.setattr(bounds, "driver_memory", lambda _: 10 * bounds._A_FILE)
    monkeypatch.setattr(bounds, "free_bytes", lambda _: None)
    monkeypatch.setattr(bounds, "take_back_plan", lambda *_: None)
    monkeypatch.setattr(bounds, "_may_be_cut", lambda *_: True)
    monkeypatch.setattr(bounds, "_open", lambda *_: (None, []))
    run = SimpleNamespace(spark=None, pipeline=CHAIN, at_once=at_once)
    bounds.open_bounded(run, CHAIN.steps[0], SimpleNamespace(cut=asked.append))
    assert asked == [Room(int(share * 1000 * bounds.SHARE), int(share * 10))]


class Running(list):
    """A session in which these stages run, as Spark's store tells of them."""

    sparkContext = _jsc = property(lambda self: self)  # noqa: N815 (Spark's names)
    sc = statusStore = activeStages = lambda self: self  # noqa: N815

    def iterator(self) -> SimpleNamespace:
        left = list(self)
        return SimpleNamespace(hasNext=lambda: bool(left), next=lambda: left.pop(0))


def stage(pool: str, records: int) -> SimpleNamespace:
    told = {"schedulingPool": pool, "numCompleteTasks": 1, "numTasks": 2}
    told |= {"inputBytes": 10 * records, "inputRecords": records}
    return SimpleNamespace(**{name: (lambda value=value: value) for name, value in told.items()})


def test_how_far_a_step_is_is_told_by_the_stages_of_its_own_pool():
    spark = Running([stage("a", 3), stage("b", 40), stage("a", 500)])
    assert look_at_stages(spark, "a") == Stages(2, 4, 5030, 503)
    assert look_at_stages(spark).records == 543


def test_a_run_whose_threads_would_share_their_properties_is_refused(monkeypatch):
    monkeypatch.setenv("PYSPARK_PIN_THREAD", "false")
    with pytest.raises(PreflightError, match="PYSPARK_PIN_THREAD"), open_session({}):
        pass
