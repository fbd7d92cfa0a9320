"""The same pipeline on a standalone cluster: the same rows, settings that fit its executors, and
what becomes of a run whose executor dies."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from sluice.errors import ExitCode
from sluice.report import RunReport, latest_report

from tests.spark.shop import RULES, Shop, order
from tests.spark_cluster import SparkCluster, spark_cluster

TABLES = ("paid", "paid__quarantine")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A master and two workers of one core each."""
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Shop:
    """Orders of two days in two files, with copies, a broken rule and a broken record."""
    shop = Shop(tmp_path_factory.mktemp("shop"), rules=RULES)
    shop.land(*[order(n % 400) for n in range(500)], order(1000, amount=-1.0), "{broken")
    shop.land(*[order(n, day=2) for n in range(300, 700)])
    return shop


@pytest.fixture(scope="module")
def at_home(shop, tmp_path_factory) -> tuple[Path, RunReport]:
    """The root and the report of the same pipeline under `local[2]`."""
    root = tmp_path_factory.mktemp("local")
    return root, finish(start(shop, "local[2]", root), root)


def start(shop: Shop, master: str, root: Path) -> subprocess.Popen:
    """A run in a process of its own."""
    command = ["run", "--spec", str(shop.yaml), "--root", str(root), "--master", master]
    return subprocess.Popen(
        [sys.executable, "-m", "sluice.cli", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen, root: Path, *more: ExitCode) -> RunReport | None:
    """Wait for the end of a run, which is a good one or one of `more`; its report."""
    said, _ = process.communicate(timeout=300)
    assert process.returncode in (ExitCode.DONE, *more), said
    return latest_report(root / "reports" / "orders")


def wait_for(process: subprocess.Popen, what: Callable[[], object]) -> object:
    """What comes while a run goes on."""
    while not (found := what()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return found


def rows(spark, root: Path, table: str) -> Counter:
    frame = spark.read.format("delta").load(str(root / "tables" / "orders" / table))
    names = [name for name in frame.columns if name in ("order_id", "amount", "at", "_raw")]
    return Counter(map(tuple, frame.select(*names).collect()))


def find_executors(cluster: SparkCluster) -> dict[int, list[str]]:
    """The JVMs that run tasks: process id -> command line."""
    found = {}
    for worker in map(psutil.Process, cluster.process_ids):
        for child in worker.children(recursive=True):
            with suppress(psutil.Error):  # it ends, or is just becoming another program
                found[child.pid] = child.cmdline()
    backend = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
    return {number: said for number, said in found.items() if backend in said}


def test_a_cluster_writes_the_same_rows_in_as_many_parts_as_it_has_cores(
    spark, cluster, shop, at_home, tmp_path
):
    process = start(shop, cluster.url, tmp_path)
    flags = next(iter(wait_for(process, lambda: find_executors(cluster)).values()))
    assert "-XX:TieredStopAtLevel=1" in flags  # those of a short run
    root, local = at_home
    remote = finish(process, tmp_path)
    assert remote.counts == local.counts
    assert (remote.counts.read, remote.counts.quarantined) == (902, 2)
    assert remote.spark["master"] == cluster.url and "partitions" not in local.spark
    assert (remote.spark["executor_cores"], remote.spark["partitions"]) == ("2", "2")
    assert float(remote.spark["executor_core_seconds"]) > 0
    for table in TABLES:
        assert rows(spark, tmp_path, table) == rows(spark, root, table)


def test_a_run_whose_executor_dies_ends_well_or_may_be_tried_again_without_a_row_twice(
    spark, cluster, shop, at_home, tmp_path
):
    process = start(shop, cluster.url, tmp_path)
    wait_for(process, lambda: list(tmp_path.rglob("offsets/0")))  # Spark has planned the batch
    os.kill(next(iter(find_executors(cluster))), signal.SIGKILL)
    finish(process, tmp_path, ExitCode.TRANSIENT)
    if process.returncode == ExitCode.TRANSIENT:
        again = finish(start(shop, cluster.url, tmp_path), tmp_path)
        assert again.counts == at_home[1].counts
    for table in TABLES:
        assert rows(spark, tmp_path, table) == rows(spark, at_home[0], table)
