"""A step that has several inputs: every record of each has one fate, and what is made of them is
what a query over all of them gives, however the backlog was cut."""

import gzip
import os
import random
from collections import Counter
from datetime import timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml
from sluice.errors import ExitCode
from sluice.report.step_notes import step_notes
from sluice.spec import load_pipeline
from sluice.streaming import tally as tally_module

from tests.long_runs import leave
from tests.spark.several import LEFT, NOON, SCHEMAS, Ads, clicked, moment, shown

pytestmark = pytest.mark.usefixtures("two_partitions")
EXAMPLES = range(1, 1 + int(os.environ.get("SLUICE_EXAMPLES", "1")))

COLUMNS = ("ad", "id", "at", "clicked")
WINDOWS = """SELECT i.ad, i.id, i.hour.start AS at, c.hour.start AS clicked
  FROM (SELECT ad, id, window(at, '1 hour') AS hour FROM impressions) i
  FULL JOIN (SELECT id, window(at, '1 hour') AS hour FROM clicks) c
  ON i.id = c.id AND i.hour = c.hour"""
LAST = 100_000


def lines(report) -> list[str]:
    (step,) = report.steps
    return [*map(str, step.counts.lines), *step_notes(step)]


@pytest.fixture
def ads(spark, tmp_path):
    return Ads(tmp_path)


def test_every_record_of_each_input_has_one_fate_and_the_report_tells_them_apart(spark, tmp_path):
    rule = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "ad"}}
    asked = {
        "impressions": {"rules": [rule | {"on_fail": "quarantine"}]},
        "clicks": {"transform": "human.sql"},
    }
    (tmp_path / "human.sql").write_text("SELECT * FROM source WHERE id <> 'bot'")
    ads = Ads(tmp_path, asked=asked)
    ads.land("impressions", shown(1, 0), shown(2, 1), shown(3, 2, ad=None), "{broken")
    ads.land("clicks", clicked(1, 5), clicked("bot", 6), clicked(8, 10**9), {"id": "9"})
    report = ads.run()
    assert report.error is None
    (step,) = report.steps
    assert lines(report)[:4] == [
        "8 read = 1 malformed + 3 rejected + 1 filtered + 3 entered",
        "1 made + 1 malformed + 3 rejected = 1 written + 4 quarantined + 0 duplicate + 0 late",
        "Input impressions: 4 read = 1 malformed + 1 rejected + 0 filtered + 2 entered; watermark "
        "2026-01-01 11:51:00 UTC.",
        "Input clicks: 4 read = 0 malformed + 2 rejected + 1 filtered + 1 entered; watermark "
        "2026-01-01 11:55:00 UTC.",
    ]
    refused = spark.read.format("delta").load(ads.table("rates__quarantine"))
    reasons = Counter((row["row"], *row["reasons"]) for row in refused.collect())
    assert sum(reasons.values()) == 4
    assert {reason for _, reason in reasons} == {
        "malformed",
        "impressions: ad.not_be_null",
        "future_time",
        "null_time",
    }
    assert [(r.name, r.evaluated, r.unexpected) for r in step.rules] == [
        ("impressions: ad.not_be_null", 3, 1)
    ]


def test_a_run_in_which_one_input_is_idle_closes_what_both_had_passed(spark, ads):
    ads.land("impressions", shown(1, 0))
    ads.land("clicks", clicked("other", 240))
    first = ads.run("r1")
    assert ads.rows(spark, *COLUMNS) == Counter()
    assert "Input impressions holds the watermark back: its newest row came with run r1." in lines(
        first
    )
    ads.land("impressions", shown(2, 300))
    second = ads.run("r2")
    assert Counter(row[1] for row in ads.rows(spark, *COLUMNS)) == Counter({"1": 1})
    assert "Input clicks holds the watermark back: its newest row came with run r1." in lines(
        second
    )


def test_nothing_is_closed_before_an_input_has_had_a_row_and_the_report_says_so(spark, ads):
    ads.land("impressions", shown(1, 0), shown(2, 500))
    report = ads.run()
    assert ads.rows(spark, *COLUMNS) == Counter()
    assert any("before the first row of clicks" in line for line in lines(report))


CUT = {"left_in_a_range": LEFT, "full_by_window": WINDOWS}


@pytest.mark.parametrize("case", leave(CUT, "left_in_a_range"))
@pytest.mark.parametrize("seed", EXAMPLES)
def test_any_cut_of_two_inputs_gives_what_a_query_over_all_of_them_gives(
    spark, tmp_path, monkeypatch, case, seed
):
    transform = CUT[case]
    chance = random.Random(f"{seed} {transform}")
    ads, note = Ads(tmp_path, transform), tally_module.note_batch

    def die_now_and_then(*args):
        note(*args)
        if chance.random() < 0.3:
            raise OSError("the machine is gone")

    monkeypatch.setattr(tally_module, "note_batch", die_now_and_then)
    clock = dict.fromkeys(("impressions", "clicks"), 0.0)
    for _ in range(5):
        fed = chance.choice([["impressions"], ["clicks"], ["impressions", "clicks"]])
        for name in fed:  # rows lie at most five minutes back, less than the watermark's ten
            make = shown if name == "impressions" else clicked
            rows = []
            for _ in range(chance.randint(1, 8)):
                clock[name] = max(clock[name], min(clock.values())) + chance.random() * 9
                rows.append(make(chance.randint(1, 6), clock[name] - chance.random() * 5))
            ads.land(name, *rows)
        ads.run()
    monkeypatch.setattr(tally_module, "note_batch", note)
    for name, make in (("impressions", shown), ("clicks", clicked)):
        ads.land(name, make("last", LAST))
    report = ads.run()
    assert report.error is None
    expected = {row: n for row, n in ads.expected(spark, *COLUMNS).items() if "last" not in row}
    found = {row: n for row, n in ads.rows(spark, *COLUMNS).items() if "last" not in row}
    late = sum(r.counts.late for r in report.steps)
    assert late == 0 and found == expected


def test_a_function_gets_each_input_by_the_name_of_its_parameter(spark, tmp_path):
    code = "def join(clicks, impressions):\n    return impressions.join(clicks, ['id', 'at'])\n"
    ads = Ads(tmp_path, code, python=True)
    ads.land("impressions", shown(1, 0), shown(2, 0))
    ads.land("clicks", clicked(1, 0))
    assert ads.run().error is None
    assert ads.rows(spark, "ad", "id") == Counter([("A", "1")])


def test_a_static_table_is_read_at_one_version_and_its_rows_are_nobodys_news(spark, tmp_path):
    prices = str(tmp_path / "prices")
    spark.createDataFrame([("1", 5)], "id string, price int").write.format("delta").save(prices)
    static = {"source": {"kind": "table", "path": prices}, "static": True}
    ads = Ads(
        tmp_path,
        "SELECT i.id, p.price FROM impressions i LEFT JOIN prices p USING (id)",
        asked={"prices": static},
    )
    spec = load_pipeline(tmp_path / "ads.yaml").model_dump(mode="json", exclude_unset=True)
    del spec["steps"][0]["inputs"]["clicks"]
    (tmp_path / "ads.yaml").write_text(yaml.safe_dump(spec))
    ads.land("impressions", shown(1, 0), shown(2, 0))
    report = ads.run()
    assert report.error is None
    assert "Input prices: a table, read at version 0." in lines(report)
    spark.createDataFrame([("2", 7)], "id string, price int").write.format("delta").mode(
        "append"
    ).save(prices)
    assert ads.run().status == "nothing new"
    ads.land("impressions", shown(2, 1))
    ads.run()
    assert ads.rows(spark, "id", "price") == Counter([("1", 5), ("2", None), ("2", 7)])
    sources = {row[0] for row in ads.rows(spark, "_source")}
    assert all(name.endswith(".json") for name in sources) and len(sources) == 2


def test_a_static_table_that_is_not_there_ends_the_run_with_its_name(spark, tmp_path):
    static = {"source": {"kind": "table", "path": str(tmp_path / "none")}, "static": True}
    ads = Ads(tmp_path, LEFT.replace("i.ad", "p.ad") + ", prices p", asked={"prices": static})
    ads.land("impressions", shown(1, 0))
    report = ads.run()
    assert "static input prices: there is no Delta table" in (report.error or "")


REFUSED = {
    "a_watermark_on_the_left_alone": (LEFT, {"clicks": {"watermark": None}}, "left outer"),
    "a_watermark_on_the_right_alone": (LEFT, {"impressions": {"watermark": None}}, "left outer"),
    "no_bound_at_all": (
        "SELECT i.id FROM impressions i LEFT JOIN clicks c ON i.id = c.id",
        {},
        "join of two streams",
    ),
    "a_limit": ("SELECT i.id FROM impressions i JOIN clicks c USING (id) LIMIT 3", {}, "LIMIT"),
    "except": ("SELECT id FROM impressions EXCEPT SELECT id FROM clicks", {}, "EXCEPT"),
    "two_times_on_a_side": (
        "SELECT i.id, i.at FROM (SELECT *, window(at, '1 hour') AS hour FROM impressions) i JOIN "
        "(SELECT id, window(at, '1 hour') AS hour FROM clicks) c USING (id, hour)",
        {},
        "two columns of event time",
    ),
    "an_input_that_is_not_read": ("SELECT id FROM impressions", {}, "does not read input clicks"),
    "a_name_that_is_no_input": ("SELECT id FROM source", {}, "source"),
    "a_rule_that_single_rows_cannot_be_judged_by": (
        LEFT,
        {
            "clicks": {
                "rules": [
                    {
                        "type": "expect_column_values_to_be_json_parseable",
                        "kwargs": {"column": "id"},
                        "on_fail": "warn",
                    }
                ]
            }
        },
        "an input has none",
    ),
    "an_input_that_is_unfolded": (
        LEFT,
        {"clicks": {"transform": "many.sql"}},
        "one by one, and this one does more",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_spark_would_get_wrong_is_refused_before_a_row_is_read(spark, tmp_path, case):
    transform, asked, said = REFUSED[case]
    (tmp_path / "many.sql").write_text("SELECT DISTINCT * FROM source")
    ads = Ads(tmp_path, transform, asked=asked)
    ads.land("impressions", shown(1, 0))
    ads.land("clicks", clicked(1, 0))
    report = ads.run()
    assert report.exit_code is ExitCode.TERMINAL and said in (report.error or "")


def test_a_join_without_a_bound_is_told_that_it_keeps_every_row(spark, tmp_path):
    ads = Ads(tmp_path, "SELECT i.ad, i.id FROM impressions i JOIN clicks c USING (id)")
    ads.land("impressions", shown(1, 0))
    ads.land("clicks", clicked(1, 400))
    (step,) = ads.run().steps
    assert any("keeps every row of both for ever" in warning for warning in step.warnings)
    assert ads.rows(spark, "ad", "id") == Counter([("A", "1")])


CHANGED = {
    "the_kind_of_join": (LEFT.replace("LEFT JOIN", "JOIN"), {}),
    "the_range": (LEFT.replace("1 HOUR", "2 HOURS"), {}),
    "a_watermark": (LEFT, {"clicks": {"watermark": "20 minutes"}}),
}


@pytest.fixture(scope="module")
def gathered(spark, two_partitions, tmp_path_factory) -> Ads:
    """A join that has run once; a run that is refused leaves it as it is."""
    ads = Ads(tmp_path_factory.mktemp("gathered"))
    ads.land("impressions", shown(1, 0))
    ads.land("clicks", clicked(1, 0))
    assert ads.run().error is None
    return ads


def run_changed(ads: Ads, transform: str, asked: dict) -> str | None:
    """The error of a run with a new row, by another query or of other inputs."""
    ads.transform, ads.asked = transform, asked
    ads.write()
    ads.land("impressions", shown(2, 0))
    return ads.run().error


@pytest.mark.parametrize("case", CHANGED)
def test_a_query_whose_state_means_something_else_now_is_refused_with_what_changed(gathered, case):
    assert "gathered by another query" in (run_changed(gathered, *CHANGED[case]) or "")


def test_what_is_selected_of_the_rows_that_meet_may_change(gathered):
    assert run_changed(gathered, LEFT.replace("AS clicked", "AS clicked_at"), {}) is None


SUMS = "SELECT window.start AS hour, {0} AS n FROM clicks GROUP BY window(at, '{1}')"
EDITS = {
    "sum_to_max": ("max(minute(at))", "1 hour"),
    "another_column": ("sum(second(at))", "1 hour"),
    "another_window": ("sum(minute(at))", "30 minutes"),
}


def sum_clicks(folder: Path, aggregate: str) -> Ads:
    """A step that reads the clicks alone, and sums them by the hour."""
    ads = Ads(folder, SUMS.format(aggregate, "1 hour"))
    spec = load_pipeline(folder / "ads.yaml").model_dump(mode="json", exclude_unset=True)
    del spec["steps"][0]["inputs"]["impressions"]
    (folder / "ads.yaml").write_text(yaml.safe_dump(spec))
    return ads


@pytest.fixture(scope="module")
def summed(spark, two_partitions, tmp_path_factory) -> Ads:
    """One that has run once."""
    ads = sum_clicks(tmp_path_factory.mktemp("summed"), "sum(minute(at))")
    ads.land("clicks", clicked(1, 5))
    assert ads.run().error is None
    return ads


@pytest.mark.parametrize("case", EDITS)
def test_an_aggregate_that_means_something_else_now_is_refused(summed, case):
    (summed.folder / "t.sql").write_text(SUMS.format(*EDITS[case]))
    summed.land("clicks", clicked(1, 6))
    assert "gathered by another query" in (summed.run().error or "")


def test_a_window_that_is_over_is_written_by_the_run_that_saw_its_end(spark, tmp_path):
    ads = sum_clicks(tmp_path, "count(*)")
    ads.land("clicks", clicked(1, 5), clicked(2, 50), clicked(3, 75))
    (step,) = ads.run().steps
    assert ads.rows(spark, "n") == Counter([(2,)])
    assert step.held[0].amount == 1 and moment(120)[:16] in step.held[0].closes_last.isoformat()


UNION = "SELECT id, at FROM impressions UNION ALL SELECT id, at FROM clicks"


def test_inputs_that_are_put_one_below_the_other_keep_every_row_once(spark, tmp_path):
    ads = Ads(tmp_path, UNION)
    for n in range(3):
        ads.land("impressions", shown(n, n), shown(n, n))
        if n != 1:
            ads.land("clicks", clicked(n, n))
        report = ads.run()
        assert report.error is None and report.counts.read == report.counts.written
    assert ads.rows(spark, "id", "at") == ads.expected(spark, "id", "at")
    assert ads.run().status == "nothing new"


def test_inputs_in_another_order_are_refused_because_the_checkpoint_counts_them(spark, tmp_path):
    ads = Ads(tmp_path, UNION)
    ads.land("impressions", shown(1, 1))
    ads.land("clicks", clicked(2, 2))
    assert ads.run().error is None
    file = tmp_path / "ads.yaml"
    told = yaml.safe_load(file.read_text())
    step = told["steps"][0]
    step["inputs"] = dict(reversed(step["inputs"].items()))
    file.write_text(yaml.safe_dump(told, sort_keys=False))
    ads.land("clicks", clicked(3, 3))
    report = ads.run()
    assert "before: impressions, clicks; now: clicks, impressions" in (report.error or "")
    ads.write()
    assert ads.run().counts.written == 1
    assert ads.rows(spark, "id", "at") == ads.expected(spark, "id", "at")


def test_a_table_and_files_meet_and_each_is_read_from_where_it_was(spark, tmp_path):
    place = str(tmp_path / "clicks_table")
    source = {"kind": "table", "path": place}
    ads = Ads(tmp_path, asked={"clicks": {"source": source}})

    def click(*rows: tuple[int, float]) -> None:
        frame = spark.createDataFrame(
            [(str(id_), moment(m)) for id_, m in rows], "id string, t string"
        )
        frame = frame.selectExpr("id", "timestamp(t) AS at")
        frame.write.format("delta").mode("append").save(place)

    click((1, 5))
    ads.land("impressions", shown(1, 0), shown(2, 1))
    assert ads.run().error is None
    click((2, 40), ("last", LAST))
    report = ads.run()
    assert [i.counts.read for i in report.steps[0].inputs] == [0, 2]
    ads.land("impressions", shown(3, 50), shown("last", LAST))
    assert ads.run().error is None
    found = Counter((row[1], row[3] is None) for row in ads.rows(spark, *COLUMNS).elements())
    assert found == Counter([("1", False), ("2", False), ("3", True), ("last", False)])


def test_a_row_that_an_edited_rule_refuses_at_the_retry_has_not_moved_the_watermark(
    spark, tmp_path, monkeypatch
):
    ads = Ads(tmp_path)
    ads.land("impressions", shown(1, 0))
    ads.land("clicks", clicked("bot", 5000))
    ads.land("impressions", shown("bot", 5000))
    with monkeypatch.context() as patched:
        patched.setattr(tally_module, "note_batch", Mock(side_effect=OSError("no room")))
        assert "no room" in (ads.run().error or "")
    rule = {"type": "expect_column_values_to_not_be_in_set", "on_fail": "quarantine"}
    refuse = {"rules": [rule | {"kwargs": {"column": "id", "value_set": ["bot"]}}]}
    ads.asked = {"impressions": refuse, "clicks": refuse}
    ads.write()
    ads.land("clicks", clicked(2, 0))
    report = ads.run()
    assert report.error is None
    reached = [one.watermark_ms for one in report.steps[0].inputs]
    assert reached == [int((NOON - timedelta(minutes=10)).timestamp() * 1000)] * 2


def test_the_fastest_input_may_close_what_is_held_where_the_step_says_so(spark, tmp_path):
    ads = Ads(tmp_path, changes={"watermark_policy": "max"})
    ads.land("impressions", shown(1, 0), shown(2, 500))
    ads.land("clicks", clicked(1, 5))
    assert ads.run().error is None
    ads.land("impressions", shown(3, 1))  # behind the fastest, so late
    ads.land("clicks", clicked(2, 505))
    report = ads.run()
    assert (report.error, report.counts.late) == (None, 1)
    assert not any("holds the watermark back" in line for line in lines(report))
    found = Counter((row[1], row[3] is None) for row in ads.rows(spark, *COLUMNS).elements())
    assert found == Counter([("1", False), ("2", False)])


def test_the_fastest_input_closes_although_another_never_had_a_row(spark, tmp_path):
    ads = Ads(tmp_path, changes={"watermark_policy": "max"})
    ads.land("impressions", shown(1, 0), shown(2, 500))
    report = ads.run()
    assert not any("before the first row" in line for line in lines(report))
    assert Counter(row[1] for row in ads.rows(spark, *COLUMNS)) == Counter({"1": 1})


@pytest.mark.parametrize("whose", ["prices", "costs"])
def test_a_file_that_nobody_can_read_is_looked_for_where_it_lies(spark, tmp_path, whose):
    """Of a folder it is one quarantined row, whichever input comes first; of a table the run says
    so, and takes it for no landed file."""
    for table in ("costs", "prices"):
        made = spark.createDataFrame([("1", 5)], "id string, price int").coalesce(1)
        made.write.format("delta").save(str(tmp_path / table))
    tables = {name: {"kind": "table", "path": str(tmp_path / name)} for name in ("costs", "prices")}
    asked = {"costs": {"source": tables["costs"]}}
    ads = Ads(
        tmp_path,
        "SELECT i.id, p.price FROM clicks i JOIN prices p USING (id) UNION ALL "
        "SELECT id, price FROM costs",
        asked=asked | {"prices": {"source": tables["prices"], "static": True}},
        schemas={"clicks": SCHEMAS["clicks"]},
    )
    spec = yaml.safe_load((tmp_path / "ads.yaml").read_text())
    inputs = spec["steps"][0]["inputs"]
    del inputs["clicks"]["watermark"], inputs["clicks"]["event_time"]
    inputs["clicks"]["source"]["path"] = f"{tmp_path}/cl?cks"
    spec["steps"][0]["inputs"] = {name: inputs[name] for name in ("costs", "clicks", "prices")}
    (tmp_path / "ads.yaml").write_text(yaml.safe_dump(spec, sort_keys=False))
    ads.land("clicks", clicked(1, 0))
    (tmp_path / "clicks" / "cut.json.gz").write_bytes(gzip.compress(b"{}" * 99)[:-12])
    (lost,) = (tmp_path / whose).glob("*.parquet")
    kept = lost.rename(tmp_path / "kept")
    report = ads.run()
    of = "static input prices" if whose == "prices" else "the source table"
    assert report.exit_code is ExitCode.TERMINAL and of in report.error
    kept.rename(lost)
    report = ads.run()
    assert (report.error, report.counts.written, report.counts.quarantined) == (None, 2, 1)
