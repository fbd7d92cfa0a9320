"""Seeded lines for a socket: words, empty lines, one that is far too long, a word nobody would
type."""

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .landing import Deliver, Landing, set_environment

LANDINGS = 3
_WORDS = ("open", "shut", "the", "the", "gate", "drain", "backlog", "account", "for", "every")
_TO = "whoever connects"


def generate_landings(seed: int = 7, lines: int = 40) -> Iterator[Landing]:
    """What is typed during each trial."""
    rng = random.Random(seed)  # noqa: S311 (made to be repeatable, not secret)
    for number in range(1, LANDINGS + 1):
        typed = [
            ", ".join(rng.choices(_WORDS, k=rng.randint(0, 6))).capitalize() for _ in range(lines)
        ]
        typed += ["Donaudampfschiff!", "x" * 500]
        rng.shuffle(typed)
        yield Landing(f"trial {number}", {}, {_TO: [("", line) for line in typed]})


@contextmanager
def deliver_lines(root: Path) -> Iterator[Deliver]:
    """Landings are sent to whoever connects to a port, which $WORDS_PORT names meanwhile."""
    waiting: list[bytes] = []
    peers: list[socket.socket] = []

    def deliver(landing: Landing) -> None:
        lines = [line for _, line in landing.messages[_TO]]
        waiting[:] = ["".join(f"{line}\n" for line in lines).encode()]

    def serve(server: socket.socket) -> None:
        try:
            while True:
                peers.append(server.accept()[0])  # who stays on the line, as one who types would
                peers[-1].sendall(b"".join(waiting))
        except OSError:
            return

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,), daemon=True)
        thread.start()
        try:
            with set_environment(WORDS_PORT=str(server.getsockname()[1])):
                yield deliver
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for peer in peers:
                peer.close()
            thread.join(10)
