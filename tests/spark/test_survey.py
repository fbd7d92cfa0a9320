"""A batch's rules say the same however it is surveyed."""

import pytest
from sluice.sources import intake

from .shop import Shop, order

BETWEEN = "expect_column_values_to_be_between"
IN_SET = "expect_column_values_to_be_in_set"
RULES = [
    {
        "type": BETWEEN,
        "kwargs": {"column": "amount", "min_value": 0},
        "on_fail": "quarantine",
        "name": "not_negative",
    },
    {
        "type": BETWEEN,
        "kwargs": {"column": "amount", "max_value": 90},
        "on_fail": "warn",
        "name": "not_large",
    },
    {
        "type": IN_SET,
        "kwargs": {"column": "order_id", "value_set": ["o1", "o2", "o3"]},
        "on_fail": "warn",
        "name": "known",
    },
    {
        "type": BETWEEN,
        "kwargs": {"column": "amount", "max_value": 1000},
        "on_fail": "warn",
        "name": "never_broken",
    },
]


@pytest.mark.parametrize("hidden", [[], ["order_id"]], ids=["shown", "a key is hidden"])
@pytest.mark.parametrize("copies", [0, 20], ids=["most are refused", "few are refused"])
def test_a_large_batch_shows_the_same_verdicts_and_samples_and_refuses_the_same_as_a_small_one(
    tmp_path, spark, monkeypatch, hidden, copies
):
    verdicts, refused = [], []
    for name, bound in (("small", intake.CROWDING_BYTES), ("large", 0)):
        monkeypatch.setattr(intake, "CROWDING_BYTES", bound)
        shop = Shop(tmp_path / name, rules=RULES)
        shop.write(pii=hidden)
        amounts = [-3.0, 5.0, -1.5, 95.0, 99.0, 7.0]
        orders = [order(n, amount=amount) for n, amount in enumerate(amounts)]
        shop.land(*orders, *[orders[1]] * copies, orders[0], "{broken")
        report = shop.run()
        assert (report.status, report.error) == ("done", None)
        verdicts.append([vars(rule) for rule in report.steps[0].rules])
        refused.append((report.steps[0].counts, shop.reasons(spark)))
    small, large = verdicts
    assert small == large
    assert refused[0] == refused[1]
    assert refused[0][1] == {("not_negative",): 2, ("malformed",): 1}
    found = {rule["name"]: (rule["unexpected"], rule["samples"]) for rule in small}
    assert found["not_negative"] == (3, ["-1.5", "-3.0"])
    assert found["not_large"] == (2, ["95.0", "99.0"])
    assert found["known"] == (4, [] if hidden else ["o0", "o5"])
    assert found["never_broken"] == (0, [])
