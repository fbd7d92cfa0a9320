"""Whether a JDBC sink could be written, asked of PostgreSQL without a JVM; nothing is changed."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from ...errors import SinkError, SluiceError, TransientError
from ...spec import JdbcSink
from .address import PREFIX, Address, read_address
from .postgres import SqlError
from .table import Table, choose_fields, describe_table, match_columns, quote_name, split_name

if TYPE_CHECKING:
    import psycopg

_TLS = ("sslmode", "sslrootcert", "sslcert", "sslkey", "sslpassword")
"""What both drivers call alike."""
_LOGIN_STATES = (
    ("password authentication failed", "28P01"),
    ("no password supplied", "08004"),
    ("no pg_hba.conf entry", "28000"),
    ("authentication failed", "28000"),
    ("is not permitted to log in", "28000"),
    ("permission denied for database", "42501"),
)
"""What the server's refusal of a login says -> its SQLState, which libpq does not hand on."""
_UNIQUE = """
SELECT to_json(EXISTS (SELECT FROM pg_index i WHERE i.indrelid = to_regclass(?::text)
  AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL
  AND (SELECT json_agg(a.attname ORDER BY a.attname COLLATE "C")::text FROM pg_attribute a
    WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1]))
    = (SELECT json_agg(k ORDER BY k COLLATE "C")::text
       FROM json_array_elements_text(?::json) AS keys (k))))"""


class Client:
    """One connection from Python; answers `ask` as `Database` does, and asks only."""

    def __init__(self, connection: "psycopg.Connection") -> None:
        self._connection = connection

    def ask(self, sql: str, *values: object, **names: str) -> Any:
        """The one JSON value a query finds; None when it finds no row. Raises SqlError."""
        import psycopg

        text = sql.format(**names).replace("%", "%%").replace("?", "%s")
        try:
            row = self._connection.execute(text, [str(value) for value in values]).fetchone()
        except psycopg.Error as error:
            message = error.diag.message_primary or str(error)
            raise SqlError(error.sqlstate or "?????", message) from None
        return None if row is None else row[0]


def look_at_database(
    sink: JdbcSink, columns: Mapping[str, Any] | None, *, mirror: bool = False
) -> str:
    """What a sink's database says of its table.

    Args: columns: name -> type, as Spark writes it in JSON; None where nobody knows them yet.
    mirror: rows are deleted as well.

    Raises TransientError for a server that is away; SinkError for a login, schema, right, column or
    index that a run would be refused for; SpecError for an address that cannot be read.
    """
    import psycopg

    address = read_address(sink)
    place = f"table {sink.table} at {address.url.removeprefix(PREFIX).lstrip('/')}"
    try:
        connection = psycopg.connect(**_arguments(address), autocommit=True, connect_timeout=5)
    except psycopg.Error as error:
        raise _explain_login(str(error), place) from None
    with connection:
        try:
            return _look(Client(connection), sink, columns, place, mirror)
        except SqlError as error:
            raise error.explain(place) from None


def _arguments(address: Address) -> dict[str, Any]:
    given = address.properties
    found: dict[str, Any] = {
        name: given[name] for name in ("user", "password", *_TLS) if name in given
    }
    if given.get("ssl") in ("true", "") and "sslmode" not in given:
        found["sslmode"] = "verify-full"  # what Java's driver takes it for
    if "currentSchema" in given:
        found["options"] = f"-c search_path={given['currentSchema']}"
    place = address.url.removeprefix(PREFIX)
    place = place if place.startswith("//") else f"//localhost/{place.lstrip('/')}"
    return {"conninfo": f"postgresql:{place}", "application_name": "sluice", **found}


def _explain_login(message: str, place: str) -> SluiceError:
    said = message.strip().splitlines()[-1].rpartition("FATAL:")[2].strip()
    absent = "database" in said and "does not exist" in said
    state = "3D000" if absent else next((s for text, s in _LOGIN_STATES if text in said), "")
    if state:
        return SqlError(state, said).explain(place)
    return TransientError(
        f"PostgreSQL cannot be reached: {said}",
        where=place,
        do="See that it runs, that host and port are right, and that TLS is asked for as the "
        "server wants it",
    )


def _look(
    client: Client, sink: JdbcSink, columns: Mapping[str, Any] | None, place: str, mirror: bool
) -> str:
    _require_schema_rights(client, sink.ledger, "ledger", place)
    table = describe_table(client, sink)
    if table is None:
        _require_schema_rights(client, sink.table, "table", place)
        return "the table is absent, and may be created: the first run does"
    _require_table_rights(client, sink, table, place, mirror)
    if columns is None:
        return "login, table and rights are right; its columns are compared as a run begins"
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in columns.items()]
    chosen = choose_fields(sink, StructType.fromJson({"fields": fields}), list(columns))
    match_columns(sink, chosen, table)
    return f"login, table, rights and {len(chosen)} columns are right"


def _require_schema_rights(client: Client, name: str, field: str, place: str) -> None:
    """Raise SinkError where no table can be created beside the sink's, or its ledger."""
    *given, _ = split_name(name, field)
    schema = given[0] if given else client.ask("SELECT to_json(current_schema())")
    known = schema and client.ask(
        "SELECT to_json(EXISTS (SELECT FROM pg_namespace WHERE nspname = ?))", schema
    )
    if not known:
        raise SinkError(
            "no such schema",
            where=place,
            value=schema or "none of the user's search_path is there",
            do=f"Run CREATE SCHEMA {quote_name(schema or 'public')}, or mend `sink.{field}`",
        )
    if not client.ask(
        "SELECT to_json(has_schema_privilege(?::text, 'USAGE') AND "
        "has_schema_privilege(?::text, 'CREATE'))",
        schema,
        schema,
    ):
        raise SinkError(
            f"this user may not create tables in schema {schema}, where the {field} lies",
            where=place,
            do=f"Run GRANT USAGE, CREATE ON SCHEMA {quote_name(schema)} TO the user",
        )


def _require_table_rights(
    client: Client, sink: JdbcSink, table: Table, place: str, mirror: bool
) -> None:
    changing = [*(["UPDATE"] if sink.keys else []), *(["DELETE"] if mirror else [])]
    wanted = ["SELECT", "INSERT", *changing]
    ask = "SELECT to_json(has_table_privilege(?::text, ?::text))"
    lacking = [right for right in wanted if not client.ask(ask, table.name, right)]
    if lacking:
        raise SinkError(
            f"this user lacks the right to {', '.join(lacking)}",
            where=place,
            do=f"Run GRANT {', '.join(lacking)} ON {table.name} TO the user",
        )
    if sink.keys and not client.ask(_UNIQUE, table.name, json.dumps(sink.keys)):
        raise SinkError(
            "the table has no unique index on the keys of the upsert",
            where=place,
            value=sink.keys,
            do=f"Run CREATE UNIQUE INDEX ON {table.name} ({', '.join(sink.keys)}), or write the "
            "keys of an index it has",
        )
