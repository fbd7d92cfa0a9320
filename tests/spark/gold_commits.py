"""What befalls the tables that a refreshed step reads: commits of every kind, made at random.

They are made once, as a tape, and given to each test by copying the files of a table's log: so each
has tables of its own, at the cost of none.
"""

import random
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sluice.backlog import table_version

COLUMNS = """id INT, customer STRING, product STRING, country STRING, {at} TIMESTAMP,
  amount DECIMAL(10, 2), quantity INT, note STRING, ratio DOUBLE"""
TIMES = {"orders": "at", "returns": "returned_at", "events": "at"}
"""The tables that grow, and what each calls the time of a row."""
ACTS = {"orders": 18, "returns": 5, "events": 2}
"""How much befalls each; the first gets one of each of KINDS."""
DAYS = ("2026-01-30", "2026-01-31", "2026-02-01", "2026-02-02")
VALUES = {
    "customer": ["'ann'", "'bob'", "'Bob'", "''", "NULL"],
    "product": ["'tea'", "'milk'", "'salt'", "NULL"],
    "country": ["'NL'", "'DE'", "NULL"],
    "quantity": ["1", "2", "3", "5", "NULL"],
    "note": ["'a b'", "'b'", "''", "NULL"],
    "ratio": ["1.5D", "0.0D", "-0.0D", "double('NaN')", "NULL"],
}
NAMES = "id, customer, product, country, {at}, amount, quantity, note, ratio"
KINDS = (
    *("append", "append", "copy", "move", "move", "restate", "touch", "empty", "merge", "merge"),
    *("optimize", "nothing", "property", "overwrite", "restore", "unwatched", "clear", "pass"),
)
PRODUCTS = (
    "INSERT OVERWRITE {table} VALUES ('tea', 'hot', 1), ('milk', 'cold', 2)",
    "INSERT INTO {table} VALUES ('tea', 'green', 3), (NULL, 'none', 4)",
    "UPDATE {table} SET category = 'warm' WHERE product = 'tea' AND price = 1",
    "UPDATE {table} SET product = 'salt' WHERE product = 'milk'",
    "MERGE INTO {table} AS t USING (SELECT 'tea' AS product) AS s ON t.product = s.product "
    "WHEN MATCHED AND price = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET price = 5",
    "OPTIMIZE {table}",
    "INSERT OVERWRITE {table} VALUES ('tea', 'warm', 2), ('salt', NULL, 5), (NULL, 'some', 1)",
)
"""What befalls the table that tells of products, by a key that is not of one row alone."""


def create_table(spark, path: str, columns: str, **properties: str) -> None:
    """An empty Delta table with a change feed."""
    told = {"delta.enableChangeDataFeed": "true"} | properties
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in told.items())
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta TBLPROPERTIES ({listed})")


@dataclass
class Commits:
    """Statements that change a table of COLUMNS, made at random; `{table}` is the table."""

    chance: random.Random
    time: str
    ids: int = 0

    def row(self, id_: int) -> str:
        """A row as SQL."""
        pick = {name: self.chance.choice(values) for name, values in VALUES.items()}
        hour, minute = self.chance.choice([0, 9, 10, 10, 23]), self.chance.randrange(60)
        time = f"TIMESTAMP '{self.chance.choice(DAYS)} {hour:02}:{minute:02}:00'"
        time = "NULL" if self.chance.random() < 0.15 else time
        amount = f"{self.chance.randint(-500, 3000) / 100:.2f}"
        told = (pick["customer"], pick["product"], pick["country"], time, amount)
        return f"({id_}, {', '.join(told)}, {pick['quantity']}, {pick['note']}, {pick['ratio']})"

    def rows(self, count: int) -> str:
        """New rows as SQL, one of them twice."""
        made = [self.row(self.ids + number) for number in range(1, 1 + count)]
        self.ids += count
        return ", ".join([*made, made[0]])

    def some(self, parts: int = 3) -> str:
        """A condition under which some rows are."""
        return f"id % {parts} = {self.chance.randrange(parts)}"

    def make(self, kind: str, version: int) -> list[str]:
        """The statements of one act. Args: version: that a restore goes back to."""
        move = self.chance.choice(
            [f"{self.time} = {self.time} + INTERVAL 1 DAY", "customer = 'ann'", "country = 'DE'"]
        )
        group = self.chance.choice(
            ["customer IS NULL", f"date({self.time}) = '{self.chance.choice(DAYS)}'"]
        )
        added = "INSERT INTO {table} VALUES "
        unseen = self.chance.choice([f"UPDATE {{table}} SET {move}", added + self.rows(2)])
        watched = "ALTER TABLE {table} SET TBLPROPERTIES (delta.enableChangeDataFeed = %s)"
        return {
            "append": lambda: [added + self.rows(self.chance.randint(1, 6))],
            "copy": lambda: [f"INSERT INTO {{table}} SELECT * FROM {{table}} WHERE {self.some(5)}"],
            "move": lambda: [f"UPDATE {{table}} SET {move} WHERE {self.some()}"],
            "restate": lambda: [f"UPDATE {{table}} SET amount = amount + 1 WHERE {self.some(4)}"],
            "touch": lambda: [f"UPDATE {{table}} SET note = note WHERE {self.some(2)}"],
            "empty": lambda: [f"DELETE FROM {{table}} WHERE {group}"],
            "merge": lambda: [self.merge()],
            "optimize": lambda: ["OPTIMIZE {table}"],
            "nothing": lambda: ["INSERT INTO {table} SELECT * FROM {table} WHERE false"],
            "property": lambda: ["ALTER TABLE {table} SET TBLPROPERTIES (told = 'something')"],
            "overwrite": lambda: [
                f"INSERT OVERWRITE {{table}} SELECT * FROM {{table}} WHERE NOT {self.some()}"
            ],
            "restore": lambda: [f"RESTORE TABLE {{table}} TO VERSION AS OF {version}"],
            "unwatched": lambda: [watched % "false", unseen, watched % "true"],
            "clear": lambda: ["DELETE FROM {table}", added + self.rows(10)],
            "pass": lambda: [added + self.rows(3), f"DELETE FROM {{table}} WHERE id = {self.ids}"],
        }[kind]()

    def merge(self) -> str:
        """One statement that inserts, updates and deletes."""
        known = self.chance.sample(range(1, 1 + self.ids), min(self.ids, 3))
        self.ids += 1
        rows = ", ".join(self.row(id_) for id_ in (*known, self.ids))
        gone = self.chance.choice(
            ["", f"WHEN NOT MATCHED BY SOURCE AND {self.some(9)} THEN DELETE"]
        )
        return (
            "MERGE INTO {table} AS t USING "
            f"(SELECT * FROM VALUES {rows} AS v({NAMES.format(at=self.time)})) AS s "
            f"ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * {gone}"
        )


class Tape:
    """The history of some tables: of each its acts, as the versions that they made."""

    def __init__(self, spark, folder: Path, seed: int) -> None:
        self.spark, self.folder, self.chance = spark, folder, random.Random(seed)
        self.acts: dict[str, list[range]] = {}
        for name, time in TIMES.items():
            create = partial(create_table, spark, self.path(name), COLUMNS.format(at=time))
            vectors = self.chance.choice(["true", "false"])
            commits = Commits(self.chance, time)
            kinds = self.chance.sample(KINDS, ACTS[name])
            self.chance.shuffle(kinds)
            create(**{"delta.enableDeletionVectors": vectors})
            self.record(name, commits.make("clear", 0))
            for kind in kinds:
                self.record(name, commits.make(kind, max(1, self.acts[name][-1][0] - 1)))
        create_table(spark, self.path("products"), "product STRING, category STRING, price INT")
        for statement in PRODUCTS:
            self.record("products", [statement])

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def record(self, name: str, statements: list[str]) -> None:
        """Do an act, and note its versions; the first one has that of the empty table as well."""
        table, acts = f"delta.`{self.path(name)}`", self.acts.setdefault(name, [])
        for statement in statements:
            self.spark.sql(statement.format(table=table))
        begin = acts[-1].stop if acts else 0
        made = range(begin, (table_version(self.path(name)) or 0) + 1)
        acts += [made] if made else []  # some that find nothing to do make no commit


_LOG = shutil.ignore_patterns("_delta_log", ".*.crc")


class Lake:
    """Tables of a tape in a folder of their own, which go on act by act."""

    def __init__(
        self, tape: Tape, folder: Path, names: Iterable[str], chance: random.Random
    ) -> None:
        self.tape, self.folder, self.chance = tape, folder, chance
        self.due = {name: list(tape.acts[name]) for name in names}
        for name in self.due:
            shutil.copytree(tape.path(name), folder / name, ignore=_LOG)
            (folder / name / "_delta_log").mkdir()
            self.go_on(name)

    def go_on(self, name: str) -> None:
        """The next act of a table."""
        for version in self.due[name].pop(0):
            log = f"_delta_log/{version:020}.json"
            shutil.copy2(f"{self.tape.path(name)}/{log}", self.folder / name / log)

    def move(self, spark) -> None:
        """Rows of each table leave their day and their customer, or their key, and nothing else
        befalls: only what they were before tells the groups that they leave."""
        for name in self.due.keys() & TIMES.keys():
            time = TIMES[name]
            spark.sql(
                f"UPDATE delta.`{self.folder / name}` SET {time} = {time} + INTERVAL 1 DAY, "
                "customer = 'ann' WHERE id % 2 = 0"
            )
        if "products" in self.due:
            table = f"delta.`{self.folder / 'products'}`"
            spark.sql(f"UPDATE {table} SET product = 'water' WHERE product = 'tea'")

    def advance(self, rounds: int) -> None:
        """Some acts of some tables; all that are left where it is the last of the rounds."""
        for name, due in self.due.items():
            share = self.chance.randint(0, len(due) // 2) if rounds > 1 else len(due)
            for _ in range(share):
                self.go_on(name)
