"""What the pages ask Airflow's database: which DAGs are pipelines, and what became of a run that
left no report.
"""

from collections.abc import Iterable

from airflow.models.dag import DagTag
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from sqlalchemy import select

from ..orchestration.dag import BACKFILL


def _tags_of(dag_ids: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    with create_session() as session:
        for dag_id, tag in session.execute(
            select(DagTag.dag_id, DagTag.name).where(DagTag.dag_id.in_(list(dag_ids)))
        ):
            found.setdefault(dag_id, set()).add(tag)
    return found


def list_pipelines(dag_ids: Iterable[str]) -> list[str]:
    """Names of the pipelines among these DAGs; a backfill DAG belongs to its pipeline and is not
    named again."""
    return sorted(
        dag_id
        for dag_id, tags in _tags_of(dag_ids).items()
        if "sluice" in tags and "backfill" not in tags
    )


def pipeline_of(dag_id: str) -> str | None:
    """The pipeline a DAG belongs to, None when it is somebody else's DAG."""
    tags = _tags_of([dag_id]).get(dag_id, set())
    if "sluice" not in tags:
        return None
    return dag_id.removesuffix(BACKFILL) if "backfill" in tags else dag_id


def explain_missing_report(dag_id: str, run_id: str) -> str:
    """One or two sentences: why this run has no report, and what to do."""
    with create_session() as session:
        state = session.scalar(
            select(DagRun.state).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
        )
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
