"""A driver that lost its parent or its lease stops by itself, before its next write."""

import os
import subprocess
import sys
import time

import pytest
from sluice.checkpoint.holder import Holder, start_of
from sluice.checkpoint.lease_store import open_leases
from sluice.errors import ExitCode
from sluice.report import list_reports
from sluice.spec import RunRequest
from sluice.storage import PROJECT, Paths

from tests.crash.killing import drain_here
from tests.spark.shop import Shop, order


def submit(shop: Shop, parents: list[tuple[int, float]] = ()) -> subprocess.Popen:
    """The job as Airflow starts it."""
    request = RunRequest(
        pipeline=str(shop.yaml), root=str(shop.root), run_id="lost", parents=list(parents)
    )
    command = [
        sys.executable,
        str(PROJECT / "jobs" / "run_pipeline.py"),
        "--request",
        request.model_dump_json(),
    ]
    with (shop.folder / "run.log").open("wb") as log:
        return subprocess.Popen(
            command,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "SLUICE_LEASE_SECONDS": "6"},
        )


@pytest.fixture
def shop(tmp_path):
    shop = Shop(tmp_path)
    shop.land(order(1), order(2))
    return shop


def test_a_driver_whose_task_is_gone_writes_nothing_and_says_why(spark, shop):
    task = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    driver = submit(
        shop,
        [
            (task.pid, start_of(task.pid)),
            (os.getpid(), start_of(os.getpid())),
        ],
    )
    task.kill()
    task.wait()
    assert driver.wait(300) == ExitCode.TRANSIENT
    report = list_reports(shop.root / "reports" / "orders")[0]
    assert "the process that asked for this run is gone" in report.error and report.counts.read == 0
    assert shop.ids(spark) == []
    drain_here(shop.yaml, shop.root)
    assert shop.ids(spark) == ["o1", "o2"]


def test_a_driver_that_was_outranked_writes_nothing_not_even_a_report(spark, shop):
    driver = submit(shop)
    claims = open_leases(Paths.under(shop.root, "orders").lease("paid"))
    while (
        (claim := claims.newest()) is None or claim.holder is None or not claim.holder.beats
    ):  # until it knows that it holds the lease, which it beats then
        assert driver.poll() is None, (shop.folder / "run.log").read_text()
        time.sleep(0.01)
    claims.create(2, Holder.me("usurper").model_copy(update={"released": True}).model_dump_json())
    assert driver.wait(300) == ExitCode.TRANSIENT
    said = " ".join(
        (shop.folder / "run.log").read_text().split()
    )  # it wraps where the path is long
    assert "this run's lease was taken over" in said
    assert shop.ids(spark) == [] and not list_reports(shop.root / "reports" / "orders")
    drain_here(shop.yaml, shop.root)
    assert shop.ids(spark) == ["o1", "o2"]
