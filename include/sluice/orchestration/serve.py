"""A person's Airflow in the foreground: one box says where it is and how to get in, and what it
prints goes to a file."""

import argparse
import os
import signal
import socket
import sys
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from ..errors import PreflightError, SluiceError, TransientError
from ..storage import PROJECT
from .client import AirflowClient
from .standalone import find_log, read_tail, standalone_environment, start_supervised

_out = Console(highlight=False, emoji=False)
_err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def serve(root: str | Path, port: int) -> None:
    """Start Airflow with the project's DAGs, say where it is, and wait for its end or for Ctrl-C;
    no process of it is left.

    Raises PreflightError where the port is taken or Airflow does not start, TransientError where it
    ends by itself.
    """
    check_port(port)
    env = standalone_environment(root, port)
    log = find_log(env)
    _err.print(f"Airflow starts; what it says goes to {log}", markup=False)
    began = log.stat().st_size if log.exists() else 0
    with start_supervised(env, "--triggerer") as (process, client):
        _out.print(_draw_box(client, log))
        process.wait()
        raise TransientError(
            "Airflow ended by itself", where=str(log), do=f"It ends with:\n{read_tail(log, began)}"
        )


def check_port(port: int) -> None:
    """Raise PreflightError for a port of this machine that another program listens at."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: it may linger
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise PreflightError(
                f"the port cannot be had: {error.strerror}",
                where="127.0.0.1",
                value=port,
                do=f"End what listens there, or take another: `make ui PORT={port % 60000 + 1}`",
            ) from None


def _draw_box(client: AirflowClient, log: Path) -> Panel:
    lines = {
        "address": client.url,
        "user": client.username,
        "password": client.password,
        "logs": str(log),
    }
    text = Text("\n".join(f"{name:<9} {value}" for name, value in lines.items()), overflow="fold")
    return Panel.fit(text, title="Airflow", subtitle="Ctrl-C ends it")


def _end(*_: object) -> None:
    """A signal as Ctrl-C, so that what was started is ended."""
    raise KeyboardInterrupt


def main() -> int:
    """Entry point of `make ui`. Returns an exit code."""
    parser = argparse.ArgumentParser(description="Start Airflow with the project's DAGs.")
    parser.add_argument("--port", type=int, default=8080, help="port of the web page")
    parser.add_argument(
        "--root",
        default=os.environ.get("SLUICE_ROOT") or PROJECT / ".sluice",
        help="folder of tables, checkpoints, reports and Airflow's files",
    )
    options = parser.parse_args()
    # SIGINT as well: a shell has what it starts in the background ignore it.
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, _end)
    try:
        serve(options.root, options.port)
    except SluiceError as error:
        _err.print(str(error), style="red", markup=False)
        return int(error.exit_code)
    except KeyboardInterrupt:
        _err.print("Airflow has ended.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
