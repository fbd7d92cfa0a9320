"""`sluice validate --spark` finds, without data, what only Spark can find.

`sluice new` writes what passes it.
"""

import os
import re
import subprocess
import sys
from functools import reduce
from pathlib import Path

import pytest
from sluice.cli import app
from sluice.errors import ExitCode
from typer.testing import CliRunner

YAML = """
name: visits
steps:
  - name: pages
    source:
      path: /nowhere/landing
      format: json
      schema: {id: bigint, at: timestamp, page: string}
    transform: visits.sql
    event_time: {column: at}
    dedup: {keys: [id], within: 2 days}
    rules:
      - {type: expect_column_values_to_not_be_null, kwargs: {column: page}, on_fail: quarantine}
"""


def validate(folder: Path, sql: str, yaml: str = YAML):
    """Write the pipeline and its SQL, and validate it with Spark."""
    (folder / "visits.sql").write_text(sql)
    (folder / "visits.yaml").write_text(yaml)
    return CliRunner().invoke(app, ["validate", "--spec", str(folder / "visits.yaml"), "--spark"])


def test_a_right_pipeline_is_ok_without_its_landing_folder_and_nothing_else_is_said(
    spark, tmp_path
):
    result = validate(tmp_path, "SELECT id, at, page FROM source")
    assert result.exit_code == 0
    (warning,) = result.stderr.splitlines()
    assert "warning: pages: source: /nowhere/landing: the landing folder does not exist" in warning
    assert "ok  visits" in result.stdout


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELEKT id FROM source", "the SQL cannot run"),
        ("SELECT id, at, pag FROM source", "pag"),
        ("SELECT id, at FROM source", "page"),
        ("SELECT at, page FROM source", "id"),
    ],
)
def test_wrong_sql_and_columns_it_does_not_make_are_named(spark, tmp_path, sql, says):
    result = validate(tmp_path, sql)
    assert result.exit_code == ExitCode.TERMINAL
    assert says in result.stderr
    assert "Traceback" not in result.stderr
    assert "at org.apache" not in result.stderr


@pytest.mark.parametrize(
    ("sql", "line", "under"),
    [
        ("\nSELECT id, at,\n  pag FROM source", "  pag FROM source", "pag"),
        ("SELECT id, at, page FROM\nsource WERE id > 1", "source WERE id > 1", None),
    ],
)
def test_wrong_sql_is_shown_with_its_line_and_a_caret(spark, tmp_path, sql, line, under):
    said = validate(tmp_path, sql).stderr
    assert "visits.sql: the SQL cannot run" in said
    shown, caret = said.splitlines()[said.splitlines().index(f"    {line}") :][:2]
    assert caret.strip() == "^"
    assert under is None or caret.index("^") == shown.index(under)
    assert "line 9, step pages" in said
    assert re.search(r"the SQL cannot run: .*, line [23], column \d+, line 9", said)


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("column: page", "column: pagee", 13, "no such column (got 'pagee')"),
        ("column: at", "column: att", 10, "no column 'att' after parse and transform"),
        ("keys: [id]", "keys: [idd]", 11, "no column 'idd' after parse and transform"),
    ],
)
def test_a_column_the_transform_does_not_make_is_named_with_its_line(
    spark, tmp_path, old, new, line, says
):
    result = validate(tmp_path, "SELECT id, at, page FROM source", YAML.replace(old, new))
    assert says in result.stderr
    assert f"line {line}, step pages" in result.stderr
    assert "Did you mean '" in result.stderr


def test_spark_has_the_reader_options_that_are_told_apart(spark):
    from sluice.spec.reader_options import READER_OPTIONS

    catalyst = "org.apache.spark.sql.catalyst"
    sources = "org.apache.spark.sql.execution.datasources"
    companions = {
        "json": f"{catalyst}.json.JSONOptions",
        "csv": f"{catalyst}.csv.CSVOptions",
        "text": f"{sources}.text.TextOptions",
        "xml": f"{catalyst}.xml.XmlOptions",
        "parquet": f"{sources}.parquet.ParquetOptions",
        "orc": f"{sources}.orc.OrcOptions",
        "avro": "org.apache.spark.sql.avro.AvroOptions",
    }
    for format_, companion in companions.items():
        known = {name.lower() for name in READER_OPTIONS[format_]}
        for name in (companion, f"{sources}.FileIndexOptions"):
            companion_object = reduce(getattr, name.split("."), spark._jvm)
            options = companion_object.getAllOptions().mkString(" ").split()
            assert {o.lower() for o in options if "." not in o} <= known


def test_a_rule_that_cannot_split_rows_is_refused(spark, tmp_path):
    wrong = YAML.replace(
        "expect_column_values_to_not_be_null, kwargs: {column: page}",
        "expect_column_mean_to_be_between, kwargs: {column: id, min_value: 0}",
    )
    assert "quarantine" in validate(tmp_path, "SELECT id, at, page FROM source", wrong).stderr


def test_what_new_writes_validates_and_its_test_passes(tmp_path):
    (tmp_path / "include" / "pipelines").mkdir(parents=True)
    sample = tmp_path / "sample.csv"
    sample.write_text("code,amount\n00123,1.5\n")
    env = os.environ | {"SLUICE_PROJECT": str(tmp_path), "SLUICE_PIPELINES": ""}
    sluice = [sys.executable, "-m", "sluice.cli"]
    for command in (
        ["new", "clicks"],
        ["new", "codes", "--from", str(sample)],
        ["new", "blobs", "--format", "parquet"],
    ):
        subprocess.run([*sluice, *command], env=env, check=True, capture_output=True, timeout=60)
    tests = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        str(tmp_path / "tests"),
    ]
    done = subprocess.run(
        tests, env=env, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
