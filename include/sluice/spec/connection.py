"""An Airflow connection as the environment carries it: `AIRFLOW_CONN_<ID>`, JSON or a URI.

Read without Airflow, so that a run elsewhere reads it too.
"""

import json
import os
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from ..errors import SpecError


@dataclass(frozen=True)
class Connection:
    """The parts of an Airflow connection."""

    host: str = ""
    port: int | None = None
    login: str = ""
    password: str = field(default="", repr=False)
    schema: str = ""
    extra: dict = field(default_factory=dict, repr=False)


def connection_variable(connection: str) -> str:
    """The environment variable of a connection: Airflow's own name for it."""
    return f"AIRFLOW_CONN_{connection.upper()}"


def read_connection(connection: str) -> Connection:
    """A connection by its id.

    Raises SpecError when the environment does not carry it, or not as Airflow writes it.
    """
    variable = connection_variable(connection)
    text = os.environ.get(variable)
    if not text:
        raise SpecError(
            "no such connection",
            where=f"connection {connection}",
            value=f"{variable} is not set",
            do="Create it in Airflow (its tasks hand it on), or export the variable as Airflow "
            "writes it: JSON or a URI",
        )
    try:
        return _read_json(json.loads(text)) if text.lstrip().startswith("{") else _read_uri(text)
    except (ValueError, TypeError, AttributeError):
        raise SpecError(
            "the connection cannot be read",
            where=f"connection {connection}",
            do=f"Write {variable} as Airflow does: JSON or a URI",
        ) from None  # its text is a secret


def _read_json(parts: dict) -> Connection:
    extra = parts.get("extra") or {}
    return Connection(
        parts.get("host") or "",
        int(parts["port"]) if parts.get("port") else None,
        parts.get("login") or "",
        parts.get("password") or "",
        parts.get("schema") or "",
        json.loads(extra) if isinstance(extra, str) else extra,
    )


def _read_uri(text: str) -> Connection:
    parts = urlsplit(text)
    query = dict(parse_qsl(parts.query))
    extra = json.loads(query.pop("__extra__", "{}")) | query
    return Connection(
        unquote(parts.hostname or ""),
        parts.port,
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        unquote(parts.path.lstrip("/")),
        extra,
    )
