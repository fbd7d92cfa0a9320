"""What a standalone Airflow is told, and that nothing of it survives its end."""

import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from sluice.errors import PreflightError
from sluice.orchestration import standalone
from sluice.orchestration.client import AirflowClient
from sluice.orchestration.standalone import end_session, standalone_environment, start_standalone
from sluice.setup.server import free_ports
from sqlalchemy import make_url


def test_its_files_lie_below_the_root_and_its_page_is_for_this_machine_only(tmp_path):
    env = standalone_environment(tmp_path, 4711, base={})
    assert env["AIRFLOW_HOME"] == str(tmp_path / "airflow")
    assert env["SLUICE_ROOT"] == str(tmp_path)
    assert env["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert env["AIRFLOW__API__BASE_URL"] == "http://127.0.0.1:4711"
    assert env["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:4711/execution/"
    assert env["PATH"].startswith(str(Path(sys.executable).parent))
    assert make_url(env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]).query == {"timeout": "60"}, (
        "its five processes write to one SQLite file beside Spark"
    )


def test_keys_and_passwords_are_kept_and_only_the_owner_can_read_them(tmp_path):
    first, second = (standalone_environment(tmp_path, 4711, base={}) for _ in range(2))
    assert first == second
    assert len(AirflowClient.read_password(first)) > 20
    files = sorted((tmp_path / "airflow").iterdir())
    assert [file.name for file in files] == ["keys.json", "passwords.json"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_two_roots_share_no_secret(tmp_path):
    first, second = (standalone_environment(tmp_path / name, 4711, base={}) for name in "ab")
    assert not {first[key] for key in first if "KEY" in key or "SECRET" in key} & {
        second[key] for key in second if "KEY" in key or "SECRET" in key
    }


def test_the_end_reaches_a_process_that_left_the_group_and_one_that_ignores_signals():
    grandchild = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', "
        "flush=True); time.sleep(600)"
    )
    child = (
        f"import os, subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {grandchild!r}], "
        "process_group=0); print(p.pid, flush=True); p.wait()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", child], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    lines = {process.stdout.readline().strip() for _ in range(2)}
    stubborn = psutil.Process(int((lines - {"ready"}).pop()))
    end_session(process, patience=0.5)
    assert process.poll() is not None
    assert not stubborn.is_running() or stubborn.status() == psutil.STATUS_ZOMBIE


def test_an_airflow_that_does_not_start_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(standalone, "_MODULE", "sluice.no_such_module")
    with (
        pytest.raises(PreflightError, match="No module named"),
        start_standalone(tmp_path, free_ports(1)[0]),
    ):
        pass
