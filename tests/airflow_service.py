"""One Airflow for every test that needs a real one.

A scheduler, a DAG processor and an API server over a folder of pipelines that the tests own.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sluice.orchestration.client import AirflowClient
from sluice.orchestration.standalone import standalone_environment, start_standalone
from sluice.setup.server import free_ports
from sluice.storage import Paths

from tests.postgres_server import PostgresServer

FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
YAML = """
name: {name}
description: "**{name}** counts visits."
owner: test-team
schedule: null
start_date: 2026-01-01
budget: 5 minutes
max_batch_failures: 0
steps:
  - name: visits
    source:
      path: {landing}
      format: json
      file_date: "%Y-%m-%d"
      schema: {{id: bigint, at: timestamp, page: string, seconds: int}}
    event_time: {{column: at}}
    dedup: {{keys: [id], within: 2 days}}
    rules:
      - type: expect_column_values_to_be_between
        kwargs: {{column: seconds, min_value: 0}}
        on_fail: {on_fail}
        name: seconds_not_negative
"""


@dataclass(frozen=True)
class AirflowService:
    """A running Airflow.

    `folder` holds `pipelines/`, `landing/<name>/` and the root of tables and checkpoints, `root/`.
    """

    client: AirflowClient
    folder: Path

    @property
    def root(self) -> Path:
        """Where tables, checkpoints and reports lie."""
        return self.folder / "root"

    def paths(self, name: str) -> Paths:
        """Paths of one pipeline."""
        return Paths.under(self.root, name)

    def add_pipeline(self, name: str, on_fail: str = "quarantine") -> Path:
        """Write a pipeline file, wait until its DAGs are there, and return its landing folder.

        Each name is used once: its files and reports stay.
        """
        assert not (self.folder / "pipelines" / f"{name}.yaml").exists(), (
            f"another test has a pipeline {name}: this one would find its files and reports"
        )
        landing = write_pipeline(self.folder, name, on_fail)
        self.wait_for_dags(name, f"{name}_backfill")
        return landing

    def wait_for_dags(self, *dag_ids: str, timeout: float = 90) -> None:
        """Wait until the DAG processor has found these DAGs, and unpause them."""
        self.wait_until(
            lambda: (
                set(dag_ids)
                <= {dag["dag_id"] for dag in self.client.call("GET", "/dags?limit=100")["dags"]}
            ),
            timeout,
        )
        for dag_id in dag_ids:
            self.client.unpause(dag_id)

    def wait_until(self, condition: Callable[[], bool], timeout: float = 90) -> None:
        """Ask until a condition holds.

        Airflow tells nobody when a DAG was found or a backfill is finished.
        """
        deadline = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < deadline, (
                f"not within {timeout} s; import errors: {self.client.call('GET', '/importErrors')}"
            )
            time.sleep(0.5)

    def run(self, dag_id: str, run_id: str, **fields: object) -> str:
        """Trigger a DAG and wait for the end of the run; returns its state."""
        self.client.trigger(dag_id, run_id, **fields)
        return self.client.wait(dag_id, run_id)

    def airflow(self, *command: str) -> str:
        """Run an `airflow` command as a person would; returns what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "airflow", *command],
            env=self.client.env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"airflow {' '.join(command)}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def write_pipeline(folder: Path, name: str, on_fail: str = "quarantine") -> Path:
    """Write `pipelines/<name>.yaml` over an empty landing folder, and return that folder."""
    landing = folder / "landing" / name
    landing.mkdir(parents=True, exist_ok=True)
    (folder / "pipelines").mkdir(exist_ok=True)
    (folder / "pipelines" / f"{name}.yaml").write_text(
        YAML.format(name=name, landing=landing, on_fail=on_fail)
    )
    return landing


def land_visits(landing: Path, day: int, ids: range, seconds: int = 5) -> None:
    """Land one day's file: a visit per id, an hour after midnight."""
    at = FIRST_DAY + timedelta(days=day, hours=1)
    rows = [
        json.dumps(
            {
                "id": i,
                "at": (at + timedelta(seconds=i % 3600)).isoformat(),
                "page": f"/{i % 7}",
                "seconds": seconds,
            }
        )
        for i in ids
    ]
    unfinished = landing / f".{at:%Y-%m-%d}.json"
    unfinished.write_text("\n".join(rows) + "\n")
    unfinished.rename(landing / f"{at:%Y-%m-%d}.json")


def list_visits(landing: Path) -> list[tuple]:
    """Every visit that was landed, as its table has it."""
    found = []
    for file in sorted(landing.glob("*.json")):
        for visit in map(json.loads, file.read_text().splitlines()):
            at = datetime.fromisoformat(visit["at"])
            found.append((visit["id"], at, visit["page"], visit["seconds"]))
    return found


@contextmanager
def start_service(folder: Path, postgres: PostgresServer) -> Iterator[AirflowService]:
    """Start Airflow over `folder`, with its metadata in PostgreSQL and a viewer beside the admin.

    Its DAG processor looks for new pipelines every five seconds. SQLite, which `make demo` uses,
    refuses one of two processes that write at the same moment ("database is locked").
    """
    (folder / "pipelines").mkdir(parents=True, exist_ok=True)
    env = standalone_environment(
        folder / "root",
        free_ports(1)[0],
        base=os.environ
        | {
            "SLUICE_PIPELINES": str(folder / "pipelines"),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,viewer:viewer",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "5",
            # how long a task is taken to live whose supervisor is gone
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
        },
    )
    database = postgres.create_database("airflow")
    env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = database
    env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC"] = database
    with start_standalone(folder / "root", int(env["AIRFLOW__API__PORT"]), env) as client:
        yield AirflowService(client, folder)
