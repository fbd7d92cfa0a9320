"""How the JVM is started: nothing secret where everyone can read, nothing said without need."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import psutil
import pytest
from sluice.launch import launcher_options
from sluice.spark.scratch import remove_left_behind

SECRET = "s3cret=1 \\ ü\n2"
SESSION = """
import json, os, sys, psutil
from sluice.launch import spark_settings
from sluice.spark.session import open_session
from sluice.spec import load_pipeline

with open_session(spark_settings(load_pipeline(sys.argv[1]), 0, root=sys.argv[2])) as spark:
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    print(json.dumps({
        "secret": spark.conf.get("spark.hadoop.some.password"),
        "heap": spark.conf.get("spark.driver.memory"),
        "launcher": os.environ["SPARK_LAUNCHER_OPTS"],
        "commands": [
            " ".join(each.cmdline()) for each in family if each.status() != psutil.STATUS_ZOMBIE
        ],
        "left": [name for name in os.listdir(os.environ["TMPDIR"]) if name.endswith(".conf")],
    }))
"""


@pytest.fixture
def scene(tmp_path, monkeypatch):
    """(pipeline file, root): one row to read; temporary files go to a folder of the test."""
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "a.jsonl").write_text('{"id": "a"}\n')
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("SOME_PASSWORD", SECRET)
    monkeypatch.delenv("SPARK_LAUNCHER_OPTS", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    spec = {
        "name": "quiet",
        "spark": {"spark.hadoop.some.password": "${SOME_PASSWORD}", "spark.driver.memory": "1g"},
        "steps": [
            {
                "name": "rows",
                "source": {
                    "kind": "files",
                    "path": str(tmp_path / "landing"),
                    "format": "json",
                    "schema": {"id": "string"},
                },
                "sink": {"kind": "delta", "mode": "append"},
            }
        ],
    }
    file = tmp_path / "quiet.yaml"
    file.write_text(json.dumps(spec))
    return file, tmp_path / "root"


def run(*command) -> subprocess.CompletedProcess:
    """Run Python in a process of its own, whose JVM is started by it."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK")}
    return subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, timeout=300, env=env
    )


def test_a_secret_setting_reaches_spark_and_no_command_line(scene):
    done = run("-c", SESSION, *scene)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["secret"], found["heap"]) == (SECRET, "1g")
    java = [command for command in found["commands"] if "java" in command.split()[0]]
    assert java and "-Xmx1g" in java[0]
    assert not [command for command in found["commands"] if "s3cret" in command]
    assert found["launcher"] == launcher_options()
    assert found["left"] == []


def test_a_run_says_nothing_but_its_report(scene):
    file, root = scene
    done = run("-m", "sluice.cli", "run", "--spec", file, "--root", root)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("quiet: DONE")
    assert [line for line in done.stderr.splitlines() if not line.startswith("rows: ")] == []
    assert list(Path(os.environ["TMPDIR"]).glob("sluice-*")) == []


def test_a_run_that_fails_says_where_the_words_of_the_jvm_are(scene):
    file, root = scene
    spec = json.loads(file.read_text())
    spec["spark"]["spark.driver.extraJavaOptions"] = "-agentlib:nosuch"
    file.write_text(json.dumps(spec))
    done = run("-m", "sluice.cli", "run", "--spec", file, "--root", root)
    assert done.returncode in (5, 6)
    said = done.stderr.splitlines()[-1]
    assert said.startswith("What Spark itself said: ")
    assert "agent library nosuch" in Path(said.removeprefix("What Spark itself said: ")).read_text()


def kill_in_the_middle(scene, whole: bool) -> tuple[int, str]:
    """Kill the JVM of a run, or all of it; what it returned, and what it said. What Spark keeps on
    disks lies below the folder for temporary files."""
    file, root = scene
    spec = json.loads(file.read_text())
    spec["spark"]["spark.local.dir"] = os.environ["TMPDIR"]
    file.write_text(json.dumps(spec))
    command = [sys.executable, "-m", "sluice.cli", "run", "--spec", str(file), "--root", str(root)]
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK")}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env
    ) as process:
        while process.poll() is None and not (root / "tables").exists():
            time.sleep(0.02)  # the JVM makes the folder as it creates the first table
        children = psutil.Process(process.pid).children(recursive=True)
        for victim in [psutil.Process(process.pid), *children] if whole else children:
            victim.kill()
        _, errors = process.communicate(timeout=120)
        psutil.wait_procs(children, 60)
    return process.returncode, errors


def list_scratch() -> list[str]:
    """What runs have left where Spark keeps rows, and notes of it."""
    return [p.name for p in Path(os.environ["TMPDIR"]).iterdir() if p.suffix not in (".log", ".so")]


def test_a_run_whose_jvm_is_killed_says_so_in_one_sentence_and_leaves_nothing_on_the_disk(scene):
    code, errors = kill_in_the_middle(scene, whole=False)
    assert code == 5
    assert "the JVM ended in the middle of the run" in errors
    assert "Traceback" not in errors and len(errors.splitlines()) == 2, errors
    assert list_scratch() == []


def test_what_a_killed_run_left_on_the_disk_is_removed_by_the_next(scene, monkeypatch):
    file, root = scene
    monkeypatch.setattr(tempfile, "tempdir", os.environ["TMPDIR"])
    assert kill_in_the_middle(scene, whole=True)[0] == -signal.SIGKILL
    assert {name.split("-")[0] for name in list_scratch()} == {"blockmgr", "spark", "sluice"}
    remove_left_behind()  # as each run does, once Spark has started
    assert list_scratch() == []
    done = run("-m", "sluice.cli", "run", "--spec", file, "--root", root)
    assert done.returncode == 0, done.stderr
    # The JVM ends a moment after the run, and takes its last folder with it.
    assert [name for name in list_scratch() if not name.startswith("spark-")] == []


def test_what_a_living_run_keeps_and_what_is_not_sparks_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ours, mine = tmp_path / f"blockmgr-{uuid.uuid4()}", tmp_path / "orders"
    for folder in (ours, mine):
        folder.mkdir()
    note = tmp_path / "sluice-1.scratch"
    note.write_text(f"{ours}\n{mine}")
    with note.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        remove_left_behind()
        assert ours.exists() and note.exists()
    remove_left_behind()
    assert not ours.exists() and not note.exists()
    assert mine.exists()
