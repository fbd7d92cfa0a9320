"""Transforms in whole runs: what is refused, what a run ends with, and what of a row is told."""

import json
from collections import Counter
from pathlib import Path

import pytest
from sluice.errors import ExitCode
from sluice.quality import validate_table
from sluice.report import Outcome, RunReport, render_html, render_text
from sluice.spec import RuleSpec

from tests.spark.factories import Project

FILES = {
    "kind": "files",
    "format": "json",
    "schema": {"id": "string", "n": "bigint", "ssn": "string", "at": "timestamp"},
    "max_files_per_batch": 1,
}
WATERMARK = "def clean(rows):\n    return rows.withWatermark('at', '1 hour')\n"
SSN = "123-45-6789"


def line(name: str, n: int = 1, hour: int = 0, ssn: str = "1") -> str:
    return (
        json.dumps({"id": name, "n": n, "ssn": ssn, "at": f"2026-01-01T{hour:02d}:30:00Z"}) + "\n"
    )


def project(spark, folder: Path, text: str, step: dict | None = None, **pipeline) -> Project:
    file = "t.py" if "def clean" in text else "t.sql"
    (folder / file).write_text(text)
    transform = "t.py:clean" if file == "t.py" else file
    step = {"transform": transform, "sink": {"mode": "append"}, **(step or {})}
    return Project(spark, folder, FILES, step, pipeline)


def test_a_where_keeps_rows_from_being_computed_and_they_are_counted_as_filtered(spark, tmp_path):
    shop = project(spark, tmp_path, "SELECT id, 12 / n AS part FROM source WHERE n <> 0")
    shop.land("1.json", line("a", 4) + line("b", 0) + "no record\n")
    report = shop.run()
    assert (report.exit_code, report.error) == (ExitCode.DONE, None)
    assert (report.counts.read, report.counts.written, report.counts.malformed) == (3, 1, 1)
    assert shop.rows("id", "part") == Counter([("a", 3.0)])


def test_a_value_that_cannot_be_computed_ends_the_run_for_good_and_is_told_nowhere(spark, tmp_path):
    shop = project(
        spark, tmp_path, "SELECT id, at, CAST(ssn AS INT) AS ssn FROM source", pii=["ssn"]
    )
    shop.land("1.json", line("a", ssn="17") + line("b", ssn=SSN))
    report = shop.run()
    assert report.exit_code == ExitCode.TERMINAL
    assert "CAST_INVALID_INPUT in CAST(ssn AS INT)" in report.error
    stored = [path for path in (tmp_path / "root" / "reports").rglob("*") if path.is_file()]
    assert {path.suffix for path in stored} >= {".json", ".html"}
    assert not [path for path in stored if SSN in path.read_text()]


def test_a_rule_whose_job_fails_on_a_value_of_another_column_does_not_tell_it(spark):
    rows = spark.createDataFrame([("a", SSN)], "id string, ssn string")
    rows = rows.selectExpr("id", "CAST(ssn AS INT) AS ssn", "length(id) + CAST(ssn AS INT) AS n")
    rule = RuleSpec(type="expect_column_mean_to_be_between", kwargs={"column": "n", "min_value": 0})
    (result,) = validate_table(rows, [rule], {"ssn"})
    assert (result.outcome, SSN in result.message) == (Outcome.ERROR, False)
    assert "CAST_INVALID_INPUT" in result.message


def test_a_second_watermark_is_refused_before_the_start_with_what_to_write(spark, tmp_path):
    dedup = {
        "event_time": {"column": "at"},
        "dedup": {"keys": ["id"], "within": "2 days"},
        "sink": {},
    }
    shop = project(spark, tmp_path, WATERMARK, dedup)
    shop.land("1.json", line("a"))
    report = shop.run()
    assert report.exit_code == ExitCode.TERMINAL
    assert "withWatermark" in report.error and "Leave `withWatermark` out" in report.error
    assert not (tmp_path / "root" / "checkpoints" / "p" / "s" / "spark").exists()


KEYS = {
    "map": ("SELECT id, at, map(id, n) AS tags FROM source", "*"),
    "variant": ("SELECT id, at, parse_json(to_json(map(id, n))) AS tags FROM source", ["tags"]),
}


@pytest.mark.parametrize(("text", "keys"), KEYS.values(), ids=KEYS)
def test_a_key_that_spark_cannot_compare_is_terminal_and_named(spark, tmp_path, text, keys):
    dedup = {"keys": keys, "within": "2 days"}
    shop = project(
        spark, tmp_path, text, {"event_time": {"column": "at"}, "dedup": dedup, "sink": {}}
    )
    shop.land("1.json", line("a") + line("a", n=2))
    report = shop.run()
    assert report.exit_code == ExitCode.TERMINAL
    assert "tags" in report.error


def test_rows_of_a_stream_know_their_file_whatever_a_query_does_to_them(spark, tmp_path):
    countries = tmp_path / "countries"
    spark.sql("SELECT 'a' AS id, 'DE' AS country").write.format("delta").save(str(countries))
    shop = project(
        spark,
        tmp_path,
        "WITH known AS (SELECT s.*, c.country FROM source s "
        f"JOIN delta.`{countries}` c USING (id) WHERE n > 0), "
        "parts AS (SELECT id, country, part FROM known "
        "LATERAL VIEW explode(sequence(1, n)) t AS part) "
        "SELECT id, country, part FROM parts",
    )
    shop.land("1.json", line("a", 2) + line("b", 3) + "no record\n")
    shop.land("2.json", line("a", 1))
    report = shop.run()
    assert (report.exit_code, report.error) == (ExitCode.DONE, None)
    assert shop.rows("id", "country", "part", source="1.json") == Counter(
        [("a", "DE", 1), ("a", "DE", 2)]
    )
    assert shop.rows("part", source="2.json") == Counter([(1,)])
    assert [(row.row, row.reasons) for row in shop.quarantine()] == [("no record", ["malformed"])]


def test_of_a_record_that_was_unfolded_the_refused_row_is_kept_and_not_the_whole(spark, tmp_path):
    sql = "SELECT id, part, at FROM source LATERAL VIEW explode(sequence(1, n)) t AS part"
    rule = {
        "type": "expect_column_values_to_be_between",
        "kwargs": {"column": "part", "max_value": 2},
        "on_fail": "quarantine",
        "name": "small",
    }
    step = {
        "event_time": {"column": "at"},
        "dedup": {"keys": ["id", "part"], "within": "1 day"},
        "rules": [rule],
        "sink": {"kind": "delta"},
    }
    shop = project(spark, tmp_path, sql, step)
    shop.land("1.json", line("a", 3) + line("b", 4) + "no record\n")
    shop.land("2.json", line("a", 3, ssn="another text, and the same rows"))
    report = shop.run()
    counts = report.counts
    told = (report.error, counts.written, counts.quarantined, counts.duplicate)
    assert told == (None, 4, 4, 3)
    at = '"at":"2026-01-01T00:30:00.000Z"'
    assert Counter((row.row, *row.reasons) for row in shop.quarantine()) == Counter(
        [
            (f'{{"id":"a","part":3,{at}}}', "small"),
            (f'{{"id":"b","part":3,{at}}}', "small"),
            (f'{{"id":"b","part":4,{at}}}', "small"),
            ("no record", "malformed"),
        ]
    )


SUMS = """
from pyspark.sql import functions as F
def clean(rows):
    hours = F.window("at", "1 hour")
    sums = rows.withWatermark("at", "0 seconds").groupBy(hours, F.col({by}).alias("by"))
    return sums.agg(F.sum({what}).alias("n")).select(F.col("window.start").alias("at"), "n")
"""


def test_a_state_of_another_shape_is_terminal_and_says_what_to_do(spark, tmp_path):
    shop = project(spark, tmp_path, SUMS.format(by="'id'", what="'n'"))
    shop.land("1.json", line("a"))
    shop.land("2.json", line("a", hour=5))
    assert shop.run().exit_code == ExitCode.DONE
    (tmp_path / "t.py").write_text(SUMS.format(by="'n'", what="'n'"))
    shop.land("3.json", line("a", hour=9))
    report = shop.run()
    assert report.exit_code == ExitCode.TERMINAL
    assert "gathered by another query" in report.error and "sluice reset p" in report.error
    assert "before: aggregation by" in report.error and "Now: aggregation by" in report.error


HOURS = SUMS.format(by="'id'", what="'n'").replace("0 seconds", "30 minutes")


def told(report: RunReport) -> str:
    """The report as text on one line; what it says of state its page says as well."""
    (step,) = report.steps
    text, page = " ".join(render_text(report).split()), render_html(report)
    assert ("held in state" in text) == ("held in state" in page) == bool(sum_held(report))
    assert RunReport.model_validate_json(report.model_dump_json()).steps[0].held == step.held
    return text


def sum_held(report: RunReport) -> int:
    return sum(kept.amount for kept in report.steps[0].held)


def test_windows_held_open_and_groups_dropped_late_are_told_with_their_numbers(spark, tmp_path):
    shop = project(spark, tmp_path, HOURS)
    shop.land("1.json", line("a") + line("b", hour=5) + line("c", hour=5))
    first = shop.run()
    assert (first.exit_code, first.counts.written, sum_held(first)) == (ExitCode.DONE, 1, 2)
    assert (
        "), in windows that end at 2026-01-01 06:00:00 UTC: each is written by the first batch "
        "after the watermark (now 2026-01-01 05:00:00 UTC) is past it."
    ) in told(first)
    assert "2 groups are held in state (" in told(first)
    shop.land("2.json", line("d", hour=9))
    second = shop.run()
    assert (second.counts.written, second.counts.late, sum_held(second)) == (2, 0, 1)
    shop.land("3.json", line("a") * 3 + line("e", hour=9))
    third = shop.run()
    assert (third.counts.written, third.counts.late, third.counts.late_groups) == (0, 1, 1)
    assert (sum_held(third), shop.rows("n")) == (2, Counter([(1,)] * 3))
    assert "1 late (groups)" in told(third) and "1 late group, not rows" in told(third)


def test_a_step_that_gathers_no_rows_says_nothing_of_state(spark, tmp_path):
    shop = project(spark, tmp_path, "SELECT id, at FROM source")
    shop.land("1.json", line("a"))
    report = shop.run()
    assert report.steps[0].held == [] and "held in state" not in told(report)
