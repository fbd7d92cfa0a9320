"""The history of a table that is updated in place, as the docs' page writes it (SCD type 2): a step
that appends what the change feed tells, and one that makes the versions of each customer of it."""

import random
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from sluice.runner import run_pipeline
from sluice.spec import RunRequest, load_pipeline
from sluice.streaming.replay import verify_by_replay
from sluice.streaming.verifying import verify_groups

from tests.long_runs import LONG

PAGE = Path(__file__).parents[2] / "include" / "docs" / "refresh.md"
COLUMNS = "id INT, country STRING, level INT"


class Crm:
    """The page's pipeline over a table of customers, and what that held after each commit."""

    def __init__(self, spark, folder: Path) -> None:
        self.spark, self.folder, self.root = spark, folder, folder / "root"
        section = PAGE.read_text().partition("(SCD type 2)\n")[2].partition("\n## ")[0]
        blocks = re.findall(r"```(\w+)\n(.*?)```", section, re.S)
        (self.yaml,) = (text for kind, text in blocks if kind == "yaml")
        for text in (text for kind, text in blocks if kind == "sql"):
            (folder / text.partition("\n")[0].removeprefix("-- ")).write_text(text)
        self.file = folder / "crm.yaml"
        self.file.write_text(self.yaml)
        assert yaml.safe_load(self.yaml)["name"] == "crm"
        self.table = f"delta.`{self.root}/tables/customers`"
        spark.sql(
            f"CREATE TABLE {self.table} ({COLUMNS}) USING delta "
            "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
        )

    def do(self, statement: str) -> None:
        self.spark.sql(statement.format(table=self.table))

    def run(self) -> dict[str, int]:
        """A run; rows that each step has written."""
        report = run_pipeline(RunRequest(pipeline=str(self.file), root=str(self.root)))
        report.check()
        assert report.error is None
        return {step.name: step.counts.written for step in report.steps}

    def history(self) -> Counter:
        rows = self.spark.read.format("delta").load(f"{self.root}/tables/crm/history")
        names = ("customer", "country", "level", "valid_from", "valid_to", "is_current")
        return Counter(tuple(row) for row in rows.select(*names).collect())

    def expected(self, first: int) -> Counter:
        """The versions of each customer, by what the table held after each commit. Args: first:
        version of the table that the first run saw."""
        told = self.spark.sql(f"DESCRIBE HISTORY {self.table}").select("version", "timestamp")
        times = {row["version"]: row["timestamp"] for row in told.collect()}
        before, open_, found = {}, {}, Counter()
        for version in range(first, max(times) + 1):
            rows = self.spark.sql(f"SELECT * FROM {self.table} VERSION AS OF {version}").collect()
            now = {row["id"]: (row["country"], row["level"]) for row in rows}
            for id_ in {*before, *now}:
                if before.get(id_) == now.get(id_):
                    continue
                if id_ in open_:
                    held, since = open_.pop(id_)
                    found[(id_, *held, since, times[version], False)] += 1
                if id_ in now:
                    open_[id_] = now[id_], times[version]
            before = now
        found.update((id_, *held, since, None, True) for id_, (held, since) in open_.items())
        return found

    def check(self, first: int) -> None:
        assert self.history() == self.expected(first)
        pipeline = load_pipeline(self.file)
        changes, history = pipeline.steps
        paths = pipeline.paths(str(self.root))
        assert all(one.equal for one in verify_by_replay(self.spark, pipeline, changes, paths))
        assert verify_groups(self.spark, pipeline, history, paths).equal


@pytest.fixture
def crm(spark, tmp_path) -> Crm:
    return Crm(spark, tmp_path)


def test_each_version_of_a_customer_holds_from_its_commit_to_the_next(crm):
    crm.do("INSERT INTO {table} VALUES (1, 'NL', 1), (2, 'DE', 1), (3, 'DE', 2)")
    assert crm.run() == {"changes": 3, "history": 3}
    crm.do("UPDATE {table} SET country = 'BE' WHERE id = 1")
    crm.do("UPDATE {table} SET level = 2 WHERE id = 1")
    crm.do("DELETE FROM {table} WHERE id = 2")
    assert crm.run()["history"] == 4  # all of the first customer; the second took an end
    crm.do("INSERT INTO {table} VALUES (2, 'FR', 1)")
    crm.run()
    crm.check(1)
    current = Counter(row[0] for row in crm.history() if row[-1])
    assert current == Counter([1, 2, 3])


@pytest.mark.parametrize("seed", [1])
def test_any_changes_cut_over_any_runs_give_one_history(crm, seed):
    draw, next_id = random.Random(seed), 5
    crm.do("INSERT INTO {table} SELECT id, 'NL', 1 FROM range(5)")
    crm.run()
    for _ in range(4 if LONG else 3):
        for _ in range(draw.randint(1, 4)):
            some = f"pmod(xxhash64(id, {draw.random()}), 3) = 0"
            acts = [
                f"UPDATE {{table}} SET level = level + 1 WHERE {some}",
                f"DELETE FROM {{table}} WHERE {some}",
                f"INSERT INTO {{table}} VALUES ({next_id}, 'DE', 1)",
                f"MERGE INTO {{table}} t USING (SELECT {next_id} AS id UNION ALL SELECT 1) s "
                "ON t.id = s.id WHEN MATCHED THEN UPDATE SET country = 'FR' "
                "WHEN NOT MATCHED THEN INSERT (id, country, level) VALUES (s.id, 'BE', 0)",
            ]
            crm.do(draw.choice(acts))
            next_id += 1
        crm.run()
    crm.check(1)
