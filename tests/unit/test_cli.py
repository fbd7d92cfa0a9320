"""The command line says what it found in one sentence, and its exit code means what the README
says.
"""

import hashlib
import io
import json
import logging
import re
import subprocess
import sys
import time
import warnings
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from rich.console import Console
from sluice import runner
from sluice.checkpoint import HeldBefore, note_told, open_manifest
from sluice.cli import app
from sluice.cli import progress as progress_module
from sluice.errors import ExitCode
from sluice.report import Advance, BatchReport, Counts, RunReport, StepReport, write_report
from sluice.setup import fetch, jars
from sluice.spec import Pipeline, load_pipeline
from sluice.storage import PIPELINES, PROJECT, Paths, spark_folder
from typer.testing import CliRunner

YAML = """
name: visits
schedule: "30 minutes"
steps:
  - name: pages
    source: {{path: {landing}, format: json, schema: {{id: bigint, at: timestamp}}}}
    event_time: {{column: at}}
    dedup: {{keys: [id], within: 2 days}}
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder of one pipeline, `visits`, over a landing folder with one file, and `root/`."""
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "1.json").write_text('{"id": 1, "at": "2026-01-01T00:00:00Z"}\n')
    (tmp_path / "pipelines" / "visits.yaml").write_text(YAML.format(landing=tmp_path / "landing"))
    monkeypatch.setenv("SLUICE_PIPELINES", str(tmp_path / "pipelines"))
    monkeypatch.setenv("SLUICE_ROOT", str(tmp_path / "root"))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def call(*arguments: object):
    """Run `sluice` and return what it printed and its exit code; an exception of ours would be
    raised here."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def make_report(
    status: str = "done",
    exit_code: ExitCode = ExitCode.DONE,
    error: str | None = None,
    run_id: str = "r1",
) -> RunReport:
    """A report of 3 rows, 2 of them written."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    counts = Counts(read=3, entered=3, made=3, written=2, duplicate=1)
    step = StepReport(
        name="pages",
        target="/t",
        quarantine="/q",
        counts=counts,
        batches=[BatchReport(batch_id=0, counts=counts)],
    )
    return RunReport(
        pipeline="visits",
        run_id=run_id,
        started=now,
        ended=now,
        status=status,
        exit_code=exit_code,
        error=error,
        steps=[step],
    )


def test_list_shows_schedule_and_the_last_balance(project):
    assert "every 30 minutes" in call("list").stdout
    assert "never" in call("list").stdout
    write_report(make_report(), Paths.under(None, "visits").reports())
    line = "3 read = 2 written + 0 quarantined + 1 duplicate + 0 late + 0 filtered"
    assert line in call("list").stdout


def test_list_fits_80_columns_with_long_names_and_many_pipelines(project, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    long = "orders_of_every_shop_in_the_whole_wide_world_by_day"
    text = (project / "pipelines" / "visits.yaml").read_text()
    for name in (long, *(f"p{number}" for number in range(40))):
        (project / "pipelines" / f"{name}.yaml").write_text(text.replace("visits", name))
        write_report(make_report("stopped by a rule"), Paths.under(None, name).reports())
    lines = call("list").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert long in "".join(line.split(" ")[0] for line in lines)  # folded, and not cut
    assert sum("stopped by a rule" in line for line in lines) == 41
    assert len(lines) < 50


def test_list_shows_the_others_when_one_file_is_broken(project):
    (project / "pipelines" / "bad.yaml").write_text("name: bad\ncolour: red\n")
    result = call("list")
    assert "visits" in result.stdout
    assert "colour: unknown field" in result.stderr
    assert result.exit_code == ExitCode.TERMINAL


def test_validate_names_every_broken_file_and_checks_the_rest(project):
    (project / "pipelines" / "bad.yaml").write_text("name: bad\nsteps: []\n")
    (project / "pipelines" / "worse.yaml").write_text("[")
    result = call("validate")
    assert "ok  visits" in result.stdout
    assert "bad.yaml: steps: List should have at least 1 item" in result.stderr
    assert "worse.yaml: not readable as YAML" in result.stderr
    assert result.exit_code == ExitCode.TERMINAL
    assert call("validate", "visits").exit_code == ExitCode.DONE


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("@dayly", "no preset of Airflow's (got '@dayly'). Did you mean '@daily'?"),
        ("@sometimes", "no preset of Airflow's (got '@sometimes'). There are @hourly, @daily"),
        ("0 25 * * *", "not a cron expression Airflow understands: [0 25 * * *] is not acceptable"),
        ("*/0 * * * *", "not a cron expression Airflow understands"),
        ("0 0 31 2 *", "a cron expression whose day never comes (got '0 0 31 2 *')"),
        ("every day", "not a schedule; write cron ('0 6 * * *'), a preset ('@daily')"),
    ],
)
def test_validate_asks_airflows_parser_for_the_schedule(project, schedule, said):
    file = project / "pipelines" / "visits.yaml"
    text = file.read_text().replace('schedule: "30 minutes"', f"schedule: '{schedule}'")
    file.write_text(text)
    result = call("validate", "visits")
    assert f"visits.yaml: schedule: {said}" in result.stderr
    assert result.exit_code == ExitCode.TERMINAL


def test_validate_says_what_it_did_not_check_and_explains_when_asked(project):
    short, long = call("validate", "visits").stdout, call("validate", "visits", "--explain").stdout
    assert "not checked: columns, SQL, Python and rules" in short
    assert "exact for every cut of the backlog" not in short
    assert "exact for every cut of the backlog" in long


SEVERAL = """
name: several
steps:
  - {name: a, source: &in {path: in, format: text, schema: {value: string}}, sink: {mode: append}}
  - {name: b, source: *in, sink: {mode: append}}
  - {name: c, source: {kind: table, step: a}, sink: {mode: append}}
"""


def test_validate_explains_which_steps_wait_for_which(project):
    (project / "pipelines" / "several.yaml").write_text(SEVERAL)
    told = call("validate", "several", "--explain").stdout
    assert "a: waits for no other step" in told and "b: waits for no other step" in told
    assert "c: waits for a\n" in told and "steps that run at once, at most: 2" in told
    assert "waits for" not in call("validate", "visits", "--explain").stdout


def test_validate_explains_how_large_a_state_has_become(project):
    checkpoint = Paths.under(str(project / "root"), "visits").checkpoint("pages")
    store = Path(spark_folder(checkpoint), "state", "0", "0")
    store.mkdir(parents=True)
    (store / "1_a.changelog").write_bytes(b"x" * 1200)
    open_manifest(checkpoint)
    note_told(checkpoint, {}, HeldBefore("r7", {"0": 12_000}))
    told = "pages: its state held 12,000 entries, 1.2 kB after run r7"
    assert told in call("validate", "visits", "--explain").stdout
    assert told not in call("validate", "visits").stdout


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("path: /no/such/folder", "/no/such/folder: the landing folder does not exist"),
        ("pattern: '*.jsn'", "has a name like '*.jsn' yet"),
        (
            "file_date: '%Y-%m-%d'",
            "none of 2 file names carry a date by '%Y-%m-%d', and a backfill leaves the others "
            "out (first: 1.json)",
        ),
        ("file_date: '%Y'", "1 of 2 file names carry a date by '%Y'"),
    ],
)
def test_validate_looks_at_the_landing_folder_and_warns(project, more, said):
    (project / "landing" / "2_2026.json").write_text("")
    file, field = project / "pipelines" / "visits.yaml", more.partition(":")[0]
    source = f"source: {{path: {project / 'landing'}, format: json"
    kept = source if field != "path" else "source: {format: json"
    file.write_text(file.read_text().replace(source, f"{kept}, {more}"))
    result = call("validate", "visits")
    assert said in result.stderr.replace("\n", " ")
    assert "warning: pages: source" in result.stderr
    assert result.exit_code == ExitCode.DONE  # the files may come later


def test_validate_names_a_transform_that_is_not_there(project):
    file = project / "pipelines" / "visits.yaml"
    file.write_text(file.read_text() + "    transform: visits.sql\n")
    assert "visits.pages: transform visits.sql: no such file" in call("validate", "visits").stderr


def test_plan_says_what_waits_without_starting_spark(project):
    result = call("plan", "visits")
    assert result.exit_code == 0
    assert "visits.pages: would run Spark over 1 file(s), 40 bytes" in result.stdout
    assert "checkpoint: none yet" in result.stdout


def test_plan_exits_with_3_when_nothing_is_new(project):
    (project / "landing" / "1.json").unlink()
    result = call("plan", "visits")
    assert "nothing to do, no JVM would start" in result.stdout
    assert result.exit_code == ExitCode.NOTHING_NEW


def test_a_landing_folder_that_is_not_there_is_one_red_sentence(project):
    (project / "landing" / "1.json").unlink()
    (project / "landing").rmdir()
    result = call("plan", "visits")
    assert "the landing folder does not exist" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.exit_code == ExitCode.TERMINAL


def test_a_name_that_is_not_there_lists_those_that_are(project):
    result = call("run", "visit")
    assert "no pipeline named 'visit'. There are: visits" in result.stderr
    assert result.exit_code == ExitCode.TERMINAL


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("done", ExitCode.DONE),
        ("nothing new", ExitCode.NOTHING_NEW),
        ("stopped by a rule", ExitCode.STOPPED_BY_RULE),
        ("failed", ExitCode.TRANSIENT),
        ("failed", ExitCode.TERMINAL),
    ],
)
def test_run_exits_with_the_reports_code_and_prints_the_report(project, monkeypatch, status, code):
    error = "the broker is away" if status == "failed" else None
    monkeypatch.setattr(
        runner, "run_pipeline", lambda request, progress: make_report(status, code, error)
    )
    result = call("run", "visits")
    assert result.exit_code == code
    assert status.upper() in result.stdout
    assert ("the broker is away" in result.stderr) is (error is not None)


@pytest.mark.parametrize("errors", [subprocess.STDOUT, subprocess.PIPE], ids=["one", "two"])
def test_an_error_is_told_once_in_each_place(project, errors):
    (project / "landing" / "1.json").unlink()
    (project / "landing").rmdir()
    done = subprocess.run(
        [sys.executable, "-m", "sluice.cli", "run", "visits"],
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        check=False,
    )
    assert done.returncode == ExitCode.TERMINAL
    told = [" ".join(text.split()) for text in (done.stdout, done.stderr or "")]
    each = [text.count("landing folder does not exist") for text in told]
    assert each == [1, int(errors == subprocess.PIPE)]


def test_ctrl_c_during_a_run_says_what_stays_and_names_no_log(project, monkeypatch):
    def run_pipeline(request, progress):
        logging.getLogger("sluice.any").warning("no more than that")
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_pipeline", run_pipeline)
    result = call("run", "visits")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.startswith("interrupted: what was committed stays")
    assert len(result.stderr.splitlines()) == 1


def test_what_is_logged_during_a_verb_is_in_the_log_that_a_failure_names(
    project, monkeypatch, capsys
):
    def run_pipeline(request, progress):
        logging.getLogger("sluice.any").warning("the finest detail")
        warnings.warn("of a library", FutureWarning, stacklevel=1)
        return make_report("failed", ExitCode.TRANSIENT, "it broke")

    monkeypatch.setattr(runner, "run_pipeline", run_pipeline)
    result = call("run", "visits")
    assert "finest detail" not in result.output + "".join(capsys.readouterr())
    log = Path(result.stderr.splitlines()[-1].removeprefix("What Spark itself said: "))
    assert "WARNING sluice.any: the finest detail" in log.read_text()
    assert "FutureWarning: of a library" in log.read_text()
    assert "of a library" not in result.output
    log.unlink()


def test_run_tells_each_batch_and_the_true_percentage(project, monkeypatch):
    def run_pipeline(request, progress):
        batch = BatchReport(batch_id=0, counts=Counts(read=3, entered=3, made=3, written=3))
        progress.tell(Advance("pages", 0, 200))
        progress.tell(Advance("pages", 50, 200, 3, batch))
        assert not progress.each_second
        return make_report()

    monkeypatch.setattr(runner, "run_pipeline", run_pipeline)
    assert "pages:  25.0 %, batch 0: 3 read = 3 written" in call("run", "visits").stderr


def test_on_a_terminal_a_bar_moves_within_a_batch_with_rows_a_second_and_the_time_left(monkeypatch):
    terminal = Console(force_terminal=True, width=140, file=io.StringIO())
    monkeypatch.setattr(progress_module, "terminal", terminal)
    with progress_module.show_progress() as progress:
        assert progress.each_second
        for done in (10, 30, 45.5):
            progress.tell(Advance("pages", done, 200, int(done * 100)))
            time.sleep(0.15)  # bars are drawn ten times a second
    shown = terminal.file.getvalue()
    assert "starting Spark" in shown and "22.8 %" in shown
    assert re.search(r"4,550 rows, [1-9][\d,]*/s", shown) and "left:" in shown


def test_an_idle_run_names_the_last_one_with_something_to_do(project, monkeypatch):
    idle = make_report("nothing new", run_id="idle")
    idle = idle.model_copy(update={"steps": [], "exit_code": ExitCode.NOTHING_NEW})
    monkeypatch.setattr(runner, "run_pipeline", lambda *_: idle)
    assert "something to do" not in call("run", "visits").stdout
    write_report(make_report(run_id="monday"), Paths.under(None, "visits").reports())
    shown = call("run", "visits").stdout
    assert "The last run with something to do was monday: 3 read = 2 written" in shown
    assert "sluice report visits" in shown


def test_run_passes_root_master_and_a_file_outside_the_project(project, monkeypatch):
    asked = []
    monkeypatch.setattr(
        runner, "run_pipeline", lambda request, progress: asked.append(request) or make_report()
    )
    file = project / "elsewhere.yaml"
    file.write_text((project / "pipelines" / "visits.yaml").read_text())
    call("run", "--spec", file, "--root", project / "other", "--master", "local[1]")
    assert (asked[0].pipeline, asked[0].root, asked[0].master, asked[0].window) == (
        str(file),
        str(project / "other"),
        "local[1]",
        None,
    )


def test_backfill_asks_for_a_window_in_utc(project, monkeypatch):
    asked = []
    monkeypatch.setattr(
        runner, "run_pipeline", lambda request, progress: asked.append(request) or make_report()
    )
    assert (
        call(
            "backfill",
            "visits",
            "--from",
            "2026-01-01",
            "--to",
            "2026-01-02T12:00:00",
            "--write",
            "replace",
        ).exit_code
        == 0
    )
    assert asked[0].window.start == datetime(2026, 1, 1, tzinfo=UTC)
    assert asked[0].window.end == datetime(2026, 1, 2, 12, tzinfo=UTC)
    assert asked[0].write == "replace"


def test_backfill_refuses_an_empty_range(project):
    result = call("backfill", "visits", "--from", "2026-01-02", "--to", "2026-01-01")
    assert "the range is empty" in result.stderr
    assert result.exit_code == ExitCode.TERMINAL


def test_report_shows_the_newest_run_or_the_one_that_is_named(project):
    folder = Paths.under(None, "visits").reports()
    for run_id in ("r1", "r2"):
        write_report(make_report(run_id=run_id), folder)
    assert "run r2" in call("report", "visits").stdout
    assert "run r1" in call("report", "visits", "--run", "r1").stdout
    path = Path(call("report", "visits", "--run", "r1", "--html").stdout.strip())
    assert path.read_text().lower().startswith("<!doctype html>")
    earlier = path.with_name("r1.1")  # what an earlier try of the run told
    for suffix in (".json", ".html"):
        path.with_suffix(suffix).rename(f"{earlier}{suffix}")
    shown = call("report", "visits", "--run", "r1.1", "--html").stdout.strip()
    assert shown == f"{earlier}.html"


@pytest.mark.parametrize("arguments", [[], ["--run", "nope"]])
def test_report_says_what_to_do_when_there_is_none(project, arguments):
    result = call("report", "visits", *arguments)
    assert "`sluice run visits` makes one" in result.stderr
    assert result.exit_code == ExitCode.TERMINAL


def test_schema_is_the_json_schema_of_a_pipeline(project):
    assert json.loads(call("schema").stdout) == Pipeline.model_json_schema()


def test_the_schema_that_editors_read_is_the_one_of_today():
    shipped = json.loads((PIPELINES / "pipeline.schema.json").read_text())
    assert shipped == Pipeline.model_json_schema(), "run `make schema`"


def test_infer_proposes_a_schema(project):
    assert yaml.safe_load(call("infer", project / "landing").stdout) == {
        "format": "json",
        "schema": {"id": "bigint", "at": "timestamp"},
    }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere.json"], "no such file"),
        (["."], "the folder holds no file"),
        (["data.xyz"], "the file's name does not say its format"),
    ],
)
def test_infer_says_what_is_missing(project, monkeypatch, arguments, says):
    empty = project / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    if arguments == ["data.xyz"]:
        (empty / "data.xyz").write_text("1")
    assert says in call("infer", *arguments).stderr


@pytest.mark.parametrize("sample", [None, "landing"])
def test_new_writes_a_pipeline_its_sql_and_a_test(project, monkeypatch, sample):
    monkeypatch.setattr("sluice.cli.author.PROJECT", project)
    result = call("new", "clicks", *(["--from", project / sample] if sample else []))
    assert result.exit_code == 0
    pipeline = load_pipeline(project / "pipelines" / "clicks.yaml")
    assert pipeline.steps[0].source.columns["id"] == ("bigint" if sample else "string")
    assert "FROM source" in (project / "pipelines" / "clicks.sql").read_text()
    again = call("new", "clicks")
    assert "the file is already there" in again.stderr
    assert again.exit_code == ExitCode.TERMINAL


@pytest.mark.parametrize("name", ["clicks", "c" * 63])
@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_the_test_that_new_writes_passes_the_linters(project, monkeypatch, name, format):
    monkeypatch.setattr("sluice.cli.author.PROJECT", project)
    assert call("new", name, "--format", format).exit_code == 0
    written = str(project / "tests" / "pipelines" / f"test_{name}.py")
    ruff = [sys.executable, "-m", "ruff", "--config", str(PROJECT / "pyproject.toml")]
    for command in (["check", "--extend-select", "E501"], ["format", "--diff"]):
        done = subprocess.run([*ruff, *command, written], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_new_refuses_a_name_that_no_pipeline_can_have(project):
    assert "not a pipeline name (got 'My-Clicks')" in call("new", "My-Clicks").stderr
    assert [path.name for path in (project / "pipelines").iterdir()] == ["visits.yaml"]


def test_jars_fetch_names_the_sets_there_are(project):
    result = call("jars", "fetch", "hive")
    assert "There are: core, avro, kafka, s3, jdbc" in result.stderr
    assert result.exit_code == ExitCode.TERMINAL


def test_jars_fetch_shows_each_jar_and_keeps_it(project, monkeypatch):
    content = b"a jar"
    jar = jars.Jar(
        "core", "com.example:thing:1.0", len(content), hashlib.sha256(content).hexdigest()
    )
    monkeypatch.setattr(jars, "_read_lock", lambda: {"core": (jar,)})
    monkeypatch.setattr(
        fetch, "download", lambda _, folder: (folder / "thing-1.0.jar").write_bytes(content)
    )
    monkeypatch.setenv("SLUICE_CACHE", str(project / "cache"))
    assert "fetched thing-1.0.jar" in call("jars", "fetch", "core").stdout
    assert "kept    thing-1.0.jar" in call("jars", "fetch", "core").stdout


def test_a_trial_is_asked_for_with_its_seconds_and_says_where_it_writes(project, monkeypatch):
    asked = []
    monkeypatch.setattr(
        runner, "run_pipeline", lambda request, progress: asked.append(request) or make_report()
    )
    assert "only a trial ends after some seconds" in call("run", "visits", "--seconds", "3").stderr
    shown = call("run", "visits", "--dev", "--seconds", "3").stderr
    call("run", "visits", "--dev")
    call("run", "visits")
    assert [request.dev_seconds for request in asked] == [3, 10, None]
    assert f"/dev/{asked[0].run_id}" in shown
