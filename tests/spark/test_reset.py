"""A step is begun anew, and what its rows were judged by is told when it changes: nothing is lost
or doubled without a word."""

import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from sluice.checkpoint import manifest
from sluice.cli import app
from sluice.errors import ExitCode
from typer.testing import CliRunner

from tests.spark.factories import Project
from tests.spark.kept import Kept

ORDER = {"id": "string", "n": "bigint", "at": "timestamp"}
KEYED = {
    "event_time": {"column": "at"},
    "dedup": {"keys": ["id"], "within": "2 days"},
    "sink": {"kind": "delta"},
}
APPENDING = {"sink": {"kind": "delta", "mode": "append"}}
NOT_NEGATIVE = {
    "type": "expect_column_values_to_be_between",
    "kwargs": {"column": "n", "min_value": 0},
    "on_fail": "quarantine",
}


def order(number: int) -> str:
    return json.dumps({"id": f"o{number}", "n": number, "at": "2026-01-01T00:00:00Z"}) + "\n"


def make(spark, folder, step: dict) -> Project:
    """A step that has written two batches, and refused a row."""
    source = {"kind": "files", "format": "json", "schema": ORDER}
    made = Project(spark, folder, source, {**step, "rules": [NOT_NEGATIVE]})
    made.land("1.json", order(1) + order(-1))
    assert made.run().error is None
    made.land("2.json", order(2))
    assert made.run().error is None
    return made


@pytest.fixture(scope="module")
def kept(spark, tmp_path_factory) -> Kept[Project]:
    return Kept(spark, make(spark, tmp_path_factory.mktemp("kept") / "shop", KEYED))


@pytest.fixture
def shop(kept) -> Project:
    return kept.put_back()


@pytest.fixture
def appending(spark, tmp_path) -> Project:
    return make(spark, tmp_path, APPENDING)


def reset(shop: Project, *options: str):
    spec = ["--spec", str(shop.write()), "--root", shop.paths.root]
    return CliRunner().invoke(app, ["reset", *spec, "--step", "s", *options])


def numbers(shop: Project) -> Counter:
    return Counter(row[0] for row in shop.rows("n").elements())


def test_a_step_begun_anew_reads_again_and_what_its_tables_hold_are_duplicates(shop):
    done = reset(shop, "--yes")
    assert done.exit_code == 0, done.output
    assert "2 batch(es)" in done.output and "stays: s, 2 row(s)" in done.output
    assert "the next run reads 2 file(s)" in done.output
    counts = shop.run().counts
    assert (counts.read, counts.written, counts.duplicate) == (3, 0, 3)
    assert numbers(shop) == Counter([1, 2]) and len(shop.quarantine()) == 1


def test_a_step_begun_anew_with_its_tables_fills_them_once(shop):
    done = reset(shop, "--tables", "--yes")
    assert "goes: s, 2 row(s)" in done.output and "goes: s__quarantine, 1 row(s)" in done.output
    counts = shop.run().counts
    assert (counts.read, counts.written, counts.quarantined) == (3, 2, 1)
    assert numbers(shop) == Counter([1, 2]) and len(shop.quarantine()) == 1


def test_a_step_is_not_begun_anew_without_a_word_of_somebody(shop):
    refused = reset(shop)
    assert refused.exit_code == 6 and "Write --yes" in refused.output
    shop.land("3.json", order(3))
    assert shop.run().counts.read == 1


def test_a_reset_that_was_killed_half_way_is_refused_by_a_run_and_ended_by_the_next_reset(
    shop, monkeypatch
):
    def die(path: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(manifest, "remove_tree", die)
        assert reset(shop, "--yes").exit_code != 0
    shop.land("3.json", order(3))
    assert "the checkpoint has no manifest" in shop.run().error
    assert reset(shop, "--yes").exit_code == 0
    counts = shop.run().counts
    assert (counts.read, counts.written, counts.duplicate) == (4, 1, 3)


def test_a_step_without_keys_whose_checkpoint_is_gone_is_refused_and_each_advice_holds(appending):
    shop = appending
    refused = reset(shop, "--yes")
    assert refused.exit_code == 6 and "would be there twice" in refused.output
    shutil.rmtree(shop.paths.checkpoint("s"))
    refused = shop.run()
    assert refused.exit_code is ExitCode.TERMINAL and "would be there twice" in refused.error
    options = re.findall(r"`sluice reset p --step s (--\w+)`", refused.error)
    assert options == ["--tables", "--append"]
    assert reset(shop, "--tables", "--yes").exit_code == 0
    assert shop.run().counts.written == 2
    for file in shop.landing.iterdir():
        file.unlink()
    shop.land("3.json", order(3))
    assert reset(shop, "--append", "--yes").exit_code == 0
    assert shop.run().counts.written == 1
    assert numbers(shop) == Counter([1, 2, 3])


def test_an_edited_rule_is_told_by_the_plan_and_by_one_report_with_the_rows_it_did_not_see(shop):
    shop.step["rules"] = [{**NOT_NEGATIVE, "kwargs": {"column": "n", "min_value": 2}}]
    assert "rules changed since" in shop.plan().redefined
    shop.land("3.json", order(3) + order(0))
    told = [w for w in shop.run().steps[0].warnings if "changed since" in w]
    assert len(told) == 1 and told[0].startswith("rules changed since ")
    assert "2 row(s) of the table were judged by what the step said before" in told[0]
    assert not shop.plan().redefined
    shop.land("4.json", order(4))
    assert not [w for w in shop.run().steps[0].warnings if "changed since" in w]


def test_a_comment_in_the_sql_is_no_change_and_another_statement_is(shop):
    sql = Path(shop.folder / "s.sql")
    sql.write_text("SELECT * FROM source")
    shop.step["transform"] = "s.sql"
    shop.land("3.json", order(3))
    told = [w for w in shop.run().steps[0].warnings if "changed since" in w]
    assert [w.partition(" changed")[0] for w in told] == ["transform"]
    sql.write_text("-- all of them\n\nSELECT * FROM source\n")
    assert not shop.plan().redefined
    sql.write_text("SELECT * FROM source WHERE n < 9")
    assert shop.plan().redefined.startswith("transform changed since")
