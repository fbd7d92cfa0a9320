"""What the pages ask Airflow's database: which DAGs are pipelines, and what became of a run that
left no report.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from airflow.models.dag import DagTag
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from sqlalchemy import select

from ..orchestration.dag import BACKFILL, VERIFY
from ..report.units import to_utc

_MOST_SILENT = 500


@dataclass(frozen=True)
class SilentRun:
    """A run that ended and may have left no report. `moment`: it started, UTC. `idle`: it
    succeeded, so there was nothing to report."""

    dag_id: str
    run_id: str
    moment: datetime
    idle: bool


def _tags_of(dag_ids: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    with create_session() as session:
        for dag_id, tag in session.execute(
            select(DagTag.dag_id, DagTag.name).where(DagTag.dag_id.in_(list(dag_ids)))
        ):
            found.setdefault(dag_id, set()).add(tag)
    return found


def list_pipelines(dag_ids: Iterable[str]) -> list[str]:
    """Names of the pipelines among these DAGs; one that backfills or verifies belongs to its
    pipeline and is not named again."""
    return sorted(
        dag_id
        for dag_id, tags in _tags_of(dag_ids).items()
        if "sluice" in tags and not tags & {"backfill", "verify"}
    )


def pipeline_of(dag_id: str) -> str | None:
    """The pipeline a DAG belongs to, None when it is somebody else's DAG."""
    tags = _tags_of([dag_id]).get(dag_id, set())
    if "sluice" not in tags:
        return None
    own = {"backfill": BACKFILL, "verify": VERIFY}
    return next((dag_id.removesuffix(own[tag]) for tag in own if tag in tags), dag_id)


def is_verification(dag_id: str, pipeline: str) -> bool:
    """True for the DAG that verifies a pipeline."""
    return dag_id == pipeline + VERIFY


def list_silent_runs(pipeline: str, since: datetime | None) -> list[SilentRun]:
    """The ended runs of a pipeline's two DAGs, newest first, at most a few hundred.

    Args: since: only those that started later.
    """
    query = select(DagRun.dag_id, DagRun.run_id, DagRun.start_date, DagRun.state).where(
        DagRun.dag_id.in_([pipeline, f"{pipeline}{BACKFILL}"]),
        DagRun.state.in_(["success", "failed"]),
        DagRun.start_date.is_not(None),
    )
    if since is not None:
        query = query.where(DagRun.start_date > since)
    with create_session() as session:
        found = session.execute(query.order_by(DagRun.start_date.desc()).limit(_MOST_SILENT)).all()
    return [
        SilentRun(dag_id, run_id, to_utc(started), state == "success")
        for dag_id, run_id, started, state in found
        if started is not None
    ]


def _state_of(dag_id: str, run_id: str) -> str | None:
    with create_session() as session:
        return session.scalar(
            select(DagRun.state).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
        )


def is_idle(dag_id: str, run_id: str) -> bool:
    """True for a run without a report that succeeded: nothing was new."""
    return _state_of(dag_id, run_id) == "success"


def explain_missing_report(dag_id: str, run_id: str) -> str:
    """One or two sentences: why this run has no report, and what to do."""
    state = _state_of(dag_id, run_id)
    if state is None:
        return "Airflow knows no such run. Open the tab from the run itself."
    if state in ("queued", "running"):
        return (
            "This run has not reported yet. The report appears when its task `run` ends; open the "
            "tab again then."
        )
    if state == "success":
        return (
            "Nothing was new, so Spark did not start and there is nothing to report. The log of "
            "the task `probe` says what that saved."
        )
    return "This run ended before it could report. Read the log of the task that failed."
