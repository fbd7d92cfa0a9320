"""How a run is submitted, and what its exit code makes of the task.

`spark-submit` is a script of the test that notes what it was given.
"""

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from airflow.providers.apache.spark.hooks import spark_submit
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from sluice.errors import ExitCode
from sluice.launch import settings
from sluice.orchestration.dag import load_dags
from sluice.orchestration.submit import choose_window
from sluice.orchestration.submit_hook import PrivateSubmitHook
from sluice.report.model import RunReport, StepReport, Undelivered
from sluice.report.store import write_report
from sluice.spec import Window
from sluice.storage import PROJECT, Paths

from tests.airflow_service import FIRST_DAY, land_visits, write_pipeline

SCRIPT = """#!{python}
import json, os, sys
file = sys.argv[sys.argv.index("--properties-file") + 1]
json.dump(
    {{
        "arguments": sys.argv[1:],
        "environment": dict(os.environ),
        "file": file,
        "mode": os.stat(file).st_mode & 0o777,
        "settings": dict(
            line.encode().decode("unicode_escape").rstrip("\\n").split("=", 1)
            for line in open(file)
        ),
    }},
    open({noted!r}, "w"),
)
print("the driver says hello")
sys.exit({code})
"""


class TaskInstance:
    """The part of a task instance the operator uses: what the probe left in XCom."""

    def xcom_pull(self, task_ids, key):
        return {"bytes": 1234}


@pytest.fixture
def submit(pipelines, monkeypatch):
    """submit(code, dag_id, **context) runs the task `run` with a spark-submit that exits with
    `code`, and returns what it was given."""
    write_pipeline(pipelines, "visits")
    monkeypatch.setattr(settings, "jar_paths", lambda *sets: [])
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[3]"}')
    monkeypatch.setenv("PATH", f"{pipelines}{os.pathsep}{os.environ['PATH']}")

    def run(code=0, dag_id="visits", task="run", **context):
        script, noted = pipelines / "spark-submit", pipelines / "noted.json"
        script.write_text(SCRIPT.format(python=sys.executable, noted=str(noted), code=code))
        script.chmod(0o755)
        try:
            load_dags()[0][dag_id].get_task(task).execute(
                {"run_id": "manual__1", "ti": TaskInstance()} | context
            )
        finally:
            run.given = json.loads(noted.read_text()) if noted.exists() else None
        return run.given

    return run


def request_of(given):
    """The RunRequest among the arguments of a noted submission."""
    arguments = given["arguments"]
    return json.loads(arguments[arguments.index("--request") + 1])


@pytest.mark.parametrize("code", [ExitCode.DONE, ExitCode.STOPPED_BY_RULE])
def test_a_run_that_left_a_report_goes_on_to_the_gate(submit, code):
    submit(code)


def test_a_run_that_found_nothing_new_is_skipped(submit):
    with pytest.raises(AirflowSkipException):
        submit(ExitCode.NOTHING_NEW)


def test_a_transient_failure_is_tried_again(submit):
    with pytest.raises(AirflowException) as failure:
        submit(ExitCode.TRANSIENT)
    assert not isinstance(failure.value, AirflowFailException | AirflowSkipException)


def test_a_driver_killed_by_a_signal_is_tried_again(submit):
    with pytest.raises(AirflowException, match="signal 9") as failure:
        submit(137)
    assert not isinstance(failure.value, AirflowFailException | AirflowSkipException)


@pytest.mark.parametrize("code", [ExitCode.TERMINAL, 1])
def test_any_other_failure_is_not_tried_again(submit, code):
    with pytest.raises(AirflowFailException, match="the driver says hello"):
        submit(code)


def store(status, minutes=1, steps=(), **told):
    """Write the report of the run, that many minutes from now."""
    at = datetime.now(UTC) + timedelta(minutes=minutes)
    about = {"pipeline": "visits", "run_id": "manual__1", "started": at, "ended": at}
    report = RunReport(**about, status=status, steps=list(steps), **told)
    write_report(report, Paths.under(None, "visits").reports())


def test_a_failure_says_what_the_report_says(submit):
    store("failed", exit_code=6, error="the schema changed")
    with pytest.raises(AirflowFailException, match="the schema changed"):
        submit(ExitCode.TERMINAL)


def test_a_report_of_an_earlier_try_is_not_quoted(submit):
    store("failed", minutes=-60, exit_code=5, error="an old story")
    with pytest.raises(AirflowFailException, match="the driver says hello"):
        submit(ExitCode.TERMINAL)


def lacking(person: bool) -> StepReport:
    """A step whose sink lacks two rows."""
    about = {"since": datetime.now(UTC), "said": "gone", "needs_person": person}
    lack = Undelivered(sink="files out", rows=2, batches=1, **about)
    return StepReport(name="visits", target="t", quarantine="q", undelivered=[lack])


@pytest.mark.parametrize("code", [ExitCode.TRANSIENT, ExitCode.TERMINAL])
def test_a_sink_that_is_out_does_not_fail_the_run_so_that_its_table_is_announced(submit, code):
    store("undelivered", steps=[lacking(person=True)], exit_code=code, error="files out lacks rows")
    submit(code)


@pytest.fixture
def deliver(submit, pipelines):
    """deliver(code, tries) runs the task `deliver` in its so manieth try."""
    file = pipelines / "pipelines" / "visits.yaml"
    spec = yaml.safe_load(file.read_text())
    spec["steps"][0]["sink"] = [{"kind": "delta"}, {"kind": "files", "path": "out"}]
    file.write_text(yaml.safe_dump(spec))

    def run(tries, code=0):
        ti = TaskInstance()
        ti.try_number = tries
        submit(code, task="deliver", ti=ti)
        return submit.given

    run.given = lambda: submit.given
    return run


def test_where_every_sink_has_all_nothing_is_submitted(deliver):
    store("done")
    assert deliver(1) is None


def test_what_is_undelivered_fails_a_task_and_is_sent_when_that_is_tried_again(deliver):
    store("undelivered", steps=[lacking(person=False)], exit_code=5)
    with pytest.raises(AirflowException, match="files out lacks 2 rows") as failure:
        deliver(1)
    assert not isinstance(failure.value, AirflowFailException) and deliver.given() is None
    asked = request_of(deliver(2))
    assert (asked["run_id"], asked["refill"]) == (
        "manual__1__deliver",
        {"everything": False, "keys": []},
    )
    with pytest.raises(AirflowException):
        deliver(3, ExitCode.TRANSIENT)


def test_what_only_a_person_can_mend_is_not_tried_until_the_task_is_cleared(deliver):
    store("undelivered", steps=[lacking(person=True)], exit_code=6)
    with pytest.raises(AirflowFailException, match="clear this task"):
        deliver(1)
    assert request_of(deliver(2))["refill"] is not None


def test_a_missing_report_fails_the_delivery_and_says_what_to_set(deliver):
    with pytest.raises(AirflowFailException, match="SLUICE_ROOT"):
        deliver(1)


def test_a_missing_connection_is_an_error_and_nothing_is_submitted(submit, monkeypatch):
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    with pytest.raises(AirflowFailException, match="airflow connections add spark_default"):
        submit()
    assert submit.given is None


def test_a_missing_jar_is_an_error_and_nothing_is_submitted(submit, monkeypatch):
    from sluice.errors import PreflightError

    def refuse(*sets):
        raise PreflightError("jar missing", do="Run `sluice jars fetch core`")

    monkeypatch.setattr(settings, "jar_paths", refuse)
    with pytest.raises(AirflowFailException, match="sluice jars fetch core"):
        submit()
    assert submit.given is None


def test_the_job_runs_where_the_connection_says_and_with_our_python(submit, pipelines):
    given = submit()
    arguments = given["arguments"]
    assert arguments[arguments.index("--master") + 1] == "local[3]"
    assert given["environment"]["PYSPARK_PYTHON"] == sys.executable
    assert str(PROJECT / "jobs" / "run_pipeline.py") in arguments
    asked = request_of(given)
    assert [pid for pid, _ in asked.pop("parents")] == [
        os.getpid(),
        os.getppid(),
    ]  # the driver stops when either is gone
    assert asked == {
        "pipeline": str(pipelines / "pipelines" / "visits.yaml"),
        "run_id": "manual__1",
        "write": "merge",
        "master": "local[3]",
        "backlog_bytes": 1234,
    }


def test_the_settings_fit_the_backlog_the_probe_saw(submit, monkeypatch):
    small = submit()["settings"]["spark.driver.extraJavaOptions"]
    monkeypatch.setattr(TaskInstance, "xcom_pull", lambda self, task_ids, key: {"bytes": 10**12})
    large = submit()["settings"]["spark.driver.extraJavaOptions"]
    assert "TieredStopAtLevel=1" in small
    assert "TieredStopAtLevel=1" not in large


SECRET = {"spark.hadoop.fs.azure.account.key": "s3cret = 50% ünder\\n"}


def test_no_setting_is_on_the_command_line_for_everyone_to_read(submit, pipelines, monkeypatch):
    written = {name: f"${{SETTING_{number}}}" for number, name in enumerate(SECRET)}
    for number, value in enumerate(SECRET.values()):
        monkeypatch.setenv(f"SETTING_{number}", value)  # one that is written is refused
    with (pipelines / "pipelines" / "visits.yaml").open("a") as file:
        file.write(f"spark: {json.dumps(written)}\n")
    given = submit()
    assert given["settings"].items() >= SECRET.items()
    assert given["mode"] == 0o600
    assert "--conf" not in given["arguments"] and "s3cret" not in " ".join(given["arguments"])
    assert "--load-spark-defaults" in given["arguments"]


@pytest.mark.parametrize("code", [ExitCode.DONE, ExitCode.TERMINAL])
def test_the_file_of_the_settings_is_gone_when_the_task_ends(submit, code):
    with suppress(AirflowException):
        submit(code)
    assert not Path(submit.given["file"]).exists()


@pytest.mark.parametrize(
    ("master", "prefix"),
    [
        ("yarn", "spark.yarn.appMasterEnv."),
        ("k8s://https://host", "spark.kubernetes.driverEnv."),
    ],
)
def test_a_connection_reaches_a_driver_elsewhere_by_the_file_alone(monkeypatch, master, prefix):
    monkeypatch.setattr(spark_submit, "kube_client", object(), raising=False)
    connection = {"conn_type": "spark", "host": master, "extra": {"deploy-mode": "cluster"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    hook = PrivateSubmitHook.of(SparkSubmitHook(conn_id="spark_default"))
    assert hook.hand_environment({"TOKEN": "s3cret"}) == {f"{prefix}TOKEN": "s3cret"}
    assert "s3cret" not in " ".join(hook._build_spark_submit_command("job.py"))


def test_a_standalone_cluster_says_that_it_takes_no_connection_along(monkeypatch):
    connection = {"conn_type": "spark", "host": "spark://h", "extra": {"deploy-mode": "cluster"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    hook = PrivateSubmitHook.of(SparkSubmitHook(conn_id="spark_default"))
    assert hook.hand_environment({"TOKEN": "s3cret"}) == {}
    with pytest.raises(AirflowException, match="not supported in standalone-cluster mode"):
        hook._build_spark_submit_command("job.py")


def test_a_backfill_asks_for_its_interval_and_measures_it(submit, pipelines):
    land_visits(pipelines / "landing" / "visits", 1, range(10))
    interval = {
        "data_interval_start": FIRST_DAY + timedelta(days=1),
        "data_interval_end": FIRST_DAY + timedelta(days=2),
    }

    class DagRun:
        run_type = "backfill"

    asked = request_of(
        submit(
            0,
            "visits_backfill",
            dag_run=DagRun(),
            params={"from": None, "to": None, "write": "replace"},
            **interval,
        )
    )
    assert asked["window"] == {"start": "2026-01-02T00:00:00Z", "end": "2026-01-03T00:00:00Z"}
    assert asked["write"] == "replace"
    assert (
        asked["backlog_bytes"]
        == (pipelines / "landing" / "visits" / "2026-01-02.json").stat().st_size
    )


def test_the_dag_that_verifies_asks_for_a_run_that_compares_and_fails_where_a_table_differs(
    submit, pipelines
):
    file = pipelines / "pipelines" / "visits.yaml"
    file.write_text("verify: '@weekly'\n" + file.read_text())
    asked = request_of(submit(0, "visits_verify", "verify"))
    assert asked["verify"] == {"share": 1.0} and "window" not in asked
    with pytest.raises(AirflowFailException, match="trying again would not help"):
        submit(int(ExitCode.TERMINAL), "visits_verify", "verify")


def test_a_backfill_by_hand_takes_its_range_from_the_parameters():
    window = choose_window(
        "manual", (None, None), {"from": "2026-01-01T00:00:00Z", "to": "2026-01-03T00:00:00+02:00"}
    )
    assert window == Window(
        start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime(2026, 1, 2, 22, tzinfo=UTC)
    )


@pytest.mark.parametrize(
    ("run_type", "params"),
    [
        ("manual", {}),
        ("manual", {"from": "2026-01-01T00:00:00Z"}),
        ("backfill", {"to": "2026-01-01T00:00:00Z"}),
        ("manual", {"from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}),
    ],
)
def test_half_a_range_or_an_empty_one_is_refused_with_what_to_write(run_type, params):
    with pytest.raises(ValueError, match="--from-date|write `from` and `to`|is not before"):
        choose_window(run_type, (FIRST_DAY, FIRST_DAY + timedelta(days=1)), params)


def test_killing_the_task_ends_the_driver(submit, pipelines, monkeypatch):
    """A pipe the driver holds open is what tells that it ran, and that it ended."""
    reader, writer = os.pipe()
    script = pipelines / "spark-submit"
    script.write_text(
        f"#!{sys.executable}\nimport os, time\nos.write({writer}, b'up')\ntime.sleep(600)\n"
    )
    script.chmod(0o755)
    operator = load_dags()[0]["visits"].get_task("run")
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *a, **k: popen(*a, **k | {"pass_fds": (writer,)})
    )
    ended = []

    def execute():
        try:
            operator.execute({"run_id": "manual__1", "ti": TaskInstance()})
        except AirflowException as failure:
            ended.append(failure)

    thread = threading.Thread(target=execute)
    thread.start()
    assert os.read(reader, 2) == b"up"
    os.close(writer)
    operator.on_kill()
    assert os.read(reader, 1) == b"", "the driver still holds its end of the pipe"
    thread.join(timeout=30)
    os.close(reader)
    assert "signal 9" in str(ended[0])
