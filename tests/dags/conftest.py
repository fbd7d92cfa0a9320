"""Airflow over a home of its own.

It reads its settings as it is imported, so they are set here, before any test file is.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

_HOME = tempfile.TemporaryDirectory(prefix="sluice-airflow-")
os.environ.update(
    AIRFLOW_HOME=_HOME.name,
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    AIRFLOW__CORE__UNIT_TEST_MODE="False",
    AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=f"sqlite:///{_HOME.name}/airflow.db",
    AIRFLOW__CORE__DAGS_FOLDER=str(Path(__file__).parents[2] / "dags"),
    AIRFLOW__API_AUTH__JWT_SECRET="a secret of these tests that is as long as its algorithm "
    "wants it to be",
    AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS="admin:admin,viewer:viewer",
    AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE=f"{_HOME.name}/passwords.json",
)

import pytest  # noqa: E402

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def metadata_database():
    """Airflow's own tables, made once."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture
def pipelines(tmp_path, monkeypatch):
    """An empty folder of pipelines and an empty root."""
    monkeypatch.setenv("SLUICE_PIPELINES", str(tmp_path / "pipelines"))
    monkeypatch.setenv("SLUICE_ROOT", str(tmp_path / "root"))
    (tmp_path / "pipelines").mkdir()
    return tmp_path


def run_python(code: str, **env: str) -> str:
    """Run code in a fresh interpreter with the project importable; returns its standard output."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(PROJECT / "include")} | env,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(name="run_python")
def _run_python():
    return run_python
