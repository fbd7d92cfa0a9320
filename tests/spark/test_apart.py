"""Which rows of a large batch are set apart decides nothing but what it costs."""

import pytest
from sluice.sources import files

from .shop import Shop, order

FATES = ("read", "written", "quarantined", "duplicate", "late", "malformed")
FORMER = [order(n, day=10) for n in range(20)]
ALONE = [order(n, day=10) for n in range(20, 60)]
LATE = [order(n, day=1) for n in range(60, 70)]
BROKEN = [order(n, day=10, amount=-1.0) for n in range(70, 78)]
COPIES = [*ALONE[:5], *LATE[:3], *BROKEN[:2], *FORMER[:4]]
SHAPES = {
    "few copies, few refused": ("drop", [*ALONE, *LATE, *BROKEN, *COPIES, "{broken"]),
    "few copies, many refused": ("keep", [*ALONE[:10], *LATE[:3], *BROKEN, *COPIES, "{broken"]),
    "many copies, few refused": ("drop", [*ALONE, *LATE, *ALONE[:25], *LATE, BROKEN[0]]),
    "most are copies": ("keep", [*ALONE, *ALONE, *LATE, *LATE, *BROKEN]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_large_batch_of_any_shape_ends_as_a_small_one_does(spark, tmp_path, monkeypatch, shape):
    late, orders = SHAPES[shape]
    ends = []
    for name, bound in (("small", files.CROWDING_BYTES), ("large", 0)):
        monkeypatch.setattr(files, "CROWDING_BYTES", bound)
        shop = Shop(tmp_path / name, dedup={"late": late})
        shop.land(*FORMER)
        shop.run()
        shop.land(*orders)
        report = shop.run()
        assert (report.status, report.error) == ("done", None)
        tables = [shop.rows(spark), shop.ids(spark, "paid__late"), shop.reasons(spark)]
        counts = {fate: getattr(report.counts, fate) for fate in FATES}
        ends.append((tables, counts, [vars(rule) for rule in report.steps[0].rules]))
    assert ends[0] == ends[1]
    assert ends[0][1]["read"] == len(orders)
