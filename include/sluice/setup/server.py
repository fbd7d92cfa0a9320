"""Servers that a demo and the tests start for themselves: ports that stay their own, a process
that ends with who started it, and waiting for an event."""

import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..errors import TransientError

# Below the ports that systems hand out to outgoing connections: one of those could take the port
# of a server that is just being restarted.
_PORTS = range(15000, 30000)


def free_ports(count: int) -> list[int]:
    """Different ports of 127.0.0.1 nobody listens on."""
    with ExitStack() as held:
        ports: list[int] = []
        while len(ports) < count:
            probe = held.enter_context(socket.socket())
            port = random.SystemRandom().choice(_PORTS)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue  # taken; another one
            ports.append(port)
        return ports


class ServerProcess:
    """A running server: its process, and the file that takes what it prints.

    Should who started it die first, the kernel sends it `ending` (on Linux); so start it in a
    thread that lives as long as it.
    """

    def __init__(
        self,
        command: list[str],
        log: Path,
        ending: signal.Signals = signal.SIGKILL,
        **options: Any,
    ) -> None:
        guarding = shutil.which("setpriv")
        guard = [guarding, "--pdeathsig", ending.name.removeprefix("SIG"), "--"] if guarding else []
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [*guard, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                **options,
            )

    def end(self, how: signal.Signals, patience: float = 30) -> None:
        """Send a signal and wait for the end; SIGKILL after `patience` seconds."""
        self.process.send_signal(how)
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def wait_for_port(self, port: int, timeout: float = 120) -> None:
        """Wait until somebody listens on a port of 127.0.0.1."""

        def is_open() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        self.wait_until(is_open, f"a listener on port {port}", timeout)

    def wait_until(self, condition: Callable[[], object], what: str, timeout: float = 120) -> None:
        """Ask until a condition holds.

        Raises TransientError with the end of the log when the process ended or `timeout` seconds
        are over.
        """
        deadline = time.monotonic() + timeout
        while not condition():
            if self.process.poll() is not None:
                raise self._failure(f"the server ended with {self.process.returncode}")
            if time.monotonic() > deadline:
                raise self._failure(f"no {what} within {timeout} s")
            time.sleep(0.02)

    def _failure(self, what: str) -> TransientError:
        return TransientError(f"{what}:\n{self.tail()}", where=str(self.log), do="Look at the log")

    def tail(self, lines: int = 20) -> str:
        """The last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
