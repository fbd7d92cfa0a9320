"""What happens before and after Spark: plain functions, and the Airflow tasks that wrap them."""

import logging
import os
from datetime import datetime

from airflow.sdk import task
from airflow.sdk.exceptions import AirflowFailException

from ..backlog import StepBacklog, measure_pipeline, note_idle_audits
from ..errors import SluiceError
from ..report.model import Outcome, RuleResult, RunReport
from ..report.store import list_reports, read_report
from ..spec import load_pipeline
from .assets import step_asset
from .connections import export_connections
from .named import paths_of, pipelines_folder

log = logging.getLogger(__name__)
BACKLOG_KEY, SUMMARY_KEY = "backlog", "quality"


def summarize_backlog(backlog: list[StepBacklog]) -> dict:
    """JSON for XCom: must_run, reason, amount (text), files, records, commits, bytes (None where
    the backlog could not be measured), oldest (ISO time or None), warnings."""
    weights = [step.weight for step in backlog]
    oldest: list[datetime] = [step.oldest for step in backlog if step.oldest]
    return {
        "must_run": any(step.must_run for step in backlog),
        "reason": "; ".join(f"{step.step}: {step.reason}" for step in backlog),
        "amount": ", ".join(step.amount for step in backlog if step.amount) or "nothing",
        **{
            unit: sum(getattr(step, unit) for step in backlog)
            for unit in ("files", "records", "commits")
        },
        "bytes": None if None in weights else sum(weights),
        "oldest": min(oldest).isoformat() if oldest else None,
        "warnings": [warning for step in backlog for warning in step.warnings],
    }


def probe(pipeline_file: str) -> dict:
    """Measure a pipeline's backlog without a JVM; see `summarize_backlog`. In doubt the answer is
    "run".

    Raises SluiceError where running cannot help: the YAML cannot be read, or the landing folder
    does not exist.
    """
    pipeline = load_pipeline(pipelines_folder() / pipeline_file)
    os.environ.update(export_connections(pipeline))
    paths = pipeline.paths()
    try:
        backlog = measure_pipeline(pipeline, paths)
        note_idle_audits(pipeline, paths, backlog)
        return summarize_backlog(backlog)
    except SluiceError:
        raise
    except Exception as error:
        log.exception("The backlog could not be measured")
        return {
            "must_run": True,
            "reason": f"the backlog could not be measured ({error}), so the run decides",
            "amount": "an unknown amount",
            "files": 0,
            "records": 0,
            "commits": 0,
            "bytes": None,
            "oldest": None,
            "warnings": [],
        }


def describe_saving(pipeline_name: str) -> str:
    """One sentence on what not starting Spark saved, taken from the last reports."""
    reports = [
        r for r in list_reports(paths_of(pipeline_name).reports(), limit=5) if r.core_seconds
    ]
    if not reports:
        return "No Spark was started."
    seconds, cores = (
        sum(values) / len(reports)
        for values in zip(*((r.seconds_up, r.core_seconds) for r in reports), strict=True)
    )
    return (
        f"No Spark was started: that saved about {seconds:.0f} s and {cores:.0f} core-seconds, the "
        f"mean of the last {len(reports)} run(s)."
    )


def describe_rule(rule: RuleResult) -> str:
    """A rule that did not pass, for an error message."""
    if rule.outcome is Outcome.ERROR:
        return f"`{rule.name}` could not be evaluated ({rule.message})"
    found = (
        f" ({rule.unexpected:,} of {rule.evaluated:,} rows)"
        if rule.unexpected is not None and rule.evaluated
        else ""
    )
    return f"`{rule.name}` failed{found}"


def explain_block(report: RunReport) -> str:
    """Why nothing downstream may run: the rules by name first."""
    rules = [
        describe_rule(rule)
        for rule in report.failed_rules
        if rule.on_fail == "stop" or rule.outcome is Outcome.ERROR
    ]
    unbalanced = [
        f"step {step.name} does not balance: {step.counts.line}"
        for step in report.steps
        if not step.counts.balanced
    ]
    reasons = rules + unbalanced or [report.error or report.status]
    return (
        f"{report.pipeline} blocks what is downstream: {'; '.join(reasons)}. See the tab `Quality "
        "report` of this run."
    )


def summarize_report(report: RunReport) -> dict:
    """JSON for XCom: status, balance line, counts, names of the rules that did not pass; never
    values of rows."""
    return {
        "status": report.status,
        "line": report.counts.line,
        "counts": report.counts.model_dump(),
        "failed_rules": [rule.name for rule in report.failed_rules],
        "seconds_up": report.seconds_up,
        "core_seconds": report.core_seconds,
    }


def find_report(pipeline_name: str, run_id: str) -> RunReport:
    """The report of a run. Raises FileNotFoundError, with what to do, when there is none."""
    folder = paths_of(pipeline_name).reports()
    try:
        return read_report(folder, run_id)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"No report of run {run_id} in {folder}: the worker that ran Spark keeps its reports "
            "elsewhere. "
            "Set SLUICE_ROOT to one place that all workers share."
        ) from None


def probe_backlog(pipeline_file: str, ti) -> bool:
    """Body of the task `probe`: True lets Spark start, False skips what follows."""
    try:
        backlog = probe(pipeline_file)
    except SluiceError as error:
        raise AirflowFailException(str(error)) from error
    ti.xcom_push(BACKLOG_KEY, backlog)
    log.info("%s (%s waiting)", backlog["reason"], backlog["amount"])
    for warning in backlog["warnings"]:
        log.warning(warning)
    if not backlog["must_run"]:
        log.info(describe_saving(load_pipeline(pipelines_folder() / pipeline_file).name))
    return backlog["must_run"]


def judge_report(pipeline_name: str, run_id: str, ti, outlet_events) -> None:
    """Body of the task `gate`: publish an asset event per step with its counts, or fail with the
    names of the rules that block."""
    try:
        report = find_report(pipeline_name, run_id)
    except (FileNotFoundError, SluiceError) as error:
        raise AirflowFailException(str(error)) from error
    ti.xcom_push(SUMMARY_KEY, summarize_report(report))
    log.info(report.counts.line)
    if report.blocks:
        raise AirflowFailException(explain_block(report))
    about = {
        "pipeline": report.pipeline,
        "run_id": report.run_id,
        "kind": report.kind,
        "window": report.window,
        "status": report.status,
    }
    for step in report.steps:
        outlet_events[step_asset(report.pipeline, step.name)].extra = about | {
            "counts": step.counts.model_dump(),
            "versions": step.versions,
        }


@task.short_circuit(task_id="probe")
def probe_task(pipeline_file: str, ti=None) -> bool:
    """Is anything new? Skips Spark and everything after it when nothing is."""
    return probe_backlog(pipeline_file, ti)


@task(task_id="gate")
def gate_task(pipeline_name: str, run_id=None, ti=None, outlet_events=None) -> None:
    """Does the report allow what is downstream?"""
    judge_report(pipeline_name, run_id, ti, outlet_events)
