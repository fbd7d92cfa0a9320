"""What Airflow loads: the pages, the timetables and the listener.

Every Airflow process imports this file, so it imports nothing heavy.
"""

from functools import cache

from airflow.plugins_manager import AirflowPlugin

from ..orchestration import pools
from ..orchestration.timetable import BackfillCronTimetable, BackfillDeltaTimetable


@cache
def _load_app():
    from .app import create_app

    return create_app()


async def serve(scope, receive, send) -> None:
    """The pages as an ASGI application that is built at the first request: the scheduler and the
    workers never need FastAPI."""
    await _load_app()(scope, receive, send)


class SluicePlugin(AirflowPlugin):
    """The entry point `airflow.plugins` names this class."""

    name = "sluice"
    fastapi_apps = [{"app": serve, "url_prefix": "/sluice", "name": "sluice"}]
    external_views = [
        {
            "name": "Data quality",
            "href": "sluice/",
            "destination": "nav",
            "url_route": "data-quality",
            "nav_top_level": True,
        },
        {
            "name": "Quality report",
            "href": "sluice/report?dag_id={DAG_ID}&run_id={RUN_ID}",
            "destination": "dag_run",
            "url_route": "quality-report",
        },
    ]
    listeners = [pools]
    timetables = [BackfillCronTimetable, BackfillDeltaTimetable]
