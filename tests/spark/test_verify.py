"""`sluice verify` computes the tables of refreshed steps once more: it finds what was changed
beside the step, and says where."""

import json

import pytest
from sluice.cli import app
from sluice.errors import ExitCode, PreflightError
from sluice.report import tell_verified
from sluice.runner import run_pipeline
from sluice.spec import RunRequest, load_pipeline
from sluice.streaming.verifying import verify_groups
from typer.testing import CliRunner

ROWS = 1_000_000
QUERY = "SELECT id % 5000 AS bucket, id, amount FROM source WHERE amount > 0"
SPEC = """
name: gold
schedule: null
pii: [secret]
steps:
  - name: kept
    source: {{kind: table, path: {path}}}
    transform: kept.sql
    groups: {{bucket: id % 5000}}
"""


class Kept:
    """A table that follows from another one, row by row."""

    def __init__(self, spark, folder, rows: int) -> None:
        self.spark, self.folder = spark, folder
        self.source, self.root = folder / "source", folder / "root"
        made = spark.range(0, rows, 1, 4).selectExpr("id", "cast(id % 977 AS INT) AS amount")
        made.write.format("delta").save(str(self.source))
        (folder / "kept.sql").write_text(QUERY)
        self.spec = folder / "gold.yaml"
        self.spec.write_text(SPEC.format(path=self.source))
        self.run()

    @property
    def table(self) -> str:
        """Its target in SQL."""
        return f"delta.`{self.root / 'tables' / 'gold' / 'kept'}`"

    def run(self) -> None:
        """One run, which ends well."""
        report = run_pipeline(RunRequest(pipeline=str(self.spec), root=str(self.root)))
        assert report.exit_code in (ExitCode.DONE, ExitCode.NOTHING_NEW), report.error

    def verify(self, share: float = 1.0):
        """What verify finds."""
        pipeline = load_pipeline(self.spec)
        paths = pipeline.paths(self.root)
        return verify_groups(self.spark, pipeline, pipeline.steps[0], paths, share)


@pytest.fixture
def kept(spark, tmp_path):
    return Kept(spark, tmp_path, 20_000)


def test_one_changed_row_in_a_million_is_found_and_its_group_named(spark, tmp_path, compiled):
    kept = Kept(spark, tmp_path, ROWS)
    good = ROWS - len(range(0, ROWS, 977))
    found = kept.verify()
    assert (found.equal, found.rows) == (True, good)
    spark.sql(f"UPDATE {kept.table} SET amount = amount + 1 WHERE id = 765432")
    found = kept.verify()
    assert (found.missing, found.surplus, found.groups) == (1, 1, 1)
    assert [one.group for one in found.samples] == [f"bucket={765432 % 5000}"]
    assert "DIFFERS" in next(tell_verified(found))


def test_rows_that_are_doubled_deleted_or_new_are_told_apart(spark, kept):
    spark.sql(f"INSERT INTO {kept.table} SELECT * FROM {kept.table} WHERE id IN (1, 2)")
    spark.sql(f"DELETE FROM {kept.table} WHERE id = 7")
    found = kept.verify()
    assert (found.missing, found.surplus, found.groups) == (1, 2, 3)
    told = {one.group: (one.missing, one.surplus) for one in found.samples}
    assert told == {"bucket=1": (0, 1), "bucket=2": (0, 1), "bucket=7": (1, 0)}


def test_commits_behind_the_last_run_are_no_difference(spark, kept):
    spark.sql(f"INSERT INTO delta.`{kept.source}` VALUES (50000, 3)")
    found = kept.verify()
    assert found.equal
    assert found.versions == {"source": 0}


def test_a_sample_is_made_of_whole_groups(spark, kept):
    part = kept.verify(0.1)
    assert part.equal
    assert 0.05 < part.rows / kept.verify().rows < 0.2
    spark.sql(f"DELETE FROM {kept.table}")
    assert kept.verify(0.1).missing == part.rows


def test_an_edited_query_is_no_measure_of_what_another_one_made(kept):
    (kept.folder / "kept.sql").write_text(QUERY.replace("> 0", "> 1"))
    with pytest.raises(PreflightError, match="were edited since"):
        kept.verify()


def test_a_step_that_is_reset_writes_no_more_than_what_differs(spark, kept):
    spark.sql(f"DELETE FROM {kept.table} WHERE id = 7")
    spark.sql(f"UPDATE {kept.table} SET _run_id = 'before'")
    asked = ["reset", "--spec", str(kept.spec), "--step", "kept", "--root", str(kept.root)]
    told = CliRunner().invoke(app, [*asked, "--yes"])
    assert told.exit_code == 0, told.output
    assert "writes those that differ" in told.output
    kept.run()
    assert kept.verify().equal
    fresh = spark.sql(f"SELECT DISTINCT bucket FROM {kept.table} WHERE _run_id <> 'before'")
    assert [row[0] for row in fresh.collect()] == [7]


def test_the_verb_exits_with_6_where_a_table_differs(spark, kept):
    asked = ["verify", "--spec", str(kept.spec), "--root", str(kept.root)]
    told = CliRunner().invoke(app, asked)
    assert told.exit_code == 0, told.output
    assert "equal to the query over source at version 0" in told.output
    told = CliRunner().invoke(app, [*asked, "--step", "kept", "--sample", "1"])
    assert told.exit_code == 0, told.output
    assert "in 1.0000% of its groups, equal to" in told.output
    spark.sql(f"DELETE FROM {kept.table} WHERE id = 7")
    told = CliRunner().invoke(app, [*asked, "--json"])
    assert told.exit_code == ExitCode.TERMINAL
    assert json.loads(told.stdout.splitlines()[-1])["missing"] == 1
    assert CliRunner().invoke(app, [*asked, "--step", "nope"]).exit_code == ExitCode.TERMINAL
