"""What Airflow loads: the pages, the timetables and the listener.

Every Airflow process imports this file, so it imports nothing heavy.
"""

from functools import cache
from urllib.parse import quote

from airflow.plugins_manager import AirflowPlugin

from ..orchestration import pools
from ..orchestration.timetable import BackfillCronTimetable, BackfillDeltaTimetable

_SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="{color}" '
    'stroke-width="{width}" stroke-linecap="round" stroke-linejoin="round">{ground}'
    '<path fill="{color}" d="M9.5 4.5h5v6.5h-5z"/>'
    '<path d="M4.8 4.5v15M19.2 4.5v15M8 17.8q2-2.8 4 0t4 0"/>'
    "</svg>"
)
_TILE = '<rect width="24" height="24" rx="5" fill="#3f5a80" stroke="none"/>'


def _draw_icon(color: str, width: float, ground: str = "") -> str:
    """A sluice gate as a data URI."""
    return f"data:image/svg+xml,{quote(_SVG.format(color=color, width=width, ground=ground))}"


# An image has one colour, and the entry that is open lies on dark blue in the light mode too: a
# light gate on a dark tile is seen on both.
_ICON = _draw_icon("#f2f6fb", 2, _TILE)
_ICON_DARK = _draw_icon("#c3d0e0", 2)


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
            # The entry has room for one short word, what is longer is cut.
            "name": "Quality",
            "href": "sluice/",
            "icon": _ICON,
            "icon_dark_mode": _ICON_DARK,
            "destination": "nav",
            "url_route": "data-quality",
            "nav_top_level": True,
        },
        {
            "name": "Quality report",
            "href": "sluice/report?dag_id={DAG_ID}&run_id={RUN_ID}",
            "icon": _ICON,
            "icon_dark_mode": _ICON_DARK,
            "destination": "dag_run",
            "url_route": "quality-report",
        },
    ]
    listeners = [pools]
    timetables = [BackfillCronTimetable, BackfillDeltaTimetable]
