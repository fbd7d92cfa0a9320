"""Airflow's supervisor of a task is killed at random moments of a run.

The driver stops by itself, and later runs lose and double nothing.

`SLUICE_SUPERVISOR_KILLS` says how many are killed.
"""

import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from sluice.report import Counts, list_reports

from tests.airflow_service import AirflowService, land_visits, list_visits
from tests.e2e.test_airflow_scheduler import read_rows

KILLS = int(os.environ.get("SLUICE_SUPERVISOR_KILLS", "1"))
SEED = int(os.environ.get("SLUICE_CRASH_SEED", "20260101"))
VISITS = 40
"""Rows of a file."""


def land_day(landing: Path, day: int) -> None:
    """Land a day's visits, and those of the day before once more."""
    land_visits(landing, day, range(day * VISITS, (day + 1) * VISITS))
    if day:
        yesterday = sorted(landing.glob("*-[0-9][0-9].json"))[-2]
        shutil.copy(yesterday, landing / f"{yesterday.stem}-again.json")


def find_driver(run_id: str) -> tuple[psutil.Process, dict] | None:
    """The driver of a run, and what it was asked."""
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if "--request" in command[:-1] and "java" not in command[0]:
            request = json.loads(command[command.index("--request") + 1])
            if request["run_id"] == run_id:
                return process, request
    return None


def await_driver(service: AirflowService, run_id: str) -> tuple[psutil.Process, dict]:
    """Wait until Airflow has started the driver."""
    deadline = time.monotonic() + 120
    while (found := find_driver(run_id)) is None:
        assert time.monotonic() < deadline, service.client.task_states("orphaned", run_id)
        time.sleep(0.1)
    return found


@pytest.mark.timeout(86400)
def test_runs_whose_supervisor_is_killed_stop_by_themselves_and_nothing_is_lost_or_doubled(
    airflow_service,
):
    rng, landing, moments = random.Random(SEED), airflow_service.add_pipeline("orphaned"), []
    for number in range(KILLS):
        land_day(landing, number)
        airflow_service.client.trigger("orphaned", f"killed-{number}")
        driver, request = await_driver(airflow_service, f"killed-{number}")
        moments.append(rng.uniform(0.0, 15.0))
        psutil.wait_procs([driver], moments[-1])  # the moment is what is drawn
        family = [driver, *driver.children(recursive=True)] if driver.is_running() else []
        supervisor = request["parents"][1][0]
        os.kill(supervisor, signal.SIGKILL)
        assert psutil.wait_procs(family, 60)[1] == []
        airflow_service.client.wait("orphaned", f"killed-{number}", timeout=180)
    land_day(landing, KILLS)
    assert airflow_service.run("orphaned", "last") == "success"
    reports = list_reports(airflow_service.paths("orphaned").reports())
    counts = sum((report.counts for report in reports), Counts())
    print(
        f"\n{KILLS} supervisors killed, seed {SEED}, "
        f"after {[round(moment, 1) for moment in moments]} s: {counts.line}"
    )
    assert all(report.counts.balanced for report in reports)
    rows = (KILLS + 1) * VISITS
    assert counts == Counts(
        read=rows + KILLS * VISITS,
        entered=rows + KILLS * VISITS,
        made=rows + KILLS * VISITS,
        written=rows,
        duplicate=KILLS * VISITS,
    )
    table = airflow_service.paths("orphaned").table("visits")
    assert read_rows(table) == Counter(set(list_visits(landing)))
