"""Lands the demo's days one by one and waits, each time, for the run of Airflow that drained it."""

import os
import shutil
import socket
import time
import urllib.error
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ..errors import SluiceError
from ..orchestration.client import AirflowClient
from ..report import Counts, RunReport, read_report
from ..storage import PIPELINES, PROJECT, Paths
from .orders import ROWS, generate_days, land_day

PIPELINE = "orders"
SCHEDULE = "15 seconds"
_PATIENCE = 600  # seconds for one run, and for Airflow to find the DAG
_POLL = 1  # second between two looks; each costs the API server some CPU that the run could use
_ENDED = ("success", "failed")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class DrainedDay:
    """One scheduled run.

    `report` is None where the probe found nothing new; `said` is then what the probe logged.
    """

    run_id: str
    report: RunReport | None
    said: str = ""

    @property
    def counts(self) -> Counts:
        """What became of its rows; none where nothing was new."""
        return self.report.counts if self.report else Counts()


def run_demo(root: Path, say: Callable[[str], None], rows: int = ROWS) -> list[DrainedDay]:
    """Run the whole demo below a fresh folder.

    Three days that Airflow drains, then an interval with nothing new.
    """
    from ..orchestration.standalone import standalone_environment, start_standalone

    shutil.rmtree(root, ignore_errors=True)
    landing = root / "landing" / PIPELINE
    landing.mkdir(parents=True)
    base = os.environ | {
        "LANDING": str(landing.parent),
        "ORDERS_SCHEDULE": SCHEDULE,
        "SLUICE_PIPELINES": str(PIPELINES),
    }
    port = _free_port()
    say(f"Starting Airflow at http://127.0.0.1:{port} (its files are in {shown(root / 'airflow')})")
    with start_standalone(root, port, standalone_environment(root, port, base)) as airflow:
        _wait("Airflow to find the DAG", lambda: _has_dag(airflow))
        runs: list[DrainedDay] = []
        for day, files in generate_days(rows=rows):
            land_day(landing, day, files)
            lines = sum(len(file.lines) for file in files)
            say(f"Landed {day}: {len(files)} files, {lines:,} lines")
            if not runs:
                airflow.unpause(PIPELINE)
            runs.append(
                _wait("a run that drains it", lambda: _next_run(airflow, root, runs, drained=True))
            )
            say(f"  Airflow ran {runs[-1].run_id}: {runs[-1].counts.line}")
        say("Nothing lands now; waiting for the next interval")
        runs.append(
            _wait("a run that finds nothing", lambda: _next_run(airflow, root, runs, drained=False))
        )
        say(f"  Airflow ran {runs[-1].run_id}: skipped")
        airflow.call("PATCH", f"/dags/{PIPELINE}", {"is_paused": True})
    return runs


def _next_run(
    airflow: AirflowClient, root: Path, known: list[DrainedDay], drained: bool
) -> DrainedDay | None:
    """The first ended scheduled run after the known ones that did, or did not, start Spark.

    Raises SluiceError when a run failed.
    """
    found = airflow.call("GET", f"/dags/{PIPELINE}/dagRuns?order_by=run_after&limit=100")[
        "dag_runs"
    ]
    ids = [run["dag_run_id"] for run in found]
    start = ids.index(known[-1].run_id) + 1 if known else 0
    for run in found[start:]:
        run_id = run["dag_run_id"]
        if run["state"] not in _ENDED:
            return None
        try:
            report = read_report(Paths.under(root, PIPELINE).reports(), run_id)
        except FileNotFoundError:
            report = None
        if run["state"] == "failed":
            raise SluiceError(
                "the run failed in Airflow",
                where=run_id,
                value=report.error if report else None,
                do=f"Look at the logs in {root / 'airflow' / 'logs'}",
            )
        if (report is not None) == drained:
            return DrainedDay(run_id, report, "" if report else _read_probe(airflow, run_id))
    return None


def _read_probe(airflow: AirflowClient, run_id: str) -> str:
    """What the probe logged: why it skipped, and what that saved."""
    lines = airflow.task_log(PIPELINE, run_id, "probe").splitlines()
    return "\n".join(
        line for line in lines if "nothing is new" in line or "No Spark was started" in line
    )


def _has_dag(airflow: AirflowClient) -> bool:
    try:
        return bool(airflow.call("GET", f"/dags/{PIPELINE}"))
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return False
        raise


def _wait(what: str, ask: Callable[[], _Answer | None]) -> _Answer:
    """Ask until the answer is yes; an Airflow too busy to answer is asked again.

    Raises SluiceError after `_PATIENCE` seconds.
    """
    deadline, trouble = time.monotonic() + _PATIENCE, None
    while time.monotonic() < deadline:
        try:
            if answer := ask():
                return answer
        except OSError as error:
            if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                raise
            trouble = str(error)
        time.sleep(_POLL)
    raise SluiceError(
        f"waited {_PATIENCE} seconds in vain for {what}",
        where="demo",
        value=trouble,
        do="Look at standalone.log in the demo's `airflow` folder",
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def shown(path: Path) -> str:
    """A path relative to the project where it lies inside."""
    return str(path.relative_to(PROJECT)) if path.is_relative_to(PROJECT) else str(path)
