"""Output modes update and complete into a table: after every run it is what a batch query over all
that came gives, however the backlog was cut and wherever a run died."""

import json
import random
import re
from collections import Counter

import pytest
from sluice.errors import ExitCode
from sluice.runner import run_pipeline
from sluice.spec import RunRequest
from sluice.streaming import tally as tally_module

from tests.long_runs import leave
from tests.spark.factories import Project

SOURCE = {
    "kind": "files",
    "format": "json",
    "schema": {"id": "string", "n": "bigint", "at": "timestamp"},
    "max_files_per_batch": 2,
}
SUMS = "SELECT id, sum(n) AS n, count(*) AS rows FROM source GROUP BY id"
FULL = "SELECT id, sum(n) AS n, count(*) AS rows FROM source GROUP BY id HAVING sum(n) < 60"
SLIDING = """SELECT window.start AS began, window.end AS ended, id, sum(n) AS n
  FROM (SELECT window(at, '20 minutes', '10 minutes') AS window, id, n FROM source)
  GROUP BY window, id"""
DAILY = "SELECT CAST(at AS DATE) AS day, id, sum(n) AS n FROM source GROUP BY 1, id"
UPDATE = {"mode": "update", "keys": ["id"]}
MODES = {
    "update": (SUMS, UPDATE),
    "update_of_sliding_windows": (SLIDING, {"mode": "update", "keys": ["began", "ended", "id"]}),
    "complete": (FULL, {"mode": "complete"}),
}


def project_of(spark, folder, sql, sink, **pipeline) -> Project:
    (folder / "t.sql").write_text(sql)
    return Project(spark, folder, SOURCE, {"transform": "t.sql", "sink": sink}, pipeline)


def line(id_: str | None, n: int, minute: int = 0) -> str:
    at = f"2026-01-01T12:{minute:02}:00Z"
    return json.dumps({"id": id_, "n": n, "at": at}) + "\n"


def expected(project: Project, sql: str, *columns: str) -> Counter:
    """What the same SQL gives over all that landed."""
    schema = ", ".join(f"{name} {kind}" for name, kind in SOURCE["schema"].items())
    project.spark.read.schema(schema).json(str(project.landing)).createOrReplaceTempView("source")
    rows = project.spark.sql(sql).select(*columns).collect()
    project.spark.catalog.dropTempView("source")
    return Counter(map(tuple, rows))


@pytest.mark.parametrize("kind", MODES)
def test_after_every_run_the_table_is_the_query_over_all_rows(spark, tmp_path, monkeypatch, kind):
    sql, sink = MODES[kind]
    chance, note = random.Random(kind), tally_module.note_batch
    project = project_of(spark, tmp_path, sql, sink)
    columns = ("began", "ended", "id", "n") if "window" in sql else ("id", "n", "rows")

    def die_now_and_then(*args):
        note(*args)
        if chance.random() < 0.3:
            raise OSError("the machine is gone")

    for round_ in range(3):
        for file in range(chance.randint(1, 4)):
            rows = [
                line(
                    chance.choice(["a", "b", "c", None]),
                    chance.randint(1, 9),
                    chance.randint(0, 59),
                )
                for _ in range(chance.randint(1, 5))
            ]
            project.land(f"{round_}-{file}.json", "".join(rows))
        monkeypatch.setattr(tally_module, "note_batch", die_now_and_then)
        project.run()
        monkeypatch.setattr(tally_module, "note_batch", note)
        report = project.run()
        assert report.error is None
        assert project.rows(*columns) == expected(project, sql, *columns)
    read = sum(r.counts.read for r in project.reports)
    assert read == sum(len(f.read_text().splitlines()) for f in project.landing.iterdir())


def test_a_report_tells_groups_that_are_new_from_those_that_changed(spark, tmp_path):
    project = project_of(spark, tmp_path, SUMS, UPDATE)
    project.land("1.json", line("a", 1) + line("b", 2))
    first = project.run().counts
    project.land("2.json", line("b", 3) + line("c", 4))
    second = project.run()
    assert (first.written, first.updated) == (2, 0)
    assert (second.counts.written, second.counts.updated, second.counts.duplicate) == (2, 1, 0)
    assert second.counts.line == (
        "2 read = 2 written + 0 quarantined + 0 duplicate + 0 late + 0 filtered"
    )
    assert project.rows("id", "n") == Counter([("a", 1), ("b", 5), ("c", 4)])


def test_a_group_that_somebody_deletes_is_told_and_its_next_row_brings_it_back_whole(
    spark, tmp_path
):
    project = project_of(spark, tmp_path, SUMS, UPDATE)
    project.land("1.json", line("a", 1) + line("b", 2))
    project.run()
    spark.sql(f"DELETE FROM delta.`{project.paths.table('s')}` WHERE id = 'a'")
    project.land("2.json", line("b", 3))
    (told,) = project.run().steps[0].warnings
    assert "DELETE by somebody: 1 row(s) deleted" in told
    assert project.rows("id", "n") == Counter([("b", 5)])
    project.land("3.json", line("a", 4))
    assert project.run().steps[0].warnings == []
    assert project.rows("id", "n", "rows") == expected(project, SUMS, "id", "n", "rows")


def test_groups_that_a_restore_took_back_are_named_and_the_advice_brings_them_again(
    spark, tmp_path
):
    project = project_of(spark, tmp_path, SUMS, UPDATE)
    for number in (1, 2):
        project.land(f"{number}.json", line("a", number) + line("b", number))
        project.run()
    table = f"delta.`{project.paths.table('s')}`"
    last = spark.sql(f"DESCRIBE HISTORY {table}").count() - 1
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {last - 1}")
    (told,) = project.plan().warnings
    assert "the rows of 1 finished batch(es) are gone" in told
    (back,) = re.findall(r"RESTORE to version (\d+) undoes it", told)
    spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {back}")
    project.land("3.json", line("a", 3))
    assert project.run().error is None
    assert project.rows("id", "n", "rows") == expected(project, SUMS, "id", "n", "rows")


def test_a_group_that_a_rule_refuses_stays_what_it_was_and_its_change_is_in_quarantine(
    spark, tmp_path
):
    project = project_of(spark, tmp_path, SUMS, UPDATE)
    kwargs = {"column": "n", "max_value": 10}
    rule = {"type": "expect_column_values_to_be_between", "kwargs": kwargs}
    project.step["rules"] = [rule | {"on_fail": "quarantine"}]
    project.land("1.json", line("a", 9))
    project.run()
    project.land("2.json", line("a", 9))
    assert project.run().counts.quarantined == 1
    assert project.rows("id", "n") == Counter([("a", 9)])
    assert [json.loads(row.row)["n"] for row in project.quarantine()] == [18]
    project.land("3.json", line("a", -10))
    project.run()
    assert project.rows("id", "n") == Counter([("a", 8)])


def test_a_view_in_memory_and_a_function_get_the_whole_result_with_each_batch(spark, tmp_path):
    (tmp_path / "f.py").write_text(
        "GOT = []\ndef take(rows, token):\n"
        "    with open(__file__ + '.txt', 'a') as file:\n"
        "        file.write(f'{sorted((r.id, r.n) for r in rows.collect())}\\n')\n"
    )
    sinks = [
        {"kind": "memory", "name": "totals", "mode": "complete"},
        {"kind": "foreach_batch", "function": "f.py:take"},
        {"kind": "console"},
    ]
    project = project_of(spark, tmp_path, SUMS, sinks)
    project.land("1.json", line("a", 1))
    project.land("2.json", line("b", 2))
    project.land("3.json", line("a", 3))
    assert project.run().error is None
    assert Counter(map(tuple, spark.table("totals").select("id", "n").collect())) == Counter(
        [("a", 4), ("b", 2)]
    )
    assert (tmp_path / "f.py.txt").read_text().splitlines() == [
        "[('a', 1), ('b', 2)]",
        "[('a', 4), ('b', 2)]",
    ]


def test_keys_that_do_not_tell_the_groups_apart_are_refused_before_a_row_is_written(
    spark, tmp_path
):
    sql = "SELECT id, n % 2 AS odd, count(*) AS rows FROM source GROUP BY id, n % 2"
    project = project_of(spark, tmp_path, sql, UPDATE)
    project.land("1.json", line("a", 1) + line("a", 2))
    report = project.run()
    assert report.exit_code is ExitCode.TERMINAL
    assert "2 rows of 1 groups: `keys` do not tell the groups" in report.error
    assert project.rows("id") == Counter()


REFUSED = {
    "rows_that_come_once": ("SELECT id, n FROM source", UPDATE, "come once and never change"),
    "a_key_that_is_not_there": (SUMS, {"mode": "update", "keys": ["nope"]}, "no column 'nope'"),
    "a_map_as_key": (
        "SELECT map(id, 1) AS m, id, count(*) AS c FROM source GROUP BY id",
        {"mode": "update", "keys": ["m"]},
        "sink.keys",
    ),
    "complete_of_rows": ("SELECT id, n FROM source", {"mode": "complete"}, "keeps the whole"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_group_can_be_replaced_by_is_refused_before_a_row_is_read(spark, tmp_path, case):
    sql, sink, said = REFUSED[case]
    project = project_of(spark, tmp_path, sql, sink)
    project.land("1.json", line("a", 1))
    report = project.run()
    assert report.exit_code is ExitCode.TERMINAL and said in (report.error or "")


@pytest.mark.parametrize(
    ("sink", "before"),
    [
        ({"mode": "update", "keys": ["id", "rows"]}, "output mode update by id"),
        ({"mode": "complete"}, "output mode update by id"),
    ],
    ids=["other_keys", "another_mode"],
)
def test_another_mode_or_other_keys_over_a_filled_state_are_refused(spark, tmp_path, sink, before):
    project = project_of(spark, tmp_path, SUMS, UPDATE)
    project.land("1.json", line("a", 1))
    project.run()
    project.step["sink"] = sink
    project.land("2.json", line("a", 1))
    report = project.run()
    assert report.exit_code is ExitCode.TERMINAL and f"before: {before}" in report.error


def test_a_backfill_would_put_a_part_in_place_of_a_group_and_is_refused(spark, tmp_path):
    project = project_of(spark, tmp_path, SUMS, UPDATE)
    project.step["event_time"] = {"column": "rows"}
    project.land("1.json", line("a", 1))
    window = {"start": "2026-01-01", "end": "2026-01-02"}
    report = project.run(window=window)
    assert report.exit_code is ExitCode.TERMINAL
    assert "in place of groups that have others" in report.error


def test_of_a_table_only_files_are_read_that_a_batchs_groups_may_lie_in(spark, tmp_path):
    project = project_of(spark, tmp_path, DAILY, {"mode": "update", "keys": ["day", "id"]})
    project.land("1.json", '{"id": "a", "n": 1, "at": "2026-01-01T12:00:00Z"}\n')
    project.run()
    (old,) = (tmp_path / "root" / "tables" / "p" / "s").glob("*.parquet")
    old.rename(tmp_path / "old")
    for number, n in (("2", 2), ("3", 3)):
        land = f'{{"id": "a", "n": {n}, "at": "2026-02-01T12:00:00Z"}}\n'
        project.land(f"{number}.json", land)
        assert project.run().error is None
    (tmp_path / "old").rename(old)
    assert project.rows("id", "n") == Counter([("a", 1), ("a", 5)])


@pytest.mark.parametrize("mode", leave(["update", "complete"], "complete"))
def test_a_second_writer_of_a_table_of_groups_is_refused_whichever_runs(spark, tmp_path, mode):
    sink = MODES[mode][1] | {"table": str(tmp_path / "shared")}
    project = project_of(spark, tmp_path, SUMS, sink)
    project.land("1.json", line("a", 1))
    assert project.run().error is None
    other = tmp_path / "q.yaml"
    other.write_text(project.write().read_text().replace("name: p\n", "name: q\n", 1))
    project.land("2.json", line("a", 2))
    refused = run_pipeline(RunRequest(pipeline=str(other), root=str(tmp_path / "root")))
    for report, names in ((refused, ("q.s", "p.s")), (project.run(), ("p.s", "q.s"))):
        assert report.exit_code is ExitCode.TERMINAL
        assert all(said in report.error for said in ("two write this one", *names))
    other.unlink()
    assert project.run().error is None
