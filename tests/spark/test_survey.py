"""A batch's rules say the same however it is surveyed."""

import random
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from pyspark.sql.types import StructType
from sluice.quality import compile_rules
from sluice.sources import files
from sluice.spark.columns import DEFECT, ENTERED, FILTERED, PARSED, RAW, RESCUED, STAGE, TIME
from sluice.spec import RuleSpec
from sluice.streaming.classify import judge
from sluice.streaming.survey import Lookout, Survey, take_survey

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
    for name, bound in (("small", files.CROWDING_BYTES), ("large", 0)):
        monkeypatch.setattr(files, "CROWDING_BYTES", bound)
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


@pytest.mark.parametrize(("rows", "inputs"), [(0, ()), (500, ("left", "right"))])
def test_what_is_counted_by_groups_of_equal_verdicts_is_what_is_counted_row_by_row(
    spark, rows, inputs
):
    frame, rules = draw_judged(spark, rows, random.Random(rows))
    newest = int((datetime(2026, 1, 20) - datetime(1970, 1, 1)).total_seconds() * 1000)
    reasons = {"malformed": (), "null_time": ("a",)}
    lookout = Lookout(rules, reasons, newest - 10**9, newest, inputs=inputs)
    if inputs:
        frame = frame.selectExpr("*", "if(a > 50, 'left', 'right') AS _input")
    by_rows, by_groups = (take_survey(frame, lookout, frame, later) for later in (False, True))
    assert without_samples(by_rows) == by_groups
    assert (by_rows.good > 0 and by_rows.late > 0 and by_rows.malformed > 0) == bool(rows)
    assert len({broken for _, broken, _ in by_rows.rules}) > 20 or not rows


def draw_judged(spark, rows, draw):
    """Rows that 70 rules have judged, more than two numbers have bits for, some of which refuse;
    and the rules."""
    names = ["a", "b"]
    fields = StructType().add("a", "double").add("b", "double")
    schema = StructType([*fields]).add(RAW, "string").add(DEFECT, "string")
    schema = schema.add(RESCUED, "string").add(STAGE, "string").add(TIME, "timestamp")
    drawn = [
        (
            *(None if draw.random() < 0.1 else draw.uniform(0, 100) for _ in names),
            "{}",
            draw.choice([None, None, None, "not a JSON object"]),
            draw.choice([None, "{}"]),
            draw.choice([ENTERED, ENTERED, ENTERED, FILTERED, PARSED]),
            datetime(2026, 1, 1) + timedelta(hours=draw.randrange(480)),
        )
        for _ in range(rows)
    ]
    specs = [
        RuleSpec(
            type=BETWEEN,
            kwargs={"column": names[n % 2], "max_value": 99 - n},
            on_fail="quarantine" if n % 30 == 2 else "warn",
            name=f"rule {n}",
        )
        for n in range(70)
    ]
    rules, _ = compile_rules(specs, {f.name: f.dataType for f in fields})
    step = SimpleNamespace(name="drawn", event_time=None, dedup=None)
    return judge(spark.createDataFrame(drawn, schema), step, fields, rules), rules


def without_samples(survey: Survey) -> Survey:
    bare = {reason: (seen, rows, []) for reason, (seen, rows, _) in survey.refusals.items()}
    return replace(survey, rules=[(e, u, []) for e, u, _ in survey.rules], refusals=bare)
