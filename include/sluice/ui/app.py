"""The pages as a FastAPI application: who is asked for first, then what the reports say.

No page runs a script or loads anything from elsewhere.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity
from airflow.api_fastapi.core_api.security import (
    GetUserDep,
    requires_access_dag,
    requires_access_view,
)
from fastapi import Depends, FastAPI, Query
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader

from ..report import RunReport
from ..report.render import render_html
from ..report.store import latest_report, read_report, report_path
from ..storage import Paths
from .lookup import explain_missing_report, list_pipelines, pipeline_of

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def _page(template: str, status: int = 200, **values: object) -> HTMLResponse:
    return HTMLResponse(_TEMPLATES.get_template(template).render(**values), status, HEADERS)


def _rows(pipelines: Iterable[str]) -> list[tuple[str, RunReport | None]]:
    """(pipeline, its newest report or None), those that block first, then by name."""
    found = [(name, latest_report(Paths.under(None, name).reports())) for name in pipelines]
    return sorted(found, key=lambda row: (row[1] is None, not (row[1] and row[1].blocks), row[0]))


def show_overview(user: GetUserDep) -> HTMLResponse:
    """Every pipeline whose DAG the user may see: last run, balance line, failing rules, the way to
    the report."""
    visible = get_auth_manager().get_authorized_dag_ids(user=user, method="GET")
    return _page("overview.html", rows=_rows(list_pipelines(visible)))


def show_report(
    dag_id: Annotated[str, Query(max_length=250)], run_id: Annotated[str, Query(max_length=250)]
) -> HTMLResponse:
    """The HTML report of one run, as the run wrote it; else a sentence on why there is none and
    what to do."""
    pipeline = pipeline_of(dag_id)
    if pipeline is None:
        return _page(
            "message.html",
            404,
            title=dag_id,
            text="This DAG is not a Sluice pipeline, so its runs have no quality report.",
        )
    folder = Paths.under(None, pipeline).reports()
    try:
        report = read_report(folder, run_id)
    except FileNotFoundError:
        return _page(
            "message.html",
            404,
            title=f"{dag_id} · {run_id}",
            text=explain_missing_report(dag_id, run_id),
        )
    try:
        html = report_path(folder, run_id, "html").read_text(encoding="utf-8")
    except FileNotFoundError:
        html = render_html(report)
    return HTMLResponse(html, headers=HEADERS)


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
    app.get(
        "/report",
        response_class=HTMLResponse,
        dependencies=[Depends(requires_access_dag("GET", DagAccessEntity.RUN))],
    )(show_report)
    return app
