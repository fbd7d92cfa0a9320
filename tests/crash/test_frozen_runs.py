"""A run that is frozen between its look at its lease and a write, and wakes up when another one has
taken over: each batch is told by one report all the same.

The machine's sleep is played: at the write others run, under a claim that outranks the run's.
"""

from collections.abc import Callable

import pytest
import sluice.report.publish as publish
import sluice.report.store as store
import sluice.streaming.batch as batch
from sluice.checkpoint.holder import Holder
from sluice.checkpoint.journal import read_journal
from sluice.checkpoint.lease_store import open_leases
from sluice.errors import ExitCode
from sluice.report import Counts, read_report
from sluice.storage import Paths
from sluice.verify.roots import count_rows

from tests.spark.shop import Shop, order

ALL = Counts(read=4, entered=4, made=4, written=3, quarantined=1)
MORE = Counts(read=1, entered=1, made=1, written=1)


@pytest.fixture
def shop(tmp_path) -> Shop:
    """Two batches wait in it."""
    shop = Shop(tmp_path, source={"max_files_per_batch": 1})
    shop.land(order(1), order(2))
    shop.land(order(3), order(4, amount=-1.0))
    return shop


def take_over(shop: Shop) -> None:
    """Outrank the run that holds the lease, as when it was silent for too long."""
    claims = open_leases(Paths.under(shop.root, "orders").lease("paid"))
    claim = Holder.me("usurper").model_copy(update={"released": True})
    assert claims.create(claims.newest().number + 1, claim.model_dump_json())


def others(shop: Shop, *run_ids: str) -> Callable[[], None]:
    """Runs that take over, one after the other; the later ones have a file to read."""

    def run() -> None:
        take_over(shop)
        for number, run_id in enumerate(run_ids):
            if number:
                shop.land(order(4 + number))
            shop.run(run_id)

    return run


def freeze(monkeypatch, place: object, name: str, meanwhile: Callable[[], None]) -> None:
    """Let something happen right before the first call of a function of a module."""
    function, waiting = getattr(place, name), [meanwhile]

    def late(*given: object, **named: object) -> object:
        while waiting:
            waiting.pop()()
        return function(*given, **named)

    monkeypatch.setattr(place, name, late)


@pytest.mark.parametrize("after", [("second",), ("second", "third", "fourth")])
def test_a_run_that_wakes_up_at_its_report_tells_no_batch_of_the_run_that_took_over(
    spark, shop, monkeypatch, after
):
    freeze(monkeypatch, store, "replace_file", others(shop, *after))
    first = shop.run("first")
    assert first.exit_code is ExitCode.TRANSIENT and "lease was taken over" in first.error
    assert count_rows(shop.root, "orders") == sum([MORE] * (len(after) - 1), ALL)
    stored = read_report(shop.root / "reports" / "orders", "first")
    assert stored.counts == Counts() and stored.status == "failed"
    assert "lease was taken over" in stored.error
    assert shop.run("last").exit_code is ExitCode.NOTHING_NEW


def test_a_run_that_is_outranked_right_after_its_report_keeps_what_it_told(
    spark, shop, monkeypatch
):
    write, waiting = publish.write_report, [others(shop, "second", "third")]

    def write_and_freeze(*given: object) -> None:
        write(*given)
        while waiting:
            waiting.pop()()

    monkeypatch.setattr(publish, "write_report", write_and_freeze)
    first = shop.run("first")
    assert first.exit_code is ExitCode.TRANSIENT and "lease was taken over" in first.error
    assert count_rows(shop.root, "orders") == ALL + MORE
    assert read_report(shop.root / "reports" / "orders", "first").counts == ALL


def test_a_run_that_is_outranked_while_it_writes_a_batch_leaves_no_note_of_it(
    spark, shop, monkeypatch
):
    freeze(monkeypatch, batch, "describe_batch", lambda: take_over(shop))
    first = shop.run("first")
    assert first.exit_code is ExitCode.TRANSIENT and "lease was taken over" in first.error
    assert read_journal(Paths.under(shop.root, "orders").checkpoint("paid")) == []
    shop.run("second")
    assert count_rows(shop.root, "orders") == ALL and shop.ids(spark) == ["o1", "o2", "o3"]
