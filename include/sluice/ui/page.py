"""How a page is drawn, and the headers it travels with."""

from pathlib import Path

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader

from ..report import units
from .quarantine import shorten

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters |= {
    "count": units.format_count,
    "cut": shorten,
    "printable": units.printable,
    "seconds": units.format_seconds,
    "time": units.format_time,
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def draw(template: str, **values: object) -> str:
    """A template with its values, each escaped."""
    return _TEMPLATES.get_template(template).render(**values)


def show_page(template: str, status: int = 200, **values: object) -> HTMLResponse:
    """A page that may run nothing and load nothing."""
    return HTMLResponse(draw(template, **values), status, HEADERS)
