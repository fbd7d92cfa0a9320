"""The same run on a cluster of two workers and within one JVM."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.benchmarks.comparison import Comparison
from tests.benchmarks.process import Cost, run_sluice
from tests.benchmarks.retail import PIPELINE, Retail
from tests.spark_cluster import SparkCluster, spark_cluster


def run_on(cluster: SparkCluster, bench: Retail, history: Path, master: str) -> Cost:
    """One new day on a copy of a history."""
    root, more = bench.fresh("ours", history), ["--master", master]
    return run_sluice("run", PIPELINE, root, bench.log, cluster.process_ids, more)


def cluster_runs(scratch: Path) -> Iterator[Comparison]:
    """P13, by the clock: CPU that executors spend is not among our descendants'. The cluster ends
    with the iterator."""
    bench = Retail(scratch)
    bench.land(bench.files[:-1])
    history = bench.scratch / "history"
    bench.ours(history)
    bench.land(bench.files)
    with spark_cluster(scratch / "cluster") as cluster:
        yield Comparison(
            "P13",
            "one new day on a standalone cluster of two one-core workers ÷ under `local[2]`",
            1.6,
            partial(run_on, cluster, bench, history, cluster.url),
            partial(run_on, cluster, bench, history, "local[2]"),
            unit="wall",
        )
