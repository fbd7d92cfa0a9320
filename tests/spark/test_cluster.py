"""The same pipeline on a standalone cluster: the same rows, and settings that fit its executors."""

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest
from sluice.errors import ExitCode
from sluice.report import RunReport, latest_report

from tests.spark_cluster import SparkCluster, spark_cluster

from .shop import RULES, Shop, order


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A master and two workers of one core each."""
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def shop(tmp_path) -> Shop:
    """Orders of two days in two files, with copies, a broken rule and a broken record."""
    shop = Shop(tmp_path, rules=RULES)
    shop.land(*[order(n % 400) for n in range(500)], order(1000, amount=-1.0), "{broken")
    shop.land(*[order(n, day=2) for n in range(300, 700)])
    return shop


def start(shop: Shop, master: str, root: Path) -> subprocess.Popen:
    """A run in a process of its own."""
    command = ["run", "--spec", str(shop.yaml), "--root", str(root), "--master", master]
    return subprocess.Popen(
        [sys.executable, "-m", "sluice.cli", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(shop: Shop, master: str, root: Path) -> RunReport:
    process = start(shop, master, root)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == ExitCode.DONE, said
    return latest_report(root / "reports" / "orders")


def rows(spark, root: Path, table: str = "paid") -> Counter:
    frame = spark.read.format("delta").load(str(root / "tables" / "orders" / table))
    names = [name for name in frame.columns if name in ("order_id", "amount", "at", "_raw")]
    return Counter(map(tuple, frame.select(*names).collect()))


def executors(cluster: SparkCluster) -> list[psutil.Process]:
    """The JVMs that run tasks."""
    workers = [psutil.Process(number) for number in cluster.process_ids]
    family = [child for worker in workers for child in worker.children(recursive=True)]
    return [each for each in family if "CoarseGrainedExecutorBackend" in " ".join(each.cmdline())]


def test_a_cluster_writes_the_same_rows_in_as_many_parts_as_it_has_cores(
    spark, cluster, shop, tmp_path
):
    local, remote = run(shop, "local[2]", tmp_path / "a"), run(shop, cluster.url, tmp_path / "b")
    assert remote.counts == local.counts and remote.counts.quarantined == 1
    assert remote.spark["master"] == cluster.url and "partitions" not in local.spark
    assert (remote.spark["executor_cores"], remote.spark["partitions"]) == ("2", "2")
    assert float(remote.spark["executor_core_seconds"]) > 0
    for table in ("paid", "paid_quarantine"):
        assert rows(spark, tmp_path / "b", table) == rows(spark, tmp_path / "a", table)


def test_what_a_pipeline_says_of_partitions_wins_over_the_executors(cluster, shop, tmp_path):
    shop.write(spark={"spark.sql.shuffle.partitions": "5"})
    assert run(shop, cluster.url, tmp_path / "a").spark["partitions"] == "5"


def test_a_run_whose_executor_dies_ends_well_or_is_tried_again_without_a_row_twice(
    spark, cluster, shop, tmp_path
):
    process = start(shop, cluster.url, tmp_path / "a")
    while not list((tmp_path / "a").rglob("offsets/0")):  # Spark has planned the batch
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    executors(cluster)[0].kill()
    said, _ = process.communicate(timeout=300)
    assert process.returncode in (ExitCode.DONE, ExitCode.TRANSIENT), said
    if process.returncode == ExitCode.TRANSIENT:
        assert run(shop, cluster.url, tmp_path / "a").counts.balanced
    run(shop, "local[2]", tmp_path / "b")
    assert rows(spark, tmp_path / "a") == rows(spark, tmp_path / "b")


def test_executors_are_started_with_flags_that_fit_a_short_run(cluster, shop, tmp_path):
    process = start(shop, cluster.url, tmp_path / "a")
    while not (found := executors(cluster)):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    command = found[0].cmdline()
    assert "-XX:TieredStopAtLevel=1" in command, json.dumps(command)
    process.communicate(timeout=300)
    assert process.returncode == ExitCode.DONE
