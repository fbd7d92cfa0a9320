"""What `make ui` says, and that nothing of it is left after Ctrl-C."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from sluice.setup.server import free_ports
from sluice.storage import PROJECT

SERVE = """
import sys
from sluice.orchestration import serve, standalone
standalone._MODULE = sys.argv.pop(1)
sys.exit(serve.main())
"""


@contextmanager
def start(module: str, port: int, root) -> Iterator[subprocess.Popen]:
    """The command behind `make ui`, with a module in Airflow's place."""
    path = f"{PROJECT / 'include'}{os.pathsep}{PROJECT}"
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, module, "--port", str(port), "--root", str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path, "COLUMNS": "200"},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_box_says_address_user_password_and_log_and_every_process_ends_with_it(tmp_path, how):
    [port] = free_ports(1)
    with start("tests.dags.answering_airflow", port, tmp_path) as process:
        box = [process.stdout.readline() for _ in range(6)]
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(how)
        more, errors = process.communicate(timeout=60)
    password = json.loads((tmp_path / "airflow" / "passwords.json").read_text())["admin"]
    log = tmp_path / "airflow" / "standalone.log"
    held = [line.strip("│ \n").split() for line in box[1:-1]]
    assert held == [
        ["address", f"http://127.0.0.1:{port}"],
        ["user", "admin"],
        ["password", password],
        ["logs", str(log)],
    ]
    assert (process.returncode, more) == (0, "")
    assert errors.splitlines() == [
        f"Airflow starts; what it says goes to {log}",
        "Airflow has ended.",
    ]
    assert "loud words of Airflow" in log.read_text()
    assert len(family) == 2 and not any(
        member.is_running() and member.status() != psutil.STATUS_ZOMBIE for member in family
    )


def test_a_taken_port_is_told_before_anything_starts(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with start("tests.dags.answering_airflow", port, tmp_path) as process:
            said, errors = process.communicate(timeout=60)
    assert (process.returncode, said) == (6, "")
    assert len(errors.splitlines()) == 1
    assert str(port) in errors and "make ui PORT=" in errors
    assert list(tmp_path.iterdir()) == []


def test_a_start_that_fails_says_why_and_where_the_log_is_once(tmp_path):
    log = tmp_path / "airflow" / "standalone.log"
    log.parent.mkdir()
    log.write_text("words of an earlier start\n")
    with start("sluice.no_such_module", free_ports(1)[0], tmp_path) as process:
        said, errors = process.communicate(timeout=60)
    assert (process.returncode, said) == (6, "")
    assert errors.count("No module named") == 1 and f"{log}: Airflow did not start" in errors
    assert "Traceback" not in errors and "earlier start" not in errors
