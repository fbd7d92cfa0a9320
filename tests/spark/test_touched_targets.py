"""What people do to a step's table between two runs is told, once; another table in its place is
refused before a row is written."""

import json
import re
import shutil
from pathlib import Path

import pytest
from sluice.errors import ExitCode
from sluice.streaming import step

from tests.spark.factories import Project
from tests.spark.kept import Kept

ORDER = {"id": "string", "n": "bigint", "at": "timestamp"}
STEP = {"event_time": {"column": "at"}, "dedup": {"keys": ["id"], "within": "2 days"}}


def order(number: int) -> str:
    return json.dumps({"id": f"o{number}", "n": number, "at": "2026-01-01T00:00:00Z"}) + "\n"


def begin(spark, folder) -> Project:
    """A step that has written nothing yet."""
    source = {"kind": "files", "format": "json", "schema": ORDER}
    return Project(spark, folder, source, {**STEP, "sink": {"kind": "delta"}})


@pytest.fixture(scope="module")
def kept(spark, tmp_path_factory) -> Kept[Project]:
    made = begin(spark, tmp_path_factory.mktemp("kept") / "shop")
    for number in (1, 3, 5):
        made.land(f"{number}.json", order(number) + order(number + 1))
        assert made.run().error is None
    return Kept(spark, made)


@pytest.fixture
def shop(kept) -> Project:
    """A step that has written three batches of two rows."""
    return kept.put_back()


def do(shop: Project, statement: str) -> None:
    shop.spark.sql(statement.format(table=f"delta.`{shop.paths.table('s')}`"))


def numbers(shop: Project) -> list[int]:
    return sorted(row[0] for row in shop.rows("n").elements())


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM {table} WHERE n IN (2, 3)", "DELETE by somebody: 2 row(s) deleted"),
        ("UPDATE {table} SET n = 70 WHERE n = 6", "UPDATE by somebody: 1 row(s) changed"),
        (
            "MERGE INTO {table} t USING (SELECT 'o1' AS id) s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE",
            "MERGE by somebody: 1 row(s) deleted",
        ),
        (
            "INSERT OVERWRITE {table} SELECT * FROM {table} WHERE n < 3",
            "WRITE by somebody: 2 row(s) written in their place",
        ),
        ("DELETE FROM {table}", "DELETE by somebody: 6 row(s) deleted"),
    ],
    ids=["delete", "update", "merge", "overwrite", "delete all"],
)
def test_rows_that_somebody_takes_away_are_told_by_the_probe_and_by_one_report(
    shop, statement, told
):
    do(shop, statement)
    plan = shop.plan()
    assert not plan.must_run  # no data waits: the next run tells it
    assert any(told in warning for warning in plan.warnings)
    shop.land("next.json", order(8))
    first = shop.run()
    shop.land("last.json", order(9))
    second = shop.run()
    assert [sum(told in w for w in r.steps[0].warnings) for r in (first, second)] == [1, 0]
    assert first.error is None and {8, 9} <= set(numbers(shop))


def test_what_is_done_to_a_table_of_one_run_is_told_and_another_in_its_place_is_refused(
    spark, tmp_path
):
    shop = begin(spark, tmp_path)
    shop.land("1.json", order(1) + order(2))
    assert shop.run().error is None
    do(shop, "DELETE FROM {table} WHERE n = 1")
    shop.land("2.json", order(3))
    told = shop.run().steps[0].warnings
    assert any("DELETE by somebody: 1 row(s) deleted" in warning for warning in told)
    other = begin(spark, tmp_path / "other")
    other.land("1.json", order(1))
    assert other.run().error is None
    path = other.paths.table("s")
    shutil.rmtree(path)
    spark.createDataFrame([], "id string, n bigint").write.format("delta").save(path)
    assert "is another one: it was made anew since" in other.plan().reason
    other.land("2.json", order(2))
    assert "this is not the table that the step has filled" in other.run().error


def test_what_only_rearranges_files_is_not_told(shop):
    do(shop, "OPTIMIZE {table}")
    do(shop, "ALTER TABLE {table} SET TBLPROPERTIES (delta.logRetentionDuration = '90 days')")
    shop.land("next.json", order(8))
    assert shop.run().steps[0].warnings == []


def test_batches_that_a_restore_took_back_are_named_and_the_advice_brings_them_again(shop):
    version = shop.spark.sql(f"DESCRIBE HISTORY delta.`{shop.paths.table('s')}`").count() - 1
    do(shop, f"RESTORE TABLE {{table}} TO VERSION AS OF {version - 2}")
    assert numbers(shop) == [1, 2]
    (told,) = shop.plan().warnings
    assert "the rows of 2 finished batch(es) are gone" in told
    keys = [batch.key for report in shop.reports[1:] for batch in report.steps[0].batches]
    assert all(key in told for key in keys)
    (back,) = re.findall(r"RESTORE to version (\d+) undoes it", told)
    do(shop, f"RESTORE TABLE {{table}} TO VERSION AS OF {back}")
    assert numbers(shop) == [1, 2, 3, 4, 5, 6]


def test_what_was_done_is_told_again_where_the_run_died_before_its_report(shop, monkeypatch):
    do(shop, "DELETE FROM {table} WHERE n = 1")
    shop.land("next.json", order(8))

    def die(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("sluice.report.publish.write_report", die)
        assert "the report could not be written" in shop.run().error
    told = shop.run()
    assert told.counts.written == 1
    assert any("1 row(s) deleted" in warning for warning in told.steps[0].warnings)


@pytest.mark.parametrize("filled", [False, True], ids=["empty", "longer than the old one"])
def test_another_table_in_the_place_of_the_target_is_refused_and_the_advice_loses_nothing(
    shop, filled
):
    path = shop.paths.table("s")
    schema = shop.spark.read.format("delta").load(path).schema
    shutil.rmtree(path)
    empty = shop.spark.createDataFrame([], schema)
    for _ in range(9 if filled else 1):
        empty.write.format("delta").mode("append").save(path)
    assert "is another one: it was made anew since" in shop.plan().reason
    shop.land("next.json", order(8))
    refused = shop.run()
    assert refused.exit_code is ExitCode.TERMINAL
    assert "this is not the table that the step has filled" in refused.error
    shutil.rmtree(shop.paths.checkpoint("s"))
    assert shop.run().error is None
    assert numbers(shop) == [1, 2, 3, 4, 5, 6, 8]


def test_a_rewritten_copy_in_the_place_of_the_target_goes_on_after_the_advice(shop):
    path = shop.paths.table("s")
    shop.spark.read.format("delta").load(path).write.format("delta").save(f"{path}_copy")
    shutil.rmtree(path)
    Path(f"{path}_copy").rename(path)
    shop.land("next.json", order(1) + order(8))
    refused = shop.run()
    assert refused.exit_code is ExitCode.TERMINAL
    (mark,) = re.findall(r"remove (\S+/target\.json);", refused.error)
    Path(mark).unlink()
    report = shop.run()
    assert (report.error, report.counts.duplicate) == (None, 1)
    assert numbers(shop) == [1, 2, 3, 4, 5, 6, 8]


def test_a_target_put_back_from_an_older_copy_is_refused(shop):
    path = shop.paths.table("s")
    shutil.copytree(path, f"{path}_copy")
    shop.land("next.json", order(8))
    shop.run()
    shutil.rmtree(path)
    Path(f"{path}_copy").rename(path)
    refused = shop.run()
    assert refused.exit_code is ExitCode.TERMINAL
    assert "and the last run left it at" in refused.error


def test_a_column_that_gets_another_type_is_told_how_and_the_advice_keeps_every_key(shop):
    shop.source["schema"] = {**ORDER, "n": "double"}
    shop.land("next.json", order(6) + order(7))
    refused = shop.run()
    assert refused.exit_code is ExitCode.TERMINAL
    (statement,) = re.findall(r"which keeps every row and key: `(.*?)`;", refused.error)
    exec(statement, {"spark": shop.spark})  # the advice, to the letter
    report = shop.run()
    assert (report.error, report.counts.written, report.counts.duplicate) == (None, 1, 1)
    assert numbers(shop) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    assert any("6 row(s) written in their place" in w for w in report.steps[0].warnings)


@pytest.fixture(params=["written", "quarantined"])
def put_back(shop, request) -> Project:
    """An older copy of the checkpoint in its place, a newer one beside it, and a row that waits."""
    shop.step["rules"] = [
        {
            "type": "expect_column_values_to_be_between",
            "kwargs": {"column": "n", "max_value": 100},
            "on_fail": "quarantine",
        }
    ]
    place = Path(shop.paths.checkpoint("s"))
    shutil.copytree(place, place.with_name("older"))
    shop.land("next.json", order(8 if request.param == "written" else 800))
    assert shop.run().counts.read == 1
    place.rename(place.with_name("newest"))
    place.with_name("older").rename(place)
    shop.land("last.json", order(9))
    return shop


def test_an_older_copy_of_the_checkpoint_is_refused_each_time_and_its_newest_loses_nothing(
    put_back,
):
    for _ in range(2):
        refused = put_back.run()
        assert refused.exit_code is ExitCode.TERMINAL
        assert "the checkpoint is older than the step's tables" in refused.error
        assert "batch 3 in the tables, 2 in the checkpoint" in refused.error
    place = Path(put_back.paths.checkpoint("s"))
    shutil.rmtree(place)
    place.with_name("newest").rename(place)
    assert put_back.run().counts.read == 1
    assert numbers(put_back) in ([*range(1, 7), 9], [*range(1, 7), 8, 9])


def test_without_a_newer_copy_of_the_checkpoint_its_removal_loses_and_doubles_nothing(put_back):
    assert "remove the whole checkpoint" in put_back.run().error
    shutil.rmtree(put_back.paths.checkpoint("s"))
    report = put_back.run()
    assert (report.error, report.counts.read) == (None, 8)
    assert numbers(put_back) in ([*range(1, 7), 9], [*range(1, 7), 8, 9])


def test_a_table_that_goes_while_a_run_is_under_way_is_not_made_anew_by_the_rows_behind(
    spark, tmp_path, monkeypatch
):
    """That would be a table without the memory of what came before."""
    shop, take = begin(spark, tmp_path), step.take_batch
    shop.source = {**shop.source, "max_files_per_batch": 1}
    for number in (1, 2):
        shop.land(f"{number}.json", order(number))
    table = Path(shop.paths.table("s"))

    def take_it_away(course, plan, rows, number):
        if number == 1:
            table.rename(tmp_path / "away")
        return take(course, plan, rows, number)

    with monkeypatch.context() as patch:
        patch.setattr(step, "take_batch", take_it_away)
        report = shop.run()
    assert "the step's table has gone while the run was under way" in report.error
    assert report.exit_code is ExitCode.TERMINAL and not table.exists()
    (tmp_path / "away").rename(table)
    assert shop.run().counts.written == 1
    assert numbers(shop) == [1, 2]


def test_a_batch_of_which_no_row_is_good_leaves_a_table_all_the_same(spark, tmp_path):
    """Else the next run would take it for lost."""
    shop = begin(spark, tmp_path)
    shop.land("0.json", "")
    assert shop.run().error is None
    assert numbers(shop) == [] and shop.quarantine() == []
    shop.land("1.json", order(1) + "{broken\n")
    report = shop.run()
    assert (report.error, report.counts.written, report.counts.quarantined) == (None, 1, 1)
    assert numbers(shop) == [1] and len(shop.quarantine()) == 1


def test_a_table_of_one_batch_is_a_filled_one_to_a_new_checkpoint(spark, tmp_path):
    """Its rows lie in version 0, and the step keeps no keys: they would be there twice."""
    source = {"kind": "files", "format": "json", "schema": ORDER}
    shop = Project(spark, tmp_path, source, {"sink": {"mode": "append"}})
    shop.land("1.json", order(1))
    assert shop.run().error is None
    shutil.rmtree(shop.paths.checkpoint("s"))
    report = shop.run()
    assert report.exit_code is ExitCode.TERMINAL and report.counts.read == 0
    assert numbers(shop) == [1]
