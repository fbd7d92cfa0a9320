"""Pipelines run by a real scheduler with real Spark.

What a person gets who triggers, waits, looks and backfills.
"""

import hashlib
import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from sluice.report.store import list_reports, read_report

from tests.airflow_service import AirflowService, land_visits, list_visits, write_pipeline


def read_rows(table: str) -> Counter:
    """The rows of a Delta table, (id, at, page, seconds), read from its log without Spark."""
    live: dict[str, None] = {}
    for commit in sorted(Path(table, "_delta_log").glob("*.json")):
        for action in map(json.loads, commit.read_text().splitlines()):
            if "add" in action:
                live[action["add"]["path"]] = None
            if "remove" in action:
                live.pop(action["remove"]["path"], None)
    columns = ["id", "at", "page", "seconds"]
    files = (pq.read_table(Path(table, path), columns=columns, partitioning=None) for path in live)
    return Counter(tuple(row.values()) for file in files for row in file.to_pylist())


def digest(folder: str) -> dict[str, str]:
    """SHA-256 of every file below a folder."""
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(Path(folder).rglob("*"))
        if p.is_file()
    }


@pytest.fixture(scope="module")
def visits(airflow_service: AirflowService) -> AirflowService:
    """The pipeline `visits` after one run over one day: 20 rows, two of them negative."""
    landing = airflow_service.add_pipeline("visits")
    land_visits(landing, 0, range(18))
    land_visits(landing, 1, range(18, 20), seconds=-1)
    assert airflow_service.run("visits", "first") == "success"
    return airflow_service


def test_new_files_are_run_judged_and_announced(visits):
    assert visits.client.task_states("visits", "first") == {
        "probe": "success",
        "run": "success",
        "gate": "success",
    }
    report = read_report(visits.paths("visits").reports(), "first")
    line = "20 read = 18 written + 2 quarantined + 0 duplicate + 0 late + 0 filtered"
    assert report.counts.line == line
    assert sum(read_rows(visits.paths("visits").table("visits")).values()) == 18
    event = visits.client.call("GET", "/assets/events?source_dag_id=visits")["asset_events"][0]
    assert event["name"] == "sluice.visits.visits"
    assert event["extra"]["counts"]["written"] == 18
    assert event["extra"]["run_id"] == "first"


def test_a_pipeline_added_while_airflow_runs_gets_its_pool(visits):
    assert visits.client.call("GET", "/pools/sluice_visits")["slots"] == 1


def test_when_nothing_is_new_spark_does_not_start(visits):
    assert visits.run("visits", "idle") == "success"
    assert visits.client.task_states("visits", "idle") == {
        "probe": "success",
        "run": "skipped",
        "gate": "skipped",
    }
    assert [report.run_id for report in list_reports(visits.paths("visits").reports())] == ["first"]
    assert "No Spark was started: that saved about" in visits.client.task_log(
        "visits", "idle", "probe"
    )
    assert visits.client.call("GET", "/assets/events?source_dag_id=visits")["total_entries"] == 1


def test_a_stop_rule_fails_the_gate_by_name_and_nothing_is_written_or_announced(airflow_service):
    land_visits(airflow_service.add_pipeline("strict", on_fail="stop"), 0, range(5), seconds=-1)
    assert airflow_service.run("strict", "first") == "failed"
    assert airflow_service.client.task_states("strict", "first") == {
        "probe": "success",
        "run": "success",
        "gate": "failed",
    }
    assert "`seconds_not_negative` failed" in airflow_service.client.task_log(
        "strict", "first", "gate"
    )
    assert read_rows(airflow_service.paths("strict").table("visits")) == Counter()
    assert (
        airflow_service.client.call("GET", "/assets/events?source_dag_id=strict")["total_entries"]
        == 0
    )


def test_a_sink_that_is_out_keeps_nobody_from_the_table_and_gets_its_rows_once_it_is_mended(
    airflow_service,
):
    landing = write_pipeline(airflow_service.folder, "fed")
    land_visits(landing, 0, range(5))
    place = airflow_service.folder / "fed"
    place.write_text("a file where the sink's folder belongs")
    with (airflow_service.folder / "pipelines" / "fed.yaml").open("a") as file:
        file.write(f"    sink: [{{kind: delta}}, {{kind: files, format: json, path: {place}}}]\n")
    airflow_service.wait_for_dags("fed", "fed_backfill")
    client = airflow_service.client
    assert airflow_service.run("fed", "first") == "failed"
    states = {"probe": "success", "run": "success", "gate": "success", "deliver": "failed"}
    assert client.task_states("fed", "first") == states
    events = client.call("GET", "/assets/events?source_dag_id=fed")["asset_events"]
    assert [event["extra"]["counts"]["written"] for event in events] == [5]
    assert f"files {place} lacks 5 rows of 1 batch" in client.task_log("fed", "first", "deliver")
    place.unlink()
    again = {"dry_run": False, "dag_run_id": "first", "task_ids": ["deliver"]}
    client.call("POST", "/dags/fed/clearTaskInstances", again | {"only_failed": False})
    assert client.wait("fed", "first") == "success"
    lines = [line for file in place.rglob("*.json") for line in file.read_text().splitlines()]
    assert sorted(json.loads(line)["id"] for line in lines) == list(range(5))


def test_a_pipeline_is_verified_by_a_dag_of_its_own_which_fails_where_a_row_is_gone(
    airflow_service,
):
    landing = write_pipeline(airflow_service.folder, "proven")
    file = airflow_service.folder / "pipelines" / "proven.yaml"
    file.write_text("verify: '0 0 29 2 *'\n" + file.read_text())
    land_visits(landing, 0, range(18))
    airflow_service.wait_for_dags("proven", "proven_verify")
    assert airflow_service.run("proven", "first") == "success"
    assert airflow_service.run("proven_verify", "first") == "success"
    paths = airflow_service.paths("proven")
    (step,) = read_report(paths.verdicts(), "first").steps
    assert [(one.table, one.rows, one.equal) for one in step.verified] == [
        ("target", 18, True),
        ("quarantine", 0, True),
    ]
    DeltaTable(paths.table("visits")).delete("id = 7")
    assert airflow_service.run("proven_verify", "second") == "failed"
    log = airflow_service.client.task_log("proven_verify", "second", "verify")
    assert "1 are missing, and 0 are too many" in log


def test_airflow_has_no_import_error(visits):
    assert visits.client.call("GET", "/importErrors")["import_errors"] == []
    assert "No data found" in visits.airflow("dags", "list-import-errors")


@pytest.mark.timeout(1200)  # four starts of Spark
def test_a_repeated_backfill_closes_a_gap_and_leaves_the_schedule_alone(airflow_service):
    landing = airflow_service.add_pipeline("gapped")
    for day in (0, 3):
        land_visits(landing, day, range(day * 10, day * 10 + 10))
    assert airflow_service.run("gapped", "first") == "success"
    for day in (1, 2):
        land_visits(landing, day, range(day * 10, day * 10 + 10))
    checkpoint = airflow_service.paths("gapped").checkpoint("visits")
    before = digest(checkpoint)
    assert before

    for behavior, last in (("none", "2026-01-03"), ("completed", "2026-01-02")):
        run_backfill(airflow_service, "gapped_backfill", "2026-01-02", last, behavior, runs=2)
        table = airflow_service.paths("gapped").table("visits")
        assert read_rows(table) == Counter(list_visits(landing))
        assert digest(checkpoint) == before


def run_backfill(
    service: AirflowService, dag_id: str, start: str, end: str, behavior: str, runs: int
) -> None:
    """Backfill a range with Airflow's own command.

    Waits until every run succeeded and Airflow holds the backfill for finished.
    """
    service.airflow(
        "backfill",
        "create",
        "--dag-id",
        dag_id,
        "--from-date",
        start,
        "--to-date",
        end,
        "--max-active-runs",
        "1",
        "--reprocess-behavior",
        behavior,
    )
    found = service.client.call("GET", f"/dags/{dag_id}/dagRuns")["dag_runs"]
    assert len(found) == runs
    assert {service.client.wait(dag_id, run["dag_run_id"]) for run in found} == {"success"}
    service.wait_until(
        lambda: all(
            b["completed_at"]
            for b in service.client.call("GET", f"/backfills?dag_id={dag_id}")["backfills"]
        )
    )
