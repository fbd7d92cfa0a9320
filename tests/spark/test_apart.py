"""Which rows of a large batch are set apart decides nothing but what it costs."""

import json
from collections import Counter

import pytest
from sluice.sources import intake

from .shop import Shop, order

FATES = ("read", "written", "quarantined", "duplicate", "late", "malformed")
FORMER = [order(n, day=10) for n in range(20)]


def make_shapes(first: int) -> dict[str, list[dict | str]]:
    """A batch of each shape, of orders with ids from the first on and copies of earlier ones."""
    alone = [order(first + n, day=10) for n in range(40)]
    late = [order(first + n, day=1) for n in range(40, 50)]
    broken = [order(first + n, day=10, amount=-1.0) for n in range(50, 58)]
    copies = [*alone[:5], *late[:3], *broken[:2], *FORMER[:4]]
    return {
        "few copies, few refused": [*alone, *late, *broken, *copies, "{broken"],
        "few copies, many refused": [*alone[:10], *late[:3], *broken, *copies, "{broken"],
        "many copies, few refused": [*alone, *late, *alone[:25], *late, broken[0]],
        "most are copies": [*alone, *alone, *late, *late, *broken],
    }


SHAPES = {
    "drop": ("few copies, few refused", "many copies, few refused"),
    "keep": ("few copies, many refused", "most are copies"),
}
"""The shapes that a pipeline meets one after the other, by what it does with late rows."""
LARGE = (intake, "CROWDING_BYTES", 0)
SIZES = {
    "small": [],
    "large": [LARGE],
    "large, little apart": [LARGE, (intake.BatchInput, "crowds_with", lambda *_: False)],
}
"""What makes a batch and what is set apart of it go the way of larger ones, which are kept on
disk."""


@pytest.mark.parametrize("late", SHAPES)
def test_large_batches_of_any_shape_end_as_small_ones_do(spark, tmp_path, monkeypatch, late):
    ends = []
    sizes = SIZES if late == "drop" else ["small", "large"]  # these are kept apart alike
    for size in sizes:
        for patch in SIZES[size]:
            monkeypatch.setattr(*patch)
        shop, told = Shop(tmp_path / size, dedup={"late": late}), []
        shop.land(*FORMER)
        shop.run()
        for number, shape in enumerate(SHAPES[late], 1):
            orders = make_shapes(100 * number)[shape]
            shop.land(*orders)
            report = shop.run()
            assert (report.status, report.error) == ("done", None)
            assert report.counts.read == len(orders)
            counts = {fate: getattr(report.counts, fate) for fate in FATES}
            told.append((counts, [vars(rule) for rule in report.steps[0].rules]))
        ends.append((told, shop.rows(spark), shop.ids(spark, "paid__late"), shop.reasons(spark)))
    assert ends == ends[:1] * len(sizes)


@pytest.mark.parametrize("size", ["small", "large"])
def test_of_copies_of_a_refused_row_the_one_of_the_first_source_is_kept(
    spark, tmp_path, monkeypatch, size
):
    for patch in SIZES[size]:
        monkeypatch.setattr(*patch)
    shop, broken = Shop(tmp_path), [order(n, day=10, amount=-1.0) for n in range(60)]
    landed = [f"file:{shop.land(*broken[start:], *FORMER)}" for start in (40, 20, 0)]
    report = shop.run()
    kept = shop.rows(spark, "paid__quarantine", ("row", "_source"))
    assert kept == Counter((json.dumps(row), landed[2 - n // 20]) for n, row in enumerate(broken))
    assert (report.counts.quarantined, report.counts.duplicate) == (60, 60 + 2 * len(FORMER))
