"""What bad input gets that no file holds: one clear sentence, and the next run works.

It comes before Spark starts where that is possible.

Bad rows and bad files are in tests/bad_input.
"""

import re
from collections import Counter

import pytest
from sluice.errors import ExitCode
from sluice.streaming import step

from tests.spark.factories import Project, assert_next_run_works

SHOP = {"id": "int", "name": "string", "price": "double"}


@pytest.mark.slow
def test_a_row_of_50_mb_is_a_row_like_all_others(spark, tmp_path):
    project = Project(
        spark, tmp_path, {"format": "json", "schema": {"id": "int", "name": "string"}}
    )
    garbage = '{"id":2,' + "#" * 50_000_000
    project.land("wide.json", '{"id":1,"name":"' + "ü" * 25_000_000 + '"}\n' + garbage + "\n")
    report = project.run()
    assert (report.status, report.counts.written, report.counts.quarantined) == ("done", 1, 1)
    (kept,) = (
        project._table(project.paths.table("s"))
        .selectExpr("id", "length(name) AS length", "octet_length(name) AS bytes")
        .collect()
    )
    assert tuple(kept) == (1, 25_000_000, 50_000_000)
    (refused,) = (
        project._table(project.paths.quarantine("s"))
        .selectExpr("length(row) AS length", "reasons")
        .collect()
    )
    assert (refused.length, refused.reasons) == (len(garbage), ["malformed"])
    assert_next_run_works(project, "next.json", '{"id":3,"name":"a"}\n', (3, "a"), "id", "name")


# --- files that come and go ---


def test_files_that_go_and_come_around_a_run_lose_and_shift_nothing(spark, tmp_path, monkeypatch):
    """Files that are gone or new in the middle of a batch.

    Deleted before the batch lists them, deleted during reading, renamed by their writer, and landed
    after the headers were read.
    """
    project = Project(spark, tmp_path, {"format": "csv", "schema": SHOP})
    before, during = (
        project.land("before.csv", "id,name,price\n1,a,1\n"),
        project.land("during.csv", "id,name,price\n2,a,1\n"),
    )
    writing = project.land("final.csv.tmp", "id,name,price\n3,a,1\n")
    project.land("stays.csv", "id,name,price\n4,a,1\n")
    real = step.take_batch

    def fail(course, plan, frame, batch):
        raise RuntimeError("killed before the first write")

    monkeypatch.setattr(step, "take_batch", fail)
    report = project.run()
    assert (report.status, report.exit_code) == ("failed", ExitCode.TRANSIENT)
    before.unlink()
    writing.rename(writing.with_suffix(""))

    def delete_then_go_on(course, plan, frame, batch):
        during.unlink(missing_ok=True)
        if batch == 0 and not (project.landing / "late.csv").exists():
            project.land("late.csv", "price,name,id\n1.5,late,5\n")
        return real(course, plan, frame, batch)

    monkeypatch.setattr(step, "take_batch", delete_then_go_on)
    report = project.run()
    assert (report.status, report.error) == ("done", None)
    monkeypatch.setattr(step, "take_batch", real)
    project.run()
    assert project.rows("id", "name", "price") == Counter(
        [(3, "a", 1.0), (4, "a", 1.0), (5, "late", 1.5)]
    )
    assert {
        row._source.rsplit("/", 1)[-1]: (row.reasons, row.detail) for row in project.quarantine()
    } == {
        name: (["unreadable_file"], "the file was deleted between listing and reading")
        for name in ("before.csv", "during.csv")
    }


def test_a_file_that_lands_between_plan_and_listing_is_read_by_its_own_header(
    spark, tmp_path, monkeypatch
):
    project = Project(spark, tmp_path, {"format": "csv", "schema": SHOP})
    project.land("first.csv", "id,name,price\n1,a,1\n")
    real, calls = step.drain, []

    def land_then_drain(*args, **kwargs):
        calls.append(1)
        if len(calls) == 1:
            project.land("second.csv", "price,name,id\n2.5,b,2\n")
        return real(*args, **kwargs)

    monkeypatch.setattr(step, "drain", land_then_drain)
    report = project.run()
    assert report.counts.written == 2
    assert project.rows("id", "name", "price") == Counter([(1, "a", 1.0), (2, "b", 2.5)])
    assert len(calls) == 2


# --- what is refused before Spark starts ---


def refuse_spark(*_args, **_kwargs):
    raise AssertionError("Spark must not start for this")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"pipeline": {"colour": "red"}}, "colour: unknown field"),
        (
            {"pipeline": {"budget": "soon"}},
            'budget: not a duration; write a number and a unit.*got "soon"',
        ),
        (
            {
                "step": {
                    "rules": [
                        {
                            "type": "expect_column_values_to_not_be_null",
                            "kwargs": {"column": "nobody"},
                        }
                    ]
                }
            },
            "names column 'nobody', which the schema does not have; it has id, name, price",
        ),
        ({"step": {"transform": "absent.sql"}}, "transform absent.sql: no such file"),
        ({"step": {"transform": "absent.py:clean"}}, "transform absent.py:clean: no such file"),
        ({"source": {"encoding": "UTF-9"}}, "encoding: no such encoding; write UTF-8"),
        (
            {"source": {"path": "/nowhere/at/all"}},
            "/nowhere/at/all: the landing folder does not exist. Create it",
        ),
        (
            {
                "pipeline": {
                    "steps": [
                        {
                            "name": "s",
                            "source": {
                                "path": ".",
                                "format": "text",
                                "schema": {"value": "string"},
                            },
                            "sink": {"mode": "append"},
                        }
                    ]
                    * 2
                }
            },
            "two steps are named s",
        ),
    ],
)
def test_a_wrong_pipeline_is_one_clear_sentence_before_spark_starts(
    tmp_path, monkeypatch, change, sentence
):
    monkeypatch.setattr("sluice.spark.session.open_session", refuse_spark)
    step = {"sink": {"mode": "append"}, **change.get("step", {})}
    project = Project(
        None,
        tmp_path,
        {"format": "csv", "schema": SHOP, **change.get("source", {})},
        step,
        change.get("pipeline", {}),
    )
    project.land("a.csv", "id,name,price\n1,a,1\n")
    report = project.run()
    assert (report.status, report.exit_code) == ("failed", ExitCode.TERMINAL)
    assert_sentence(report.error, sentence)


def assert_sentence(error: str, pattern: str) -> None:
    """One line, with what was wrong, and nothing of Java."""
    assert re.search(pattern, error), error
    assert "\n" not in error
    assert "\tat " not in error and "py4j" not in error and "org.apache" not in error


def test_a_landing_folder_that_cannot_be_read_is_an_error_before_spark_starts(
    tmp_path, monkeypatch
):
    """Root may read everything, so os.access answers here as it would answer another user."""
    monkeypatch.setattr("sluice.spark.session.open_session", refuse_spark)
    project = Project(None, tmp_path, {"format": "csv", "schema": SHOP})
    monkeypatch.setattr(
        "sluice.backlog.files.os.access", lambda path, mode: not str(path).endswith("landing")
    )
    report = project.run()
    assert report.exit_code == ExitCode.TERMINAL
    assert_sentence(report.error, "landing: the landing folder cannot be read. Give the user")


# --- what only Spark can know ---


@pytest.mark.parametrize(
    ("file", "content", "extra", "sentence"),
    [
        ("t.sql", "SELEC id FROM source", {}, r"t\.sql: the SQL cannot run: .*SELEC"),
        ("t.sql", "SELECT id, nobody FROM source", {}, r"t\.sql: the SQL cannot run: .*nobody"),
        (
            "t.sql",
            "SELECT id FROM source",
            {
                "rules": [
                    {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "name"}}
                ]
            },
            "name",
        ),
        (
            "t.py:clean",
            "def clean(rows):\n    raise ValueError('no luck')\n",
            {},
            r"t\.py:clean: the transform raised ValueError: no luck",
        ),
        (
            "t.py:clean",
            "def other(rows):\n    return rows\n",
            {},
            r"t\.py:clean: cannot load the function: .*clean",
        ),
        (
            "t.py:clean",
            "def clean(rows):\n    return 5\n",
            {},
            "the transform must return a DataFrame",
        ),
        (
            "t.py:clean",
            "def clean(rows):\n    return rows.select('id').mapInPandas(lambda f: f, 'id long')\n",
            {},
            "drops the column _row",
        ),
        (
            "t.py:clean",
            "import nothing_of_that_name\n",
            {},
            "cannot load the function: No module named",
        ),
    ],
)
def test_a_wrong_transform_is_one_clear_sentence_and_a_mended_one_runs(
    spark, tmp_path, file, content, extra, sentence
):
    project = Project(
        spark,
        tmp_path,
        {"format": "csv", "schema": SHOP},
        {"sink": {"mode": "append"}, "transform": file, **extra},
    )
    project.land("a.csv", "id,name,price\n1,a,1\n")
    (tmp_path / file.partition(":")[0]).write_text(content)
    report = project.run()
    assert (report.status, report.exit_code) == ("failed", ExitCode.TERMINAL)
    assert_sentence(report.error, sentence)
    assert not (
        tmp_path / "root" / "checkpoints" / "p" / "s" / "spark"
    ).exists()  # nothing was begun, so the mended pipeline starts clean


def test_after_a_wrong_transform_the_mended_one_takes_all_that_waits(spark, tmp_path):
    project = Project(
        spark,
        tmp_path,
        {"format": "csv", "schema": SHOP},
        {"sink": {"mode": "append"}, "transform": "t.sql"},
    )
    project.land("a.csv", "id,name,price\n1,a,1\n")
    (tmp_path / "t.sql").write_text("SELECT id, nobody FROM source")
    assert project.run().exit_code == ExitCode.TERMINAL
    (tmp_path / "t.sql").write_text("SELECT id, upper(name) AS name FROM source")
    assert project.run().counts.written == 1
    assert project.rows("id", "name") == Counter([(1, "A")])
