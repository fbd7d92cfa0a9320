"""A client of Airflow's REST API, as small as the demo and the tests need it."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from http.client import HTTPResponse
from pathlib import Path


class AirflowClient:
    """Talks to one Airflow as one user.

    `env`: the environment its processes run in, for commands such as `airflow backfill create`.
    """

    def __init__(self, url: str, env: Mapping[str, str], username: str = "admin") -> None:
        self.url, self.env, self.username = url.rstrip("/"), dict(env), username
        self._token: str | None = None

    @staticmethod
    def read_password(env: Mapping[str, str], username: str = "admin") -> str:
        """The password a standalone Airflow gave this user."""
        return json.loads(
            Path(env["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]).read_text()
        )[username]

    @property
    def password(self) -> str:
        """The password of this client's user."""
        return self.read_password(self.env, self.username)

    def is_healthy(self) -> bool:
        """True when the database, the scheduler and the DAG processor all say so."""
        try:
            with self._open("GET", "/api/v2/monitor/health", None, {}, 5) as answer:
                health = json.load(answer)
        except (OSError, ValueError):
            return False
        return all(
            (health.get(part) or {}).get("status") == "healthy"
            for part in ("metadatabase", "scheduler", "dag_processor")
        )

    def call(self, method: str, path: str, body: object = None, timeout: float = 30) -> dict:
        """One request below `/api/v2`; returns the decoded answer.

        Raises urllib.error.HTTPError with Airflow's explanation.
        """
        with self._open(method, f"/api/v2{path}", body, self._login(), timeout) as answer:
            text = answer.read()
        return json.loads(text) if text else {}

    def _login(self) -> dict[str, str]:
        if self._token is None:
            with self._open(
                "POST",
                "/auth/token",
                {"username": self.username, "password": self.password},
                {},
                30,
            ) as answer:
                self._token = json.load(answer)["access_token"]
        return {"Authorization": f"Bearer {self._token}"}

    def trigger(self, dag_id: str, run_id: str | None = None, **fields: object) -> str:
        """Start a run of an unpaused DAG and return its run id.

        `fields`: `conf`, `logical_date`, ... as the API names them.
        """
        body = {"dag_run_id": run_id, "logical_date": None} | fields
        return self.call("POST", f"/dags/{dag_id}/dagRuns", body)["dag_run_id"]

    def unpause(self, dag_id: str) -> None:
        """Let the scheduler run the DAG."""
        self.call("PATCH", f"/dags/{dag_id}", {"is_paused": False})

    def wait(self, dag_id: str, run_id: str, timeout: float = 300) -> str:
        """Wait until a run ends and return its state, `success` or `failed`.

        Raises TimeoutError after `timeout` seconds.
        """
        path = f"/dags/{dag_id}/dagRuns/{urllib.parse.quote(run_id, safe='')}/wait?interval=0.5"
        deadline, state = time.monotonic() + timeout, "unknown"
        with self._open("GET", f"/api/v2{path}", None, self._login(), timeout) as lines:
            for line in lines:
                state = json.loads(line)["state"] if line.strip() else state
                if state not in ("success", "failed") and time.monotonic() > deadline:
                    raise TimeoutError(
                        f"run {run_id} of {dag_id} was still {state} after {timeout:.0f} s; its "
                        f"tasks: {self.task_states(dag_id, run_id)}"
                    )
        return state

    def task_states(self, dag_id: str, run_id: str) -> dict[str, str]:
        """State of each task of a run."""
        found = self.call(
            "GET", f"/dags/{dag_id}/dagRuns/{urllib.parse.quote(run_id, safe='')}/taskInstances"
        )
        return {task["task_id"]: task["state"] for task in found["task_instances"]}

    def task_log(self, dag_id: str, run_id: str, task_id: str, attempt: int = 1) -> str:
        """What a task printed, and what it raised, as text."""
        run = urllib.parse.quote(run_id, safe="")
        lines = self.call(
            "GET",
            f"/dags/{dag_id}/dagRuns/{run}/taskInstances/{task_id}/logs/{attempt}?full_content=true",
        )["content"]
        raised = [error["exc_value"] for line in lines for error in line.get("error_detail") or []]
        return "\n".join([line["event"] for line in lines] + raised)

    def _open(
        self, method: str, path: str, body: object, headers: dict[str, str], timeout: float
    ) -> HTTPResponse:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json"} | headers, method=method
        )  # noqa: S310 (http by construction)
        try:
            return urllib.request.urlopen(request, timeout=timeout)  # noqa: S310
        except urllib.error.HTTPError as error:
            error.msg = f"{error.msg}: {error.read().decode(errors='replace')[:500]}"
            raise
