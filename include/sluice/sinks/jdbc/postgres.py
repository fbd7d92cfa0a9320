"""One connection to PostgreSQL in the driver's JVM, and what its failures mean.

Nothing here shows a password, or a value of a row.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from ...errors import PreflightError, SinkError, SluiceError, SpecError, TransientError
from ...spark.jvm import jvm_of
from ...spec import JdbcSink
from .address import PREFIX, Address, read_address

DRIVER = "org.postgresql.Driver"
_SETTINGS = """
SELECT set_config(name, wanted, false) FROM pg_settings JOIN (VALUES ('TimeZone', 'UTC'),
  ('lock_timeout', '5min'), ('idle_session_timeout', '0'), ('tcp_keepalives_idle', '60'),
  ('tcp_keepalives_interval', '10'), ('tcp_keepalives_count', '6')) AS ours (name, wanted)
  USING (name)"""
"""While Spark fills a staging table the connection is idle, and holds the batch's lock: it must
last, and end soon after its machine did."""
_MAY_PASS = ("08", "40", "53", "57", "58", "55P03")
"""SQLStates, or their classes: the connection, a conflict of transactions, resources, an operator's
doing, the system below, a lock not had in time."""
_DO = {
    "08004": "Write `user` and `password`, or a `connection` that has them",
    "22": "Give the column a type that fits under `types`, or refuse such rows with a rule",
    "23": "Refuse such rows with a rule (`on_fail: quarantine`), or change the constraint",
    "28": "Check `user` and `password`, or the connection that has them",
    "3D": "Create the database, or mend the end of the URL",
    "3F": "Create the schema, or mend the name of the table",
    "42501": "Grant it: the user creates tables in the ledger's schema, selects from and inserts "
    "into ledger and table, updates the table under `upsert`, and deletes from both where the step "
    "has `groups`",
}
_CAUSES = ("org.postgresql.util.PSQLException", "java.sql.BatchUpdateException")


class SqlError(Exception):
    """A failure that PostgreSQL or its driver reports. `state`: the SQLState. `detail`: what it
    says of the row, with all its values, so it is never shown."""

    def __init__(self, state: str, message: str, detail: str = "") -> None:
        super().__init__(f"{message} [{state}]")
        self.state, self.message, self.detail = state, message, detail

    def explain(self, place: str) -> SluiceError:
        """The error for a user: is it worth another try, and what to do."""
        if self.state.startswith(_MAY_PASS) and self.state != "08004":
            return TransientError(
                f"PostgreSQL failed: {self}",
                where=place,
                do="Run again: nothing of the batch is visible unless all of it is, and what is "
                "there is not written again",
            )
        found = next(
            (do for state, do in _DO.items() if self.state.startswith(state)),
            "Mend what it names, then run again",
        )
        return SinkError(f"PostgreSQL refuses: {self}", where=place, do=found)


class Answers(Protocol):
    """A connection that can be asked, whatever it goes through."""

    def ask(self, sql: str, *values: object, **names: str) -> Any:
        """The one JSON value a query finds; None when it finds no row. Raises SqlError."""


class Database:
    """An open connection: each statement is a transaction of its own outside `transaction()`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def run(self, sql: str, *values: object, **names: str) -> int:
        """Run a statement; returns how many rows it changed.

        Args: values: for its `?`. names: SQL text for its `{name}`. Raises SqlError.
        """
        with sql_errors(), self._prepared(sql.format(**names), values) as statement:
            statement.execute()
            return statement.getUpdateCount()

    def ask(self, sql: str, *values: object, **names: str) -> Any:
        """The one JSON value a query finds; None when it finds no row. Raises SqlError."""
        with sql_errors(), self._prepared(sql.format(**names), values) as statement:
            found = statement.executeQuery()
            text = found.getString(1) if found.next() else None
            return None if text is None else json.loads(text)

    @contextmanager
    def _prepared(self, sql: str, values: tuple) -> Iterator[Any]:
        statement = self._connection.prepareStatement(sql)
        try:
            for place, value in enumerate(values, 1):
                statement.setString(place, str(value))
            yield statement
        finally:
            with suppress(Py4JError, ConnectionError):
                statement.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements of the block or none."""
        with sql_errors():
            self._connection.setAutoCommit(False)
        try:
            yield
            with sql_errors():
                self._connection.commit()
        finally:
            # After a commit there is nothing to roll back; where the connection is broken, the
            # server does it.
            with suppress(Py4JError, ConnectionError):
                self._connection.rollback()
                self._connection.setAutoCommit(True)

    def close(self) -> None:
        """End the connection, and with it its locks."""
        with suppress(Py4JError, ConnectionError):
            self._connection.close()


@contextmanager
def open_database(spark: SparkSession, sink: JdbcSink) -> Iterator[Database]:
    """A connection to the sink's database, closed at the end; failures of the block come out as
    TransientError or SinkError.

    Raises SpecError for a database that is not supported, PreflightError when its driver is not on
    the class path.
    """
    address = read_address(sink)
    database = None
    try:
        database = Database(_connect(spark, address))
        database.run(_SETTINGS)
        yield database
    except SqlError as error:
        raise error.explain(
            f"table {sink.table} at {address.url.removeprefix(PREFIX).lstrip('/')}"
        ) from None
    finally:
        if database is not None:
            database.close()


def _connect(spark: SparkSession, address: Address) -> Any:
    properties = jvm_of(spark).java.util.Properties()
    for name, value in address.properties.items():
        properties.setProperty(name, value)
    try:
        driver = jvm_of(spark).org.postgresql.Driver()
    except TypeError:  # py4j takes a class that is not there for a package
        raise PreflightError(
            "the JDBC driver is not on Spark's class path",
            where=DRIVER,
            do="Run `sluice jars fetch jdbc`",
        ) from None
    if not driver.acceptsURL(address.url):
        raise SpecError(
            "the URL cannot be read",
            where="sink.url",
            value=address.url,
            do=f"Write {PREFIX}//host:port/database",
        )
    with sql_errors():
        return driver.connect(address.url, properties)


@contextmanager
def sql_errors() -> Iterator[None]:
    """Raise SqlError for what comes from PostgreSQL or its driver, in this JVM or in a task of
    Spark; other errors pass."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        found = None
        while cause is not None:
            known = cause.getClass().getName() in _CAUSES
            found = cause if known else found
            cause = (cause.getNextException() if known else None) or cause.getCause()
        if found is None:
            raise
        raise _read_failure(found) from None


def _read_failure(exception: Any) -> SqlError:
    """State and message; for data exceptions without the value, which the server's message
    quotes."""
    state = exception.getSQLState() or "?????"
    server = getattr(exception, "getServerErrorMessage", lambda: None)()
    message = (server and server.getMessage()) or str(exception.getMessage())
    message = (
        re.sub(r'".*"', '"…"', message, flags=re.DOTALL) if state.startswith("22") else message
    )
    more = (
        [
            f"{what} {name}"
            for what, name in (
                ("column", server.getColumn()),
                ("constraint", server.getConstraint()),
            )
            if name and name not in message
        ]
        if server
        else []
    )
    return SqlError(state, ", ".join([message, *more]), (server and server.getDetail()) or "")
