"""Delta tables as a source: each commit once, whatever is done to the table in between."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from sluice.errors import ExitCode
from sluice.streaming import bounds

from tests.long_runs import leave
from tests.spark.factories import Project

DEDUP = {"event_time": {"column": "at"}, "dedup": {"keys": ["id"], "within": "2 days"}}
SCHEMA = "id string, n bigint, at timestamp"


@pytest.fixture
def table(spark, tmp_path):
    """A table of orders: `add(1, 2)` commits two."""

    class Table:
        path = str(tmp_path / "upstream")

        def add(self, *numbers: int) -> None:
            rows = spark.createDataFrame(
                [(f"o{n}", n) for n in numbers], "id string, n bigint"
            ).selectExpr("*", "TIMESTAMP '2026-01-01 00:00:00' AS at")
            rows.coalesce(1).write.format("delta").mode("append").save(self.path)

        def sql(self, statement: str) -> None:
            spark.sql(statement.format(table=f"delta.`{self.path}`"))

    return Table()


@pytest.fixture
def project(spark, table, tmp_path):
    def make(step: dict | None = None, folder: str = "p", **source: object) -> Project:
        return Project(
            spark,
            tmp_path / folder,
            {"kind": "table", "path": table.path, **source},
            step or {"sink": {"mode": "append"}},
        )

    return make


def numbers(project: Project) -> list[int]:
    return sorted(row[0] for row in project.rows("n").elements())


def test_each_commit_is_read_once_and_the_probe_reads_the_tables_log(project, table):
    table.add(1, 2)
    shop = project(DEDUP)
    assert shop.plan().must_run
    first = shop.run().steps[0]
    assert (first.counts.written, first.ranges) == (2, {f"commits of {table.path}": (0, 1)})
    assert shop.plan().reason == "nothing is new"
    assert shop.run().exit_code is ExitCode.NOTHING_NEW
    table.add(2, 3)
    table.sql("OPTIMIZE {table}")
    assert (shop.plan().commits, shop.plan().must_run) == (1, True)
    assert shop.run().counts.duplicate == 1
    table.sql("OPTIMIZE {table}")
    assert not shop.plan().must_run  # commits that only rearrange files wake nobody
    assert numbers(shop) == [1, 2, 3]


def test_a_step_reads_what_an_earlier_one_of_the_same_run_wrote(spark, tmp_path):
    first = {"sink": {"kind": "delta"}, **DEDUP}
    shop = Project(
        spark,
        tmp_path,
        {
            "kind": "files",
            "format": "json",
            "schema": {"id": "string", "n": "bigint", "at": "timestamp"},
        },
        first,
    )
    write = shop.write

    def write_two() -> object:
        file = write()
        import yaml

        raw = yaml.safe_load(file.read_text())
        raw["steps"].append(
            {
                "name": "big",
                "source": {"kind": "table", "step": "s"},
                "transform": "big.sql",
                "sink": {"mode": "append"},
            }
        )
        file.write_text(yaml.safe_dump(raw, sort_keys=False))
        return file

    shop.write = write_two
    (tmp_path / "big.sql").write_text("SELECT id, n FROM source WHERE n > 1")
    shop.land(
        "1.json",
        "".join(
            json.dumps({"id": f"o{n}", "n": n, "at": "2026-01-01T00:00:00Z"}) + "\n"
            for n in (1, 2, 2)
        ),
    )
    report = shop.run()
    assert report.error is None
    assert [
        (s.counts.read, s.counts.entered, s.counts.filtered, s.counts.written) for s in report.steps
    ] == [(3, 3, 0, 2), (2, 1, 1, 1)]
    shop.land("2.json", json.dumps({"id": "o3", "n": 3, "at": "2026-01-01T00:00:00Z"}) + "\n")
    shop.run()
    assert Counter(
        r.n for r in spark.read.format("delta").load(shop.paths.table("big")).collect()
    ) == Counter([2, 3])
    assert shop.run().exit_code is ExitCode.NOTHING_NEW


@pytest.mark.parametrize(
    ("start", "expected"),
    [({"version": 1}, [2, 3]), ("latest", []), ("earliest", [1, 2, 3])],
    ids=["version", "latest", "earliest"],
)
def test_a_first_run_begins_where_start_says_and_later_commits_are_all_read(
    project, table, start, expected
):
    for number in (1, 2, 3):
        table.add(number)
    shop = project(start=start)
    report = shop.run()
    assert report.error is None
    assert numbers(shop) == expected if expected else report.counts.read == 0
    assert shop.plan().reason == "nothing is new"
    table.add(4)
    table.add(5)
    assert shop.run().error is None
    assert numbers(shop) == [*expected, 4, 5]


def test_a_first_run_begins_at_a_time(project, table, spark):
    table.add(1)
    table.add(2)
    made = (
        spark.sql(f"DESCRIBE HISTORY delta.`{table.path}`")
        .where("version = 1")
        .first()["timestamp"]
    )
    shop = project(start={"timestamp": made.isoformat()})
    shop.run()
    assert numbers(shop) == [2]


def test_a_commit_that_changes_rows_stops_the_run_unless_it_is_passed_over_or_read_as_changes(
    project, table
):
    table.add(1, 2)
    table.sql("ALTER TABLE {table} SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    plain, passing, changes = (
        project(folder="a"),
        project(folder="b", skip_change_commits=True),
        project(folder="c", change_feed=True, start={"version": 1}),
    )
    for shop in (plain, passing):
        shop.run()
    table.sql("UPDATE {table} SET n = 20 WHERE n = 2")
    table.add(3)
    stopped = plain.run()
    assert stopped.exit_code is ExitCode.TERMINAL
    assert "move this step's checkpoint away" in stopped.error
    # The advice, followed to the letter: this step has no `dedup`, so its table goes as well.
    for folder in (plain.paths.checkpoint("s"), plain.paths.table("s")):
        Path(folder).rename(f"{folder}_away")
    assert plain.run().error is None
    assert numbers(plain) == [1, 3, 20]
    passing.run()
    assert numbers(passing) == [1, 2, 3]
    assert changes.run().error is None
    found = Counter(
        (r.change_type, r.n) for r in changes._table(changes.paths.table("s")).collect()
    )
    assert found == Counter([("update_preimage", 2), ("update_postimage", 20), ("insert", 3)])


def test_columns_may_be_renamed_in_a_tracked_table(project, table):
    table.add(1)
    table.sql(
        "ALTER TABLE {table} SET TBLPROPERTIES (delta.columnMapping.mode = 'name', "
        "delta.minReaderVersion = '2', delta.minWriterVersion = '5')"
    )
    shop = project(schema_tracking=True)
    assert shop.run().error is None
    table.add(2)
    table.sql("ALTER TABLE {table} RENAME COLUMN n TO number")
    table.sql("INSERT INTO {table} VALUES ('o3', 3, TIMESTAMP '2026-01-01 00:00:00')")
    for _ in range(3):
        report = shop.run()
    assert report.error is None
    rows = shop._table(shop.paths.table("s"))
    assert Counter((r.id, r.n, r.number) for r in rows.collect()) == Counter(
        [("o1", 1, None), ("o2", 2, None), ("o3", None, 3)]
    )


def test_nothing_of_the_first_state_is_late_when_its_order_is_asked_for(project, table, spark):
    for day in (3, 1, 2):
        spark.sql(
            f"SELECT 'o{day}' AS id, {day}L AS n, TIMESTAMP '2026-01-0{day} 00:00:00' AS at"
        ).write.format("delta").mode("append").save(table.path)
    shop = project(
        {
            "event_time": {"column": "at"},
            "dedup": {"keys": ["id"], "within": "1 hours", "late": "keep"},
        },
        event_time_order=True,
        max_files_per_batch=1,
    )
    counts = shop.run().counts
    assert (counts.read, counts.written, counts.late) == (3, 3, 0)


def test_a_table_that_is_not_there_is_an_error_that_names_it(project):
    report = project(path="nowhere/at/all").run()
    assert report.exit_code is ExitCode.TERMINAL
    assert "there is no Delta table" in report.error and "nowhere/at/all" in report.error


@pytest.mark.parametrize("commits", [1, 2, 5], ids=["fewer", "as many", "more"])
def test_a_table_made_anew_is_named_and_the_advice_reads_it(project, table, commits):
    for number in (1, 2):
        table.add(number)
    shop = project(DEDUP)
    shop.run()
    shutil.rmtree(table.path)
    for number in range(10, 10 + commits):
        table.add(number)
    plan = shop.plan()
    assert plan.must_run and "the table was made anew" in plan.reason
    refused = shop.run()
    assert refused.exit_code is ExitCode.TERMINAL
    assert "the table was made anew" in refused.error
    Path(shop.paths.checkpoint("s")).rename(shop.folder / "away")
    assert shop.run().error is None
    assert numbers(shop) == [1, 2, *range(10, 10 + commits)]


def test_a_table_put_back_from_an_older_copy_is_named(project, table):
    table.add(1)
    shutil.copytree(table.path, f"{table.path}_copy")
    table.add(2)
    table.add(3)
    shop = project()
    shop.run()
    shutil.rmtree(table.path)
    Path(f"{table.path}_copy").rename(table.path)
    refused = shop.run()
    assert refused.exit_code is ExitCode.TERMINAL
    assert "ends at version 0, and was read up to 2" in refused.error


def test_commits_that_are_cleaned_from_the_log_unread_are_counted_and_the_advice_loses_nothing(
    project, table
):
    table.add(1)
    shop = project(DEDUP)
    shop.run()
    for number in range(2, 14):
        table.add(number)  # Delta makes a checkpoint at version 10
    for version in range(10):
        (Path(table.path) / "_delta_log" / f"{version:020}.json").unlink()
    refused = shop.run()
    assert refused.exit_code is ExitCode.TERMINAL
    assert "9 commit(s) that were not read yet are cleaned" in refused.error
    Path(shop.paths.checkpoint("s")).rename(shop.folder / "away")
    assert shop.run().error is None
    assert numbers(shop) == list(range(1, 14))


def test_files_that_vacuum_removed_unread_are_told_and_the_advice_loses_nothing(
    project, table, spark
):
    table.add(1)
    shop = project(DEDUP)
    shop.run()
    table.add(2)
    table.add(3)
    table.sql("OPTIMIZE {table}")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    table.sql("VACUUM {table} RETAIN 0 HOURS")
    refused = shop.run()
    assert refused.exit_code is ExitCode.TERMINAL
    assert "VACUUM removes what later commits replaced" in refused.error
    Path(shop.paths.checkpoint("s")).rename(shop.folder / "away")
    assert shop.run().error is None
    assert numbers(shop) == [1, 2, 3]


READS = [{}, {"change_feed": True}, {"start": {"version": 0}}]


@pytest.mark.parametrize("source", leave(READS, {"start": {"version": 0}}))
def test_a_table_larger_than_the_memory_comes_in_batches_whatever_of_it_is_read(
    project, table, monkeypatch, source
):
    monkeypatch.setattr(bounds, "storage_memory", lambda spark: 30_000)  # about two such files
    table.sql(
        "CREATE TABLE {table} (" + SCHEMA + ") USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    for number in range(6):
        table.add(number)
    shop = project(DEDUP, **source)
    first = shop.run().steps[0]
    assert 2 <= len(first.batches) <= 6 and first.counts.written == 6
    for number in range(5, 11):
        table.add(number)
    second = shop.run().steps[0]
    assert 2 <= len(second.batches) <= 6
    assert (second.counts.written, second.counts.duplicate) == (5, 1)
    assert numbers(shop) == list(range(11))


def test_a_table_that_fits_or_is_read_in_order_comes_in_one_batch(project, table, monkeypatch):
    for number in range(6):
        table.add(number)
    assert len(project().run().steps[0].batches) == 1
    monkeypatch.setattr(bounds, "storage_memory", lambda spark: 30_000)
    ordered = project(folder="q", event_time_order=True)
    assert len(ordered.run().steps[0].batches) == 1
