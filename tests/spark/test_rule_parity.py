"""Every compiled rule gives what Great Expectations gives on the same frame.

The verdict, the counts and the treatment of NULL.
"""

import math
import random
import warnings
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sluice.quality import compile_rules, row_result
from sluice.quality.row_rules import DECIDED_BY_TYPE, ROW_TYPES
from sluice.report.model import Outcome
from sluice.spec import RuleSpec

pytestmark = pytest.mark.usefixtures("compiled")

SCHEMA = (
    "i int, l bigint, d double, d2 double, p decimal(12,2), s string, s2 string, t string, "
    "dd date, dd2 date, ts timestamp, n timestamp_ntz, "
    "b boolean, es string, ed double, `Order ID` string"
)
TEXTS = [
    "",
    "a",
    "A",
    "abc",
    "ABC-123",
    "größe",
    "日本語",
    "naïve ",
    " x",
    "12",
    "-7",
    "é",
    "🙂",
    "line\nbreak",
    "a" * 30,
]
DATES = [
    "2024-01-31",
    "2024-02-29",
    "2023-02-29",
    "2023-02-28",
    "2024-1-5",
    "2024-13-01",
    "0000-01-01",
    "0001-01-01",
    "9999-12-31",
    "31/12/2024",
    "",
    "2024-04-31",
    "2024-12-31 23:59:60",
    "2024-12-31 23:59:59",
    "2024-12-31T08:00:00+0130",
    "2024-12-31t08:00:00Z",
    "2024-12-31T08:00:00z",
    "2024-12-31T08:00:00+24:00",
    "2024-12-31T08:00:00+23:59",
    "2024-12-31T08:00:00+0100:30",
    "٢٠٢٤-01-31",
    "２０２４-0２-30",
    "2024- 5-07",
    "2024-05- 7",
    " 2024-05-07",
    "2024-05-07 ",
    "2024-05-07\n",
    "29.02.00",
    "29.02.99",
    "29.02.69",
    "29.02.04",
    "1.1.24",
    "1524",
    "2902",
    "29 02",
    "1:5",
    "23:59",
    "24:00",
    "23:59.1234567",
    "23:59.123456",
]


def make_rows(seed: int, count: int, nulls: float = 0.15) -> list[tuple]:
    """Rows of SCHEMA with NULLs, NaN, infinities, and texts that are empty or not ASCII.

    Dates that do not exist are there as well; `es` and `ed` are all NULL.
    """
    rng = random.Random(seed)
    choices = [
        lambda: rng.choice([-5, -1, 0, 1, 2, 3, 7, 10, 2**31 - 1, -(2**31)]),
        lambda: rng.choice([-5, 0, 1, 3, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
        lambda: rng.choice([-1.5, -0.0, 0.0, 0.1, 1.0, 2.5, 1e308, math.nan, math.inf, -math.inf]),
        lambda: rng.choice([-1.5, 0.0, 1.0, 2.5, math.nan, math.inf]),
        lambda: rng.choice(
            [
                Decimal("-0.01"),
                Decimal("0.00"),
                Decimal("0.10"),
                Decimal("1.00"),
                Decimal("2.50"),
                Decimal("9999999999.99"),
            ]
        ),
        lambda: rng.choice(TEXTS),
        lambda: rng.choice(TEXTS),
        lambda: rng.choice(DATES),
        lambda: date(2024, 1, 1) + timedelta(days=rng.randint(-3, 3)),
        lambda: date(2024, 1, 1) + timedelta(days=rng.randint(-3, 3)),
        lambda: datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=rng.randint(-30, 30)),
        lambda: datetime(2024, 1, 1) + timedelta(hours=rng.randint(-30, 30)),
        lambda: rng.choice([True, False]),
        lambda: None,
        lambda: None,
        lambda: rng.choice(TEXTS),
    ]
    return [
        tuple(None if rng.random() < nulls else choose() for choose in choices)
        for _ in range(count)
    ]


def rule(short: str, /, **kwargs) -> RuleSpec:
    """A rule of a short type: `values_to_be_null` -> expect_column_values_to_be_null."""
    return RuleSpec(type=f"expect_column_{short}", kwargs=kwargs)


def bound_rules(rng: random.Random) -> list[RuleSpec]:
    """Ranges of every kind of column, open on either side or strict; some hold no value at all."""
    pools = {
        "i": [-5, 0, 2.5, "3", 10, True],
        "l": [0, 2**53 + 1, 9.3e18, -1],
        "d": [-1.5, 0, 0.1, math.inf, math.nan, "2.5"],
        "p": [0, 0.1, 2.5, -0.01],
        "ed": [1.0],
        "dd": [date(2024, 1, 1), "2023-12-31", datetime(2024, 1, 2, tzinfo=UTC)],
        "ts": [datetime(2024, 1, 1, 5, tzinfo=UTC), "2024-01-01", "2024-01-01 12:00:00"],
        "n": ["2024-01-01", date(2023, 12, 31), datetime(2024, 1, 1, 7, tzinfo=UTC)],
    }
    rules = []
    for column, pool in pools.items():
        for bound in pool:
            rules.append(
                rule(
                    "values_to_be_between",
                    column=column,
                    **{
                        rng.choice(["min_value", "max_value"]): bound,
                        "strict_min": rng.random() < 0.5,
                        "strict_max": True,
                    },
                )
            )
    for column, low, high in (
        ("i", 0, 3),
        ("d", -1.5, 2.5),
        ("p", 0, 1),
        ("dd", "2023-12-31", "2024-01-02"),
        ("ts", date(2023, 12, 31), date(2024, 1, 2)),
    ):
        for strict_min, strict_max in ((False, False), (True, False), (False, True), (True, True)):
            rules.append(
                rule(
                    "values_to_be_between",
                    column=column,
                    min_value=low,
                    max_value=high,
                    strict_min=strict_min,
                    strict_max=strict_max,
                )
            )
    return rules


def set_rules(rng: random.Random) -> list[RuleSpec]:
    """Sets of every kind of column, the empty one included."""
    pools = {
        "i": [-5, 0, 1, 2.5, 10],
        "l": [0, 2**53, 2**53 + 1, 3.0],
        "d": [0, 1, math.nan, math.inf, -0.0],
        "p": [0, 0.1, 2.5, 1],
        "s": TEXTS,
        "b": [True, False],
        "dd": [date(2024, 1, 1), "2024-01-02"],
        "ts": [datetime(2024, 1, 1, tzinfo=UTC), "2024-01-01 05:00:00", date(2024, 1, 1)],
        "es": ["a"],
        "Order ID": ["a", "12"],
    }
    rules = []
    for column, pool in pools.items():
        values = rng.sample(pool, rng.randint(1, len(pool)))
        rules += [
            rule(f"values_to_{name}_in_set", column=column, value_set=values)
            for name in ("be", "not_be")
        ]
    return rules + [
        rule(f"values_to_{name}_in_set", column="s", value_set=[]) for name in ("be", "not_be")
    ]


def text_rules() -> list[RuleSpec]:
    """Regular expressions, lengths and formats, on texts and on what Spark renders as text."""
    patterns = [
        "^a",
        "^abc",
        "^a-b_c d",
        "^ ",
        "[a-z]+$",
        "",
        "^$",
        "\\d",
        "(?i)^abc",
        "[äöüß]",
        "日本",
        "^.$",
        "^\\S+$",
        "a{3,}",
        "(?s)^.*$",
        "🙂",
    ]
    rules = [
        rule(f"values_to_{name}_regex", column=column, regex=regex)
        for name in ("match", "not_match")
        for column, regex in [("s", p) for p in patterns]
        + [
            ("i", "^-"),
            ("dd", "01$"),
            ("ts", "05:"),
            ("d", "N|E"),
            ("b", "t"),
            ("p", "\\.5"),
            ("es", "a"),
            ("Order ID", "a"),
        ]
    ]
    rules += [
        rule("values_to_match_regex_list", column="s", regex_list=["^a", "c$"], match_on=how)
        for how in ("any", "all")
    ]
    rules += [
        rule("values_to_match_regex_list", column="s", regex_list=["1", "2"]),
        rule("values_to_not_match_regex_list", column="s", regex_list=["^a", "\\d"]),
    ]
    for column in ("s", "i", "dd", "d", "es"):
        rules.append(rule("value_lengths_to_equal", column=column, value=3))
        rules.append(rule("value_lengths_to_be_between", column=column, min_value=1, max_value=3))
        rules.append(
            rule(
                "value_lengths_to_be_between",
                column=column,
                min_value=1,
                max_value=10,
                strict_min=True,
                strict_max=True,
            )
        )
    rules += [
        rule("value_lengths_to_be_between", column="s", max_value=length, strict_max=strict)
        for length in (0, 1, 2, 3, 5)
        for strict in (False, True)
    ]
    rules += [
        rule("value_lengths_to_be_between", column="s", min_value=4.0, strict_min=True),
    ]
    formats = [
        "%Y-%m-%d",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M:%S%z",
        "%d/%m/%Y",
        "%d.%m.%y",
        "%m%d",
        "%d%m",
        "%d %m",
        "%H:%M",
        "%H:%M.%f",
        "%Y",
        "%S",
    ]
    return rules + [
        rule("values_to_match_strftime_format", column=column, strftime_format=text)
        for text in formats
        for column in ("t", "s")
    ]


def other_rules() -> list[RuleSpec]:
    """NULL checks, types and pairs of columns."""
    rules = [
        rule(f"values_to_{name}_null", column=column)
        for name in ("be", "not_be")
        for column in ("i", "d", "s", "es", "ts")
    ]
    rules += [
        rule("values_to_be_of_type", column="i", type_=name) for name in ("IntegerType", "LongType")
    ]
    rules += [
        rule("values_to_be_in_type_list", column="d", type_list=names)
        for names in (
            ["str", "DoubleType"],
            ["FloatType", "NumericType"],
            ["StringType", "LongType"],
        )
    ]
    policies = (None, "both_values_are_missing", "either_value_is_missing", "neither")
    pairs = [
        ("i", "l"),
        ("i", "d"),
        ("p", "i"),
        ("s", "s2"),
        ("dd", "ts"),
        ("es", "s"),
        ("ed", "d"),
        ("ts", "n"),
    ]
    for first, second, several in [
        (*pair, policies[n % 4 :][:1]) for n, pair in enumerate(pairs)
    ] + [("d", "d2", policies), ("dd", "dd2", policies)]:
        for ignore in several:
            extra = {"ignore_row_if": ignore} if ignore else {}
            rules.append(rule("pair_values_to_be_equal", column_A=first, column_B=second, **extra))
            rules.append(
                rule(
                    "pair_values_a_to_be_greater_than_b",
                    column_A=first,
                    column_B=second,
                    or_equal=ignore != "neither",
                    **extra,
                )
            )
    rules.append(rule("pair_values_a_to_be_greater_than_b", column_A="i", column_B="l"))
    conditions = ["s = 'a'", "i > 0 OR s IS NULL", "`Order ID` LIKE 'a%'"]
    for text in conditions:
        rules.append(
            rule(
                "values_to_be_between",
                column="i",
                min_value=1,
                row_condition=text,
                condition_parser="spark",
            )
        )
        rules.append(rule("values_to_not_be_null", column="d", row_condition=text))
        rules.append(
            rule(
                "pair_values_to_be_equal",
                column_A="s",
                column_B="s2",
                row_condition=text,
                condition_parser="spark",
            )
        )
    return rules


@dataclass(frozen=True)
class Found:
    """What one side says about one rule."""

    success: bool
    evaluated: int
    unexpected: int


def ask_sluice(frame: DataFrame, rules: list[RuleSpec]) -> list[Found]:
    """Our verdicts, from one pass.

    Rules that differ in `mostly` alone are counted once, for nothing else depends on it.
    """
    plain = [
        spec.model_copy(
            update={"kwargs": {k: v for k, v in spec.kwargs.items() if k != "mostly"}, "name": ""}
        )
        for spec in rules
    ]
    distinct = {
        repr(spec): spec.model_copy(update={"name": f"rule {n}"}) for n, spec in enumerate(plain)
    }
    compiled, for_table = compile_rules(
        list(distinct.values()), {f.name: f.dataType for f in frame.schema}
    )
    assert not for_table
    measures = [
        (
            r.evaluated,
            r.unexpected,
            r.evaluated.isNull() | r.unexpected.isNull(),
            r.unexpected & ~r.evaluated,
        )
        for r in compiled
    ]
    counted = frame.agg(
        *[
            F.coalesce(F.sum(m.cast("int")), F.lit(0)).alias(f"m{n}")
            for n, m in enumerate(m for four in measures for m in four)
        ]
    ).first()
    found = {
        key: (rule, *counted[4 * n : 4 * n + 4])
        for n, (key, rule) in enumerate(zip(distinct, compiled, strict=True))
    }
    assert not any(undecided or stray for *_, undecided, stray in found.values()), (
        "no column is ever NULL, and unexpected implies evaluated"
    )
    results = [
        row_result(replace(found[repr(p)][0], spec=spec), *found[repr(p)][1:3], [])
        for p, spec in zip(plain, rules, strict=True)
    ]
    return [Found(r.outcome is Outcome.PASSED, r.evaluated, r.unexpected) for r in results]


def ask_gx(frame: DataFrame, rules: list[RuleSpec]) -> list[Found]:
    """Great Expectations' verdicts, from one suite."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(
            globally=False, metric_calculations=False
        )
        asset = context.data_sources.add_spark("frames", persist=False).add_dataframe_asset("frame")
        batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
        suite = gx.ExpectationSuite(
            name="rules",
            expectations=[
                ExpectationConfiguration(
                    type=r.type, kwargs=r.kwargs, meta={"n": n}
                ).to_domain_obj()
                for n, r in enumerate(rules)
            ],
        )
        results = {
            r.expectation_config.meta["n"]: r
            for r in batch.validate(
                suite, result_format={"result_format": "BASIC", "partial_unexpected_count": 0}
            ).results
        }
    found = []
    for number, spec in enumerate(rules):
        result = results[number]
        assert result.exception_info.get("raised_exception") is False, (
            f"{spec} {result.exception_info}"
        )
        evaluated = result.result.get("element_count", 0) - result.result.get("missing_count", 0)
        found.append(Found(result.success, evaluated, result.result.get("unexpected_count") or 0))
    return found


def with_mostly(spec: RuleSpec, found: Found) -> list[RuleSpec]:
    """The rule with `mostly` at the share it reached, just below and just above."""
    share = (found.evaluated - found.unexpected) / found.evaluated if found.evaluated else 0.5
    shares = {share, max(0.0, math.nextafter(share, -1)), min(1.0, math.nextafter(share, 2))}
    return [
        spec.model_copy(update={"kwargs": {**spec.kwargs, "mostly": value}})
        for value in sorted(shares)
    ]


def disagreements(
    frame: DataFrame, rules: list[RuleSpec], judged_with_mostly: list[RuleSpec] = ()
) -> list[str]:
    """Every rule on which the two sides differ."""
    rules = rules + [
        variant
        for spec, found in zip(
            judged_with_mostly, ask_sluice(frame, judged_with_mostly), strict=True
        )
        for variant in with_mostly(spec, found)
    ]
    differing = []
    for spec, ours, theirs in zip(
        rules, ask_sluice(frame, rules), ask_gx(frame, rules), strict=True
    ):
        if spec.type in DECIDED_BY_TYPE:
            ours = replace(ours, evaluated=theirs.evaluated, unexpected=theirs.unexpected)
        if ours != theirs:
            differing.append(f"{spec.type} {spec.kwargs}: ours {ours}, Great Expectations {theirs}")
    return differing


def pick(rules: list[RuleSpec], each: int) -> list[RuleSpec]:
    """A few rules of each type."""
    rng = random.Random(5)
    by_type = {
        type_: [spec for spec in rules if spec.type == type_]
        for type_ in sorted({spec.type for spec in rules})
    }
    return [spec for same in by_type.values() for spec in rng.sample(same, min(each, len(same)))]


RULES = {
    "bounds": bound_rules(random.Random(7)),
    "sets": set_rules(random.Random(8)),
    "texts": text_rules(),
    "others": other_rules(),
}


@pytest.fixture(scope="module")
def full_frame(spark):
    rows = make_rows(seed=11, count=120)
    rows += [(None,) * 7 + (value,) + (None,) * 8 for value in DATES]
    return spark.createDataFrame(rows, SCHEMA).coalesce(1).localCheckpoint()


@pytest.mark.parametrize("kind", RULES)
def test_a_compiled_rule_judges_as_great_expectations_does(full_frame, kind):
    assert disagreements(full_frame, RULES[kind], pick(RULES[kind], each=2)) == []


def test_an_empty_frame_and_a_frame_of_nulls_are_judged_as_great_expectations_does(spark):
    sample = pick([spec for rules in RULES.values() for spec in rules], each=1)
    frame = spark.createDataFrame([(None,) * 16] * 3, SCHEMA).coalesce(1).localCheckpoint()
    assert disagreements(frame, sample, sample[:4]) == []
    assert disagreements(frame.limit(0).localCheckpoint(), sample, sample[:4]) == []


def test_every_row_level_type_is_compared_with_great_expectations():
    assert {spec.type for rules in RULES.values() for spec in rules} == set(ROW_TYPES)
