"""The pages as a FastAPI application: who is asked for first, then what the reports say.

No page that shows data runs a script or loads anything from elsewhere.
"""

from collections.abc import Callable, Iterable
from typing import Annotated
from urllib.parse import urlencode

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity
from airflow.api_fastapi.core_api.security import (
    GetUserDep,
    requires_access_dag,
    requires_access_view,
)
from fastapi import Depends, FastAPI, Query
from fastapi.responses import HTMLResponse

from ..errors import SluiceError
from ..orchestration.named import paths_of
from ..report import RunReport
from ..report.counts import FATES
from ..report.history import RunSummary, list_runs
from ..report.render import render_html
from ..report.store import read_report, report_path
from .history import MAX_RUNS, read_history
from .leave import show_way_out
from .lookup import (
    explain_missing_report,
    is_idle,
    is_verification,
    list_pipelines,
    pipeline_of,
)
from .page import HEADERS, draw, show_page
from .quarantine import MAX_ROWS, read_quarantines

_DagId = Annotated[str, Query(max_length=250)]
_RunId = Annotated[str, Query(max_length=250)]


def _reports(pipeline: str) -> str:
    return paths_of(pipeline).reports()


def _find_worked(runs: Iterable[RunSummary]) -> RunSummary | None:
    """The newest run that had something to do."""
    return next((run for run in runs if not run.idle), None)


def _last_runs(pipeline: str) -> tuple[str, RunSummary | None, RunSummary | None]:
    """(pipeline, its newest run, the newest that was not idle)."""
    newest = next(iter(list_runs(_reports(pipeline), 1)), None)
    idle = newest is not None and newest.idle
    return pipeline, newest, _find_worked(list_runs(_reports(pipeline), MAX_RUNS)) if idle else None


def _last_verified(pipeline: str) -> RunSummary | None:
    """The newest run that compared its tables with what their inputs give."""
    return next(iter(list_runs(paths_of(pipeline).verdicts(), 1)), None)


def show_overview(user: GetUserDep) -> HTMLResponse:
    """Every pipeline whose DAG the user may see: last run, balance line, failing rules, the way to
    the report. Those that block come first, then by name."""
    visible = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    names = list_pipelines(visible)
    rows = [_last_runs(name) for name in names]
    verified = {name: _last_verified(name) for name in names}
    rows.sort(key=lambda row: (row[1] is None, not (row[1] and row[1].blocks), row[0]))
    return show_page("overview.html", rows=rows, verified=verified)


def _show_stranger(dag_id: str) -> HTMLResponse:
    text = "This DAG is not a Sluice pipeline, so its runs have no quality report."
    return show_page("message.html", 404, title=dag_id, text=text)


def show_history(dag_id: _DagId) -> HTMLResponse:
    """The last runs of a pipeline: the fates of their rows as bars, the rules that failed."""
    pipeline = pipeline_of(dag_id)
    if pipeline is None:
        return _show_stranger(dag_id)
    entries = read_history(pipeline)
    return show_page("history.html", name=pipeline, entries=entries, fates=FATES)


def show_quarantine(
    dag_id: _DagId, reason: Annotated[str | None, Query(max_length=1000)] = None
) -> HTMLResponse:
    """The refused rows of a pipeline: reasons, counts and the newest rows, masked and cut."""
    pipeline = pipeline_of(dag_id)
    if pipeline is None:
        return _show_stranger(dag_id)
    try:
        found, problem = read_quarantines(pipeline, reason), ""
    except SluiceError as error:
        found, problem = [], str(error)
    return show_page(
        "quarantine.html",
        name=pipeline,
        quarantines=found,
        reason=reason,
        most=MAX_ROWS,
        problem=problem,
    )


def show_report(
    dag_id: _DagId, run_id: _RunId, kind: Annotated[str, Query(max_length=20)] = ""
) -> HTMLResponse:
    """The HTML report of one run, as the run wrote it, under links; else a sentence on why there
    is none and what to do. Args: kind: `verification` for one that another DAG, or a person, has
    run."""
    pipeline = pipeline_of(dag_id)
    if pipeline is None:
        return _show_stranger(dag_id)
    verifies = kind == "verification" or is_verification(dag_id, pipeline)
    folder = paths_of(pipeline).verdicts() if verifies else _reports(pipeline)
    try:
        report = read_report(folder, run_id)
    except FileNotFoundError:
        idle = is_idle(dag_id, run_id)
        return show_page(
            "message.html",
            404,
            title=f"{dag_id} · {run_id}",
            text=explain_missing_report(dag_id, run_id),
            name=pipeline,
            dag_id=dag_id,
            worked=_find_worked(list_runs(folder, MAX_RUNS)) if idle else None,
        )
    ways = draw("report_ways.html", name=pipeline, dag_id=dag_id, run_id=run_id)
    html = _read_html(folder, report)
    return HTMLResponse(html.replace("<main>", f"<main>{ways}", 1), headers=HEADERS)


def _read_html(folder: str, report: RunReport) -> str:
    """The page that the run wrote; drawn again where it is lost, and where it would link a file
    beside it."""
    if report.status == "nothing new":
        return render_html(report, _link_last(folder, report.pipeline))
    try:
        return report_path(folder, report.run_id, "html").read_text(encoding="utf-8")
    except FileNotFoundError:
        return render_html(report)


def _link_last(folder: str, pipeline: str) -> tuple[RunSummary, str] | None:
    """The last run with something to do, and the way to its report among these pages."""
    last = _find_worked(list_runs(folder, MAX_RUNS))
    if last is None:
        return None
    return last, f"report?{urlencode({'dag_id': pipeline, 'run_id': last.run_id})}"


def create_app() -> FastAPI:
    """The application Airflow mounts at `/sluice`: 401 without a login, 403 without the right to
    see the DAG."""
    app = FastAPI(
        dependencies=[Depends(requires_access_view(AccessView.PLUGINS))],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.get("/", response_class=HTMLResponse)(show_overview)
    of_a_dag = [Depends(requires_access_dag("GET", DagAccessEntity.RUN))]
    pages: dict[str, Callable[..., HTMLResponse]] = {
        "/history": show_history,
        "/quarantine": show_quarantine,
        "/report": show_report,
        "/open": show_way_out,
    }
    for path, show in pages.items():
        app.get(path, response_class=HTMLResponse, dependencies=of_a_dag)(show)
    return app
