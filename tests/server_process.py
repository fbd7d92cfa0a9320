"""What every server of the tests needs.

Ports that stay its own, a process that ends with the tests, and waiting for an event.
"""

import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

# Below the ports that systems hand out to outgoing connections: one of those could take the port
# of a server that is just being restarted.
_PORTS = range(15000, 30000)


def free_ports(count: int) -> list[int]:
    """Different ports of 127.0.0.1 nobody listens on."""
    with ExitStack() as held:
        ports = []
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

    Should the tests die without ending it, the kernel sends it `ending` (on Linux); so start it in
    a thread that lives as long as it.
    """

    def __init__(
        self,
        command: list[str],
        log: Path,
        ending: signal.Signals = signal.SIGKILL,
        **options: object,
    ) -> None:
        guard = (
            [shutil.which("setpriv"), "--pdeathsig", ending.name.removeprefix("SIG"), "--"]
            if shutil.which("setpriv")
            else []
        )
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

        Fails with the end of the log when the process ended or `timeout` seconds are over.
        """
        deadline = time.monotonic() + timeout
        while not condition():
            assert self.process.poll() is None, (
                f"the server ended with {self.process.returncode}:\n{self.tail()}"
            )
            assert time.monotonic() < deadline, f"no {what} within {timeout} s:\n{self.tail()}"
            time.sleep(0.02)

    def tail(self, lines: int = 20) -> str:
        """The last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
