"""Gold wakes when silver has written: a real scheduler, the gates' own events, real Spark."""

from pathlib import Path

import pytest
from sluice.report.store import list_reports

from tests.airflow_service import AirflowService, land_visits, write_pipeline
from tests.e2e.test_airflow_scheduler import read_rows

GOLD = """
name: {name}
schedule: {schedule}
start_date: 2026-01-01
budget: 5 minutes
max_batch_failures: 0
steps:
  - name: seen
    source: {{kind: table, path: {table}}}
    sink: {{mode: append}}
"""


def add_gold(service: AirflowService, name: str, schedule: str, table: str) -> None:
    """Write a pipeline that copies a table of another one, and wait for its DAGs."""
    file = service.folder / "pipelines" / f"{name}.yaml"
    file.write_text(GOLD.format(name=name, schedule=schedule, table=table))
    service.wait_for_dags(name, f"{name}_backfill")


def list_runs(service: AirflowService, name: str) -> list[dict]:
    """The runs of a DAG, oldest first."""
    return service.client.call("GET", f"/dags/{name}/dagRuns?order_by=run_after")["dag_runs"]


def await_run(service: AirflowService, name: str, number: int) -> dict[str, str]:
    """Wait until the run of this number has been created and has ended; the states of its tasks."""
    service.wait_until(lambda: len(list_runs(service, name)) >= number)
    run = list_runs(service, name)[number - 1]
    assert run["run_type"] == "asset_triggered"
    assert service.client.wait(name, run["dag_run_id"]) == "success"
    return service.client.task_states(name, run["dag_run_id"])


def count_rows(service: AirflowService, name: str) -> int:
    """Rows in a gold table; 0 where there is none."""
    table = service.paths(name).table("seen")
    return sum(read_rows(table).values()) if Path(table).exists() else 0


@pytest.mark.timeout(1200)  # four starts of Spark
def test_gold_wakes_when_silver_has_written(airflow_service):
    """`all` waits for both, `any` for one; what an event brought is told by the probe."""
    service = airflow_service
    east, west = service.add_pipeline("east"), service.add_pipeline("west")
    table = service.paths("east").table("visits")
    add_gold(service, "gold_all", "{after: [east.visits, west.visits]}", table)
    add_gold(service, "gold_any", "{after: {any: [east.visits, west.visits]}}", table)
    ran = dict.fromkeys(("probe", "run", "gate"), "success")
    skipped = {"probe": "success", "run": "skipped", "gate": "skipped"}

    land_visits(east, 0, range(20))
    assert service.run("east", "first") == "success"
    assert await_run(service, "gold_any", 1) == ran
    assert count_rows(service, "gold_any") == 20
    assert list_runs(service, "gold_all") == []

    land_visits(west, 0, range(5))
    assert service.run("west", "first") == "success"
    assert await_run(service, "gold_all", 1) == ran
    assert count_rows(service, "gold_all") == 20
    assert await_run(service, "gold_any", 2) == skipped  # it reads nothing of west
    assert len(list_reports(service.paths("gold_any").reports())) == 1

    assert service.run("east", "idle") == "success"  # nothing is new, so there is no event
    assert [len(list_runs(service, name)) for name in ("gold_any", "gold_all")] == [2, 1]


def test_a_clock_starts_runs_as_well_and_any_event_of_that_asset_wakes_it(airflow_service):
    service = airflow_service
    write_pipeline(service.folder, "north")
    file = service.folder / "pipelines" / "north.yaml"
    schedule = "schedule: {after: [elsewhere.visits], or_at: 10 seconds}"
    file.write_text(file.read_text().replace("schedule: null", schedule))
    service.wait_for_dags("north", "north_backfill")
    service.wait_until(lambda: len(list_runs(service, "north")) >= 2)
    runs = list_runs(service, "north")
    assert {run["run_type"] for run in runs} == {"scheduled"}
    assert all(run["data_interval_start"] < run["data_interval_end"] for run in runs)
    assets = service.client.call("GET", "/assets?name_pattern=sluice.elsewhere.visits")["assets"]
    service.client.call("POST", "/assets/events", {"asset_id": assets[0]["id"]})
    woken = {"asset_triggered", "scheduled"}
    service.wait_until(lambda: {run["run_type"] for run in list_runs(service, "north")} == woken)
    number = len(list_runs(service, "north"))
    service.wait_until(lambda: len(list_runs(service, "north")) > number)  # the clock goes on
    service.client.call("PATCH", "/dags/north", {"is_paused": True})
