"""A Kafka broker for a demo and the tests: one KRaft node of the locked jars `broker`."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..errors import PreflightError
from .fetch import fetch_jars
from .java import find_java
from .server import ServerProcess, free_ports

_JVM = [
    "-Xmx320m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Djava.awt.headless=true",
    "-Dlog4j2.level=WARN",
]
# One node has to be enough for everything, and what a broker does now and then has to be done
# while somebody waits.
_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=200
broker.session.timeout.ms=3000
log.initial.task.delay.ms=100
log.retention.ms=-1
log.retention.check.interval.ms=200
log.cleaner.backoff.ms=50
log.cleaner.dedupe.buffer.size=8388608
num.network.threads=2
num.io.threads=4
num.recovery.threads.per.data.dir=1
"""
_CLUSTER = "c2x1aWNlLXRlc3RzLWthZg"


class Broker:
    """A broker on free ports of this machine whose data is in `folder`; it keeps both when it
    starts again. Topics are only there when created, and keep records of any age.

    Args:
        listeners: name -> port of those it has beside the plain one.
        settings: further lines of its properties.
    """

    def __init__(
        self,
        folder: Path,
        listeners: Mapping[str, int] | None = None,
        settings: Sequence[str] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port, controller = free_ports(2)
        self.server: ServerProcess | None = None
        self._ports = [self.port, *(listeners or {}).values()]
        named = {"PLAINTEXT": self.port, **(listeners or {}), "CONTROLLER": controller}
        addresses = ",".join(f"{name}://127.0.0.1:{port}" for name, port in named.items())
        jars = os.pathsep.join(map(str, fetch_jars("broker")))
        self._java = [str(find_java()), *_JVM, "-cp", jars]
        self._properties = folder / "server.properties"
        lines = [
            f"listeners={addresses}",
            f"controller.quorum.voters=1@127.0.0.1:{controller}",
            f"log.dirs={self.data}",
            *settings,
        ]
        self._properties.write_text(_PROPERTIES + "\n".join(lines) + "\n")
        self._format()

    @property
    def data(self) -> Path:
        """Where it keeps its topics."""
        return self.folder / "data"

    @property
    def servers(self) -> str:
        """host:port of the listener that asks for no login."""
        return f"127.0.0.1:{self.port}"

    @property
    def process(self) -> ServerProcess:
        """The running server."""
        assert self.server is not None, "it was not started"
        return self.server

    def start(self) -> None:
        """Start it with its data and on its ports, and wait until somebody listens on each."""
        assert self.server is None, "it runs"
        command = [*self._java, "kafka.Kafka", str(self._properties)]
        self.server = ServerProcess(command, self.folder / "broker.log")
        for port in self._ports:
            self.server.wait_for_port(port)

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it, if it runs."""
        if self.server is not None:
            self.server.end(how)
            self.server = None

    def _format(self) -> None:
        command = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c"]
        done = subprocess.run(
            [*self._java, *command, str(self._properties)],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode:
            raise PreflightError(
                "the broker's folder could not be prepared",
                where=str(self.folder),
                value=(done.stderr or done.stdout).strip()[-500:],
                do="Look whether the disk is full, and whether `sluice jars fetch broker` is fine",
            )
