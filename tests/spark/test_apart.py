"""Which rows of a large batch are set apart decides nothing but what it costs."""

import pytest
from sluice.sources import files

from .shop import Shop, order

FATES = ("read", "written", "quarantined", "duplicate", "late", "malformed")
FORMER = [order(n, day=10) for n in range(20)]


def make_orders(first: int, copies: str, refused: str) -> list[dict | str]:
    """Orders, of ids from the first on, of which few or many are copies and few or many refused:
    late ones, broken ones and copies of orders of an earlier batch are among them."""
    alone = [order(first + n, day=10) for n in range(10 if refused == "many" else 40)]
    late = [order(first + n, day=1) for n in range(40, 50)]
    broken = [order(first + n, day=10, amount=-1.0) for n in range(50, 58)]
    if copies == "most":
        return [*alone, *alone, *late, *late, *broken]
    if copies == "many":
        return [*alone, *late, *alone[:25], *late, broken[0]]
    again = [*alone[:5], *late[:3], *broken[:2], *FORMER[:4]]
    return [*alone, *(late[:3] if refused == "many" else late), *broken, *again, "{broken"]


BATCHES = {
    "drop": [make_orders(100, "few", "few"), make_orders(200, "many", "few")],
    "keep": [make_orders(100, "few", "many"), make_orders(200, "most", "few")],
}


@pytest.mark.parametrize("late", BATCHES)
def test_large_batches_of_any_shape_end_as_small_ones_do(spark, tmp_path, monkeypatch, late):
    ends = []
    for name, bound in (("small", files.CROWDING_BYTES), ("large", 0)):
        monkeypatch.setattr(files, "CROWDING_BYTES", bound)
        shop, told = Shop(tmp_path / name, dedup={"late": late}), []
        shop.land(*FORMER)
        shop.run()
        for orders in BATCHES[late]:
            shop.land(*orders)
            report = shop.run()
            assert (report.status, report.error) == ("done", None)
            assert report.counts.read == len(orders)
            counts = {fate: getattr(report.counts, fate) for fate in FATES}
            told.append((counts, [vars(rule) for rule in report.steps[0].rules]))
        ends.append((told, shop.rows(spark), shop.ids(spark, "paid__late"), shop.reasons(spark)))
    assert ends[0] == ends[1]
