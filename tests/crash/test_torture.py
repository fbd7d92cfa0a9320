"""`sluice torture`: a pipeline's own kill test, which finds what is lost and what is doubled."""

import pytest
from sluice.errors import SpecError
from sluice.spec import load_pipeline
from sluice.verify.roots import compare_roots
from sluice.verify.torture import torture

from tests.spark.shop import Shop, order

KILLS = 1


def test_a_pipeline_survives_its_torture_and_the_landing_folder_is_as_it_was(spark, tmp_path):
    shop = Shop(tmp_path, source={"max_files_per_batch": 1})
    files = [
        shop.land(*[order(n % 9, amount=float(n % 5 - 1)) for n in range(k, k + 8)], "{broken")
        for k in range(2)
    ]
    before = [path.read_bytes() for path in files]
    told = []
    outcome = torture(
        shop.yaml,
        load_pipeline(shop.yaml),
        tmp_path / "scratch",
        KILLS,
        seed=7,
        on_kill=lambda number, what: told.append((number, what)),
    )
    assert outcome.differences == []
    assert (outcome.kills, [number for number, _ in told]) == (KILLS, list(range(1, KILLS + 1)))
    assert outcome.counts.read == 18 and outcome.counts.balanced
    assert [path.read_bytes() for path in files] == before and not shop.root.exists()


def test_the_comparison_finds_a_lost_row_a_doubled_row_and_a_count_that_is_off(spark, tmp_path):
    calm, lossy = Shop(tmp_path / "calm"), Shop(tmp_path / "lossy")
    calm.land(order(1), order(2), order(3, amount=-1.0))
    lossy.land(order(1), order(1, day=20), order(3, amount=-1.0), order(4, amount=-1.0))
    for shop in (calm, lossy):
        shop.run()
    pipeline = load_pipeline(calm.yaml)
    assert compare_roots(pipeline, calm.root, calm.root) == []
    found = compare_roots(pipeline, calm.root, lossy.root)
    assert any(text.startswith("the reports say 4 read") for text in found)
    assert "paid: 1 rows are missing and 1 too many" in found
    assert "paid__quarantine: 0 rows are missing and 1 too many" in found


def test_a_step_that_writes_to_a_fixed_place_is_not_tortured(tmp_path):
    shop = Shop(tmp_path, sink={"table": str(tmp_path / "elsewhere")})
    with pytest.raises(SpecError, match="a torture must not"):
        torture(shop.yaml, load_pipeline(shop.yaml), tmp_path / "scratch", 1, seed=1)
