"""Where a database is and how to get in."""

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote

from ...errors import SpecError
from ...spec import JdbcSink, read_connection

PREFIX = "jdbc:postgresql:"
"""What a database's URL begins with."""
_OURS = {"ApplicationName": "sluice", "reWriteBatchedInserts": "true", "tcpKeepAlive": "true"}


@dataclass(frozen=True)
class Address:
    """A database and a login. `url`: without anything that may be secret."""

    url: str
    properties: dict[str, str] = field(repr=False)


def read_address(sink: JdbcSink) -> Address:
    """The database of a sink.

    Raises SpecError for one that is not PostgreSQL, and for an Airflow connection that cannot be
    read.
    """
    user: str | None
    password: str | None
    if sink.connection is not None:
        known = read_connection(sink.connection)
        host = f"[{known.host}]" if ":" in known.host else known.host
        url = f"{PREFIX}//{host or 'localhost'}:{known.port or 5432}/{quote(known.schema, safe='')}"
        options = {
            name: str(value) for name, value in known.extra.items() if name.startswith("ssl")
        }
        user, password = known.login, known.password
    else:
        url, _, query = (sink.url or "").partition("?")
        options, user, password = dict(parse_qsl(query)), sink.user, sink.password
    if not url.startswith(PREFIX):
        raise SpecError(
            "only PostgreSQL is supported",
            where="sink.url",
            value=":".join(url.split(":")[:2])[:20] + ":…",
            do=f"Write {PREFIX}//host:port/database",
        )
    if "@" in url:
        raise SpecError(
            "user and password do not go into the URL",
            where="sink.url",
            do=f"Write {PREFIX}//host:port/database, and `user` and `password` beside it",
        )
    secrets = {name: value for name, value in (("user", user), ("password", password)) if value}
    # The server's details, and statements that failed, hold values of rows: they must not come into
    # a log.
    return Address(url, {**_OURS, **options, **secrets, "logServerErrorDetail": "false"})
