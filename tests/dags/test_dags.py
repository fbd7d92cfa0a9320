"""What every pipeline's DAGs look like to Airflow."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import TimeRestriction
from sluice.orchestration.dag import MARGIN, load_dags
from sluice.spec import find_pipelines
from sluice.storage import PIPELINES, PROJECT

from tests.airflow_service import write_pipeline

SHIPPED = [path.stem for path in find_pipelines(PIPELINES)]


def bag() -> DagBag:
    """The project's DAG files over the pipelines of the test, parsed as Airflow parses them."""
    return DagBag(str(PROJECT / "dags"))


def load(pipelines, name, **changes):
    """The DAGs of one pipeline whose YAML has some lines replaced."""
    write_pipeline(pipelines, name)
    file = pipelines / "pipelines" / f"{name}.yaml"
    text = file.read_text()
    for field, value in changes.items():
        text = "\n".join(
            f"{field}: {value}" if line.startswith(f"{field}:") else line
            for line in text.splitlines()
        )
    file.write_text(text)
    return load_dags()


@pytest.mark.skipif(not SHIPPED, reason="the project ships no pipeline")
def test_every_shipped_pipeline_has_its_two_dags_and_no_import_error(monkeypatch):
    monkeypatch.delenv("SLUICE_PIPELINES", raising=False)
    found = bag()
    assert found.import_errors == {}
    assert set(found.dags) == {dag_id for name in SHIPPED for dag_id in (name, f"{name}_backfill")}


def test_a_dag_says_what_it_is_and_whose(pipelines):
    write_pipeline(pipelines, "visits")
    dags = bag().dags
    assert dags["visits"].doc_md == "**visits** counts visits."
    assert dags["visits"].tags == {"sluice"}
    assert dags["visits_backfill"].tags == {"sluice", "backfill"}
    assert dags["visits_backfill"].doc_md.endswith("**visits** counts visits.")
    assert {task.owner for dag in dags.values() for task in dag.tasks} == {"test-team"}
    assert all(task.doc_md for dag in dags.values() for task in dag.tasks)


def test_a_run_is_probed_then_run_then_judged(pipelines):
    write_pipeline(pipelines, "visits")
    dags = bag().dags
    assert [(t.task_id, t.downstream_task_ids) for t in dags["visits"].topological_sort()] == [
        ("probe", {"run"}),
        ("run", {"gate"}),
        ("gate", set()),
    ]
    assert [
        (t.task_id, t.downstream_task_ids) for t in dags["visits_backfill"].topological_sort()
    ] == [("run", {"gate"}), ("gate", set())]


def add_verify(pipelines, when="@weekly"):
    """`verify:` in the file of `visits`."""
    write_pipeline(pipelines, "visits")
    file = pipelines / "pipelines" / "visits.yaml"
    file.write_text(f"verify: '{when}'\n" + file.read_text())


def test_a_pipeline_that_says_when_is_verified_by_a_dag_of_its_own(pipelines):
    add_verify(pipelines)
    dags = bag().dags
    assert set(dags) == {"visits", "visits_backfill", "visits_verify"}
    dag = dags["visits_verify"]
    (task,) = dag.tasks
    assert (dag.tags, dag.timetable.summary) == ({"sluice", "verify"}, "0 0 * * 0")
    assert (task.task_id, task.downstream_task_ids, task.outlets) == ("verify", set(), [])
    assert (task.pool, task.retries) == ("sluice_visits", dags["visits"].get_task("run").retries)
    assert task.doc_md and task.execution_timeout and dag.doc_md.startswith("Reads what `visits`")
    found, _ = load_dags(only="visits_verify")
    assert "visits_verify" in found


@pytest.mark.parametrize(
    ("when", "message"),
    [
        ("@often", "verify: no preset of Airflow's"),
        ("0 0 31 2 *", "verify: a cron expression whose day never comes"),
        ("@once", "@once says no time"),
    ],
)
def test_a_time_to_verify_that_never_comes_is_an_import_error(pipelines, when, message):
    add_verify(pipelines, when)
    _, errors = load_dags()
    assert len(errors) == 1 and message in str(errors[0])


def test_where_sinks_follow_the_table_a_task_of_their_own_sees_to_them(pipelines):
    write_pipeline(pipelines, "visits")
    file = pipelines / "pipelines" / "visits.yaml"
    spec = yaml.safe_load(file.read_text())
    spec["steps"][0]["sink"] = [{"kind": "delta"}, {"kind": "files", "path": "out"}]
    file.write_text(yaml.safe_dump(spec))
    for dag in bag().dags.values():
        run, deliver = dag.get_task("run"), dag.get_task("deliver")
        assert run.downstream_task_ids == {"gate", "deliver"}
        assert deliver.downstream_task_ids == set() and deliver.outlets == []
        assert (deliver.pool, deliver.retries) == (run.pool, run.retries)


def test_the_schedule_and_the_backfill_take_turns_at_the_checkpoint(pipelines):
    write_pipeline(pipelines, "visits")
    dags = bag().dags
    for dag in dags.values():
        run = dag.get_task("run")
        assert (run.pool, run.pool_slots, run.max_active_tis_per_dag) == ("sluice_visits", 1, 1)
        assert dag.max_active_runs == 1
        assert dag.catchup is False
    assert {t.pool for dag in dags.values() for t in dag.tasks if t.task_id != "run"} == {
        "default_pool"
    }


def test_every_task_has_a_timeout_and_spark_gets_its_budget(pipelines):
    write_pipeline(pipelines, "visits")
    for dag in bag().dags.values():
        assert all(task.execution_timeout for task in dag.tasks)
        assert dag.get_task("run").execution_timeout == timedelta(minutes=5) + MARGIN


def test_the_gate_and_only_the_gate_names_the_assets(pipelines):
    write_pipeline(pipelines, "visits")
    for dag in bag().dags.values():
        assert {
            task.task_id: [asset.name for asset in task.outlets]
            for task in dag.tasks
            if task.outlets
        } == {"gate": ["sluice.visits.visits"]}


def test_retries_come_from_the_pipeline(pipelines):
    dags, _ = load(pipelines, "visits", max_batch_failures=2)
    assert dags["visits"].get_task("run").retries == 2


@pytest.mark.parametrize(
    ("schedule", "kind", "summary"),
    [
        ("'0 6 * * *'", "CronDataIntervalTimetable", "0 6 * * *"),
        ("'@hourly'", "CronDataIntervalTimetable", "0 * * * *"),
        ("30 minutes", "DeltaDataIntervalTimetable", "0:30:00"),
    ],
)
def test_a_schedule_gives_runs_with_an_interval(pipelines, schedule, kind, summary):
    dags, errors = load(pipelines, "visits", schedule=schedule)
    assert errors == []
    assert type(dags["visits"].timetable).__name__ == kind
    serialized = DagSerialization.from_dict(DagSerialization.to_dict(dags["visits"]))
    assert serialized.timetable.summary == summary
    info = next(
        iter(
            serialized.iter_dagrun_infos_between(
                datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 4, tzinfo=UTC)
            )
        )
    )
    assert info.data_interval.start < info.data_interval.end


@pytest.mark.parametrize(
    ("schedule", "length"),
    [
        ("'0 6 * * *'", timedelta(days=1)),
        ("6 hours", timedelta(hours=6)),
        ("null", timedelta(days=1)),
        ("'@once'", timedelta(days=1)),
    ],
)
def test_a_backfill_dag_has_intervals_and_never_starts_by_itself(pipelines, schedule, length):
    dags, _ = load(pipelines, "visits", schedule=schedule)
    dag = DagSerialization.from_dict(DagSerialization.to_dict(dags["visits_backfill"]))
    infos = list(
        dag.iter_dagrun_infos_between(
            datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 4, tzinfo=UTC)
        )
    )
    assert {
        (info.data_interval.end - info.data_interval.start).total_seconds() for info in infos
    } == {length.total_seconds()}
    assert dag.timetable.periodic
    assert (
        dag.timetable.next_dagrun_info(
            last_automated_data_interval=None,
            restriction=TimeRestriction(dag.start_date, None, catchup=False),
        )
        is None
    )
    assert sorted(dag.allowed_run_types) == ["backfill", "manual"]


def test_a_scheduled_dag_refuses_backfills(pipelines):
    write_pipeline(pipelines, "visits")
    dag = DagSerialization.from_dict(DagSerialization.to_dict(bag().dags["visits"]))
    assert "backfill" not in dag.allowed_run_types
    assert "scheduled" in dag.allowed_run_types


def test_a_dag_survives_serialisation_and_is_the_same_every_time(pipelines):
    write_pipeline(pipelines, "visits")
    first, second = (
        {name: DagSerialization.to_dict(dag) for name, dag in bag().dags.items()} for _ in range(2)
    )
    assert json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    for data in first.values():
        back = DagSerialization.from_dict(data)
        assert {task.task_id for task in back.tasks} >= {"run", "gate"}
        assert str(pipelines) not in json.dumps(data["dag"]["tasks"]), (
            "a path of this machine in a task makes a new DAG version on the next"
        )


def test_dag_files_hold_nothing_that_varies_from_parse_to_parse():
    from airflow.utils.dag_version_inflation_checker import check_dag_file_stability

    files = [*(PROJECT / "dags").glob("*.py"), PROJECT / "include/sluice/orchestration/dag.py"]
    assert {file.name: check_dag_file_stability(file).warnings for file in files} == {
        file.name: {} for file in files
    }


def test_a_broken_pipeline_hides_no_other_and_is_an_import_error_that_names_the_field(pipelines):
    write_pipeline(pipelines, "visits")
    write_pipeline(pipelines, "clicks")
    file = pipelines / "pipelines" / "clicks.yaml"
    file.write_text(file.read_text().replace("2 days", "2 parsecs"))
    found = bag()
    assert set(found.dags) == {"visits", "visits_backfill"}
    ((path, error),) = found.import_errors.items()
    assert path.endswith("broken_pipelines.py")
    assert "clicks.yaml" in error
    assert "steps.0.dedup.within" in error
    assert "2 parsecs" in error


@pytest.mark.parametrize("schedule", ["'61 * * * *'", "'* * * * * * * *'", "'@sometimes'"])
def test_a_schedule_airflow_does_not_understand_names_the_field(pipelines, schedule):
    dags, errors = load(pipelines, "visits", schedule=schedule)
    assert dags == {}
    assert "visits.yaml: schedule" in str(errors[0])


def test_two_files_with_one_name_are_an_error_and_the_first_keeps_running(pipelines):
    write_pipeline(pipelines, "visits")
    copy = pipelines / "pipelines" / "zz.yaml"
    copy.write_text((pipelines / "pipelines" / "visits.yaml").read_text())
    dags, errors = load_dags()
    assert set(dags) == {"visits", "visits_backfill"}
    assert "zz.yaml: name" in str(errors[0])


def test_a_task_process_builds_only_its_own_pipeline(pipelines, monkeypatch):
    for name in ("visits", "clicks"):
        write_pipeline(pipelines, name)
    assert set(load_dags(only="clicks_backfill")[0]) == {"clicks", "clicks_backfill"}
    (pipelines / "pipelines" / "clicks.yaml").rename(pipelines / "pipelines" / "renamed.yaml")
    assert "clicks" in load_dags(only="clicks")[0]


def test_fifty_pipelines_parse_within_a_second_without_spark_or_great_expectations(
    pipelines, run_python
):
    for number in range(50):
        write_pipeline(pipelines, f"p{number:02}")
    shown = run_python("""
import airflow.sdk, json, runpy, sys, time
started = time.process_time()
dags = runpy.run_path("dags/pipelines.py")
seconds = time.process_time() - started
count = sum(type(v).__name__ == "DAG" for v in dags.values())
imported = {"pyspark", "great_expectations", "pandas", "fastapi"} & set(sys.modules)
print(json.dumps([count, seconds, sorted(imported)]))
""")
    count, seconds, imported = json.loads(shown)
    assert count == 100
    assert imported == []
    assert seconds < 2, (
        f"{seconds} s of CPU: far beyond the second it should take on an idle machine"
    )
