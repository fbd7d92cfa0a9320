"""A whole Airflow on this machine: scheduler, DAG processor and API server over SQLite, started and
ended together.

`airflow standalone` would do, but it neither notices a part that died, nor takes its children along
when it is ended, nor creates the pools.
"""

import argparse
import base64
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from ..errors import PreflightError
from ..storage import PROJECT
from .client import AirflowClient

# The log server would listen on every address of the machine; here the API server reads the log
# files itself.
COMPONENTS = (("scheduler", "--skip-serve-logs"), ("dag-processor",), ("api-server",))
TRIGGERER = ("triggerer", "--skip-serve-logs")
_MODULE = "sluice.orchestration.standalone"
DEFAULT_CONNECTION = '{"conn_type": "spark", "host": "local[*]"}'


def standalone_environment(
    root: str | Path, port: int, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Every environment variable of a standalone Airflow whose own files lie in `<root>/airflow`;
    `base` is the environment to start from.

    The API server listens on 127.0.0.1 only: this set-up is for one person at one machine. Keys and
    passwords are made at the first call, and kept: processes that start together would otherwise
    each make their own.
    """
    base = dict(os.environ if base is None else base)
    home, url = Path(root).absolute() / "airflow", f"http://127.0.0.1:{port}"
    tools = Path(sys.executable).parent
    users = base.get("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "admin:admin")
    keep_secrets(home / "passwords.json", [entry.split(":")[0] for entry in users.split(",")])
    keys = keep_secrets(home / "keys.json", ["fernet", "jwt", "session"])
    path = [
        str(Path(__file__).resolve().parents[2]),
        *filter(None, base.get("PYTHONPATH", "").split(os.pathsep)),
    ]
    return base | {
        "PATH": f"{tools}{os.pathsep}{base.get('PATH', os.defpath)}",
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(path)),
        "SLUICE_ROOT": str(Path(root).absolute()),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW_CONN_SPARK_DEFAULT": base.get("AIRFLOW_CONN_SPARK_DEFAULT") or DEFAULT_CONNECTION,
        # SQLite lets one process write at a time, and gives up after five seconds: too few on a
        # machine that runs Spark beside it.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db?timeout=60",
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": base.get("AIRFLOW__CORE__PARALLELISM", "2"),
        "AIRFLOW__CORE__AUTH_MANAGER": (
            "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager"
        ),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": users,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__CORE__FERNET_KEY": keys["fernet"],
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__SECRET_KEY": keys["session"],
        "AIRFLOW__API_AUTH__JWT_SECRET": keys["jwt"] * 2,  # as long as its algorithm asks for
        "AIRFLOW__DAG_PROCESSOR__PARSING_PROCESSES": "1",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
    }


@contextmanager
def start_standalone(
    root: str | Path, port: int, env: Mapping[str, str] | None = None, timeout: float = 300
) -> Iterator[AirflowClient]:
    """Run a standalone Airflow for the length of the `with` block and end every process of it
    after.

    Yields a client that is logged in; `env` replaces `standalone_environment(root, port)`.
    Everything the processes print is in `<root>/airflow/standalone.log`. Raises PreflightError with
    the end of that file when Airflow is not ready within `timeout` seconds.
    """
    env = standalone_environment(root, port) if env is None else env
    with start_supervised(env, timeout=timeout) as (_, client):
        yield client


@contextmanager
def start_supervised(
    env: Mapping[str, str], *options: str, timeout: float = 300
) -> Iterator[tuple[subprocess.Popen, AirflowClient]]:
    """The process that runs `supervise`, and a client, as soon as Airflow is ready; at the end of
    the block every process of it is ended. Raises PreflightError as `start_standalone` does.

    It leads a session of its own: Ctrl-C reaches only us, and we end the session as a whole.
    """
    log = find_log(env)
    log.parent.mkdir(parents=True, exist_ok=True)
    began = log.stat().st_size if log.exists() else 0
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", _MODULE, *options],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        client = AirflowClient(env["AIRFLOW__API__BASE_URL"], env)
        deadline = time.monotonic() + timeout
        while not client.is_healthy():
            if process.poll() is not None or time.monotonic() > deadline:
                raise PreflightError(
                    "Airflow did not start",
                    where=str(log),
                    do=f"It ends with:\n{read_tail(log, began)}",
                )
            time.sleep(0.5)
        yield process, client
    finally:
        end_session(process)


def find_log(env: Mapping[str, str]) -> Path:
    """The file of everything that Airflow's processes print."""
    return Path(env["AIRFLOW_HOME"]) / "standalone.log"


def end_session(process: subprocess.Popen, patience: float = 10) -> None:
    """End every process of the session that `process` leads: SIGTERM, then SIGKILL after `patience`
    seconds.

    Airflow gives each task a process group of its own, so ending the leader's group alone would
    leave a Spark driver behind.
    """
    members = _session_members(process.pid)
    for member in members:
        _signal(member.terminate)
    _, alive = psutil.wait_procs(members, timeout=patience)
    stubborn = {*alive, *_session_members(process.pid)}
    for member in stubborn:
        _signal(member.kill)
    process.wait()
    psutil.wait_procs(stubborn, timeout=patience)


def _session_members(leader: int) -> list[psutil.Process]:
    members = []
    for candidate in psutil.process_iter():
        try:
            if os.getsid(candidate.pid) == leader:
                members.append(candidate)
        except (ProcessLookupError, PermissionError):
            continue  # it ended while we looked, or is not ours
    return members


def _signal(send) -> None:
    try:
        send()
    except psutil.NoSuchProcess:
        return  # it ended by itself


def read_tail(log: Path, began: int = 0, lines: int = 20) -> str:
    """The last lines of a log. Args: began: bytes that earlier processes wrote."""
    text = log.read_bytes()[began:].decode(errors="replace")
    return "\n".join(text.splitlines()[-lines:])


def keep_secrets(path: Path, names: Iterable[str]) -> dict[str, str]:
    """Give each name a random secret, once, in a JSON file only its owner can read, and return them
    all."""
    known = json.loads(path.read_text()) if path.exists() else {}
    missing = [name for name in names if name not in known]
    if missing:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        known |= {
            name: base64.urlsafe_b64encode(secrets.token_bytes(32)).decode() for name in missing
        }
        path.write_text(json.dumps(known))
    return known


def supervise(env: Mapping[str, str], triggerer: bool) -> int:
    """Prepare the metadata database and the pools, then run the components until one of them, or
    our parent, ends. Returns an exit code."""
    from airflow.utils.db import initdb

    from .pools import create_pools

    initdb()
    create_pools()
    parent = os.getppid()
    commands = (*COMPONENTS, TRIGGERER) if triggerer else COMPONENTS
    parts = {
        command[0]: subprocess.Popen([sys.executable, "-m", "airflow", *command], env=env)
        for command in commands
    }
    try:
        while os.getppid() == parent:
            ended = [name for name, part in parts.items() if part.poll() is not None]
            if ended:
                print(f"Airflow's {', '.join(ended)} ended; stopping the rest.", flush=True)
                return 1
            time.sleep(1)
        return 0
    finally:
        for part in parts.values():
            part.terminate()
        for part in parts.values():
            part.wait()


def main() -> int:
    """The process behind `start_supervised`."""
    parser = argparse.ArgumentParser(description="Run Airflow's parts until one of them ends.")
    parser.add_argument("--triggerer", action="store_true", help="run a triggerer as well")
    return supervise(os.environ, parser.parse_args().triggerer)


if __name__ == "__main__":
    raise SystemExit(main())
