"""Who watches a run sees it move within a batch, and never back."""

from sluice.report import Progress
from sluice.runner import run_pipeline
from sluice.spec import RunRequest
from sluice.streaming import drain

from .shop import Shop, order


def test_a_batch_on_its_way_is_told_of_before_it_ends(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(drain, "wait_a_moment", lambda query, last: query.awaitTermination(0.02))
    shop, told = Shop(tmp_path), []
    shop.land(*[order(n) for n in range(2000)])
    request = RunRequest(pipeline=str(shop.yaml), root=str(shop.root))
    assert run_pipeline(request, Progress(told.append, each_second=True)).error is None
    (end,) = [n for n, advance in enumerate(told) if advance.batch is not None]
    before = [advance.done for advance in told[:end]]
    assert before == sorted(before) and told[end].done == told[end].total
    assert {advance.rows for advance in told[end:]} == {2000}
    assert len({done for done in before if 0 < done < told[end].total}) > 2


def test_who_asks_for_ends_of_batches_alone_costs_no_question(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(drain, "wait_a_moment", lambda query, last: query.awaitTermination(0.02))
    shop, told = Shop(tmp_path), []
    shop.land(order(1))
    run_pipeline(RunRequest(pipeline=str(shop.yaml), root=str(shop.root)), Progress(told.append))
    assert [(advance.done == advance.total, advance.rows) for advance in told] == [
        (False, 0),
        (True, 1),
    ]
