"""A standalone Spark cluster of this machine: the master and the workers of the pip package."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from sluice.setup.java import find_java
from sluice.setup.server import ServerProcess, free_ports

_HOME = Path(pyspark.__file__).parent
_DEPLOY = "org.apache.spark.deploy"


class SparkCluster:
    """A master and workers of one core each.

    `url`: what a pipeline's `master:` says. `process_ids`: of master and workers; executors are
    children of the workers.
    """

    def __init__(self, folder: Path, workers: int = 2, memory: str = "1536m") -> None:
        self.folder, self.workers, self.memory = folder, workers, memory
        self.servers: list[ServerProcess] = []
        self.url = ""

    @property
    def process_ids(self) -> set[int]:
        """Of the servers, not of executors."""
        return {server.process.pid for server in self.servers}

    def start(self) -> None:
        """Start all of it, and wait until the master knows every worker."""
        self.folder.mkdir(parents=True, exist_ok=True)
        port, page = free_ports(2)
        self.url = f"spark://127.0.0.1:{port}"
        where = ["--host", "127.0.0.1"]
        master = self._start(
            "master.Master", "--port", str(port), "--webui-port", str(page), *where
        )
        master.wait_for_port(port)
        for number in range(self.workers):
            room = ["--cores", "1", "--memory", self.memory, "--webui-port", "0"]
            place = ["--work-dir", str(self.folder / f"work-{number}")]
            self._start("worker.Worker", *where, *room, *place, self.url)
        master.wait_until(self._is_whole, f"{self.workers} workers")

    def stop(self) -> None:
        """End the workers, their executors and the master."""
        for server in reversed(self.servers):
            server.end(signal.SIGTERM)
        self.servers.clear()

    def _is_whole(self) -> bool:
        told = self.servers[0].log.read_text(errors="replace")
        return told.count("Registering worker") >= self.workers

    def _start(self, name: str, *arguments: str) -> ServerProcess:
        java = find_java()
        env = {
            **os.environ,
            "JAVA_HOME": str(java.parent.parent),
            "SPARK_HOME": str(_HOME),
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "SPARK_DAEMON_MEMORY": "256m",
        }
        command = [str(_HOME / "bin" / "spark-class"), f"{_DEPLOY}.{name}", *arguments]
        log = self.folder / f"{name}-{len(self.servers)}.log"
        self.servers.append(ServerProcess(command, log, signal.SIGTERM, env=env))
        return self.servers[-1]


@contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    """A cluster of two workers that ends with the block."""
    cluster = SparkCluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
