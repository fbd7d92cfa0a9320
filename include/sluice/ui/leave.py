"""The way out of the frame in which Airflow shows a page: to a DAG or a run of it.

Airflow's frame lets no link of a page move the window around it (its sandbox lacks
`allow-top-navigation`), and a link followed within it would show a second Airflow inside the first.
So this page, which holds nothing but its one link, asks the window's own router to go there.
"""

from base64 import b64encode
from hashlib import sha256
from typing import Annotated
from urllib.parse import quote

from fastapi import Query
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from .page import HEADERS, draw

# After the frame's `load`, when Airflow has written the frame's address behind its own. There the
# page that the link was on takes this one's place, so that the way back leads to it.
_SCRIPT = """
const way = document.getElementById("way").href;
const own = location.pathname + location.search;
const path = (address) => address && new URL(address).pathname + new URL(address).search;
if (parent === window) location.replace(way);
else addEventListener("load", () => setTimeout(() => {
  const outer = parent.location.href, last = path(document.referrer);
  if (last && outer.endsWith(own))
    parent.history.replaceState(null, "", outer.slice(0, -own.length) + last);
  parent.history.pushState(null, "", way);
  parent.dispatchEvent(new PopStateEvent("popstate", { state: null }));
}));
"""
_DIGEST = b64encode(sha256(_SCRIPT.encode()).digest()).decode()
_POLICY = f"{HEADERS['Content-Security-Policy']}; script-src 'sha256-{_DIGEST}'"


def show_way_out(
    dag_id: Annotated[str, Query(max_length=250)],
    run_id: Annotated[str | None, Query(max_length=250)] = None,
) -> HTMLResponse:
    """Goes to a DAG of Airflow, or to a run of it. Its script is the only one that may run."""
    href = f"../dags/{quote(dag_id, safe='')}"
    if run_id:
        href += f"/runs/{quote(run_id, safe='')}"
    page = draw("open.html", href=href, label=run_id or dag_id, script=Markup(_SCRIPT))  # noqa: S704
    return HTMLResponse(page, headers=HEADERS | {"Content-Security-Policy": _POLICY})
