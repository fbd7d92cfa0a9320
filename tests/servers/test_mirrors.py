"""The further sinks of a step with `groups` become what its table is, whatever befalls the inputs,
wherever runs die and whichever sink is away: rows come, change and go there as well.

`SLUICE_REFRESHES` and `SLUICE_SEED` as in `tests/spark/test_refresh.py`.
"""

import json
import random
import shutil
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date

import pytest
from sluice.errors import ExitCode, TransientError
from sluice.report import RunReport
from sluice.report.text import render_text
from sluice.sinks.files.sink import FilesWriter
from sluice.sinks.jdbc.sink import JdbcWriter
from sluice.sinks.kafka.sink import KafkaWriter
from sluice.spec import Refill
from sluice.streaming import following

from tests.spark.gold import BEFORE, DEATHS, Gold
from tests.spark.gold_commits import Lake, Tape, create_table
from tests.spark.gold_queries import Query
from tests.spark.test_refresh import FIRST, HISTORIES

SOLD = Query(
    """SELECT concat_ws('/', coalesce(string(date(at)), 'no day'), coalesce(product, 'no product'))
      AS key, date(at) AS day, coalesce(product, '') AS product, sum(quantity) AS sold,
      count(*) AS rows FROM source GROUP BY date(at), product"""
)
ORDERS = "product STRING, at TIMESTAMP, quantity INT"
COLUMNS = ["key", "day", "product", "sold", "rows"]
AWAY = "the sink is away"


class Mirrors:
    """The sinks of a gold table, and what each holds."""

    def __init__(self, gold: Gold, postgres, broker, name: str) -> None:
        self.gold, self.postgres, self.broker, self.name = gold, postgres, broker, name
        self.topic = broker.create_topic(name, partitions=2)
        self.jdbc = {**postgres.as_sink(name), "mode": "upsert", "keys": ["key"]}
        self.kafka = {"kind": "kafka", "servers": broker.servers, "topic": name, "key": "key"}
        self.days = {"kind": "files", "path": "days", "partition_by": ["day", "product"]}
        self.parts = {"kind": "files", "path": "parts", "partition_by": ["product"]}
        self.files = {"kind": "files", "path": "files", "format": "json"}
        further = [self.jdbc, self.kafka, self.days, self.parts, self.files]
        gold.step["sink"] = [{"kind": "delta"}, *further]

    @property
    def held(self) -> dict[str, Counter]:
        """What each sink holds, as the table's rows."""
        return {
            "jdbc": self.rows_of_table(),
            "kafka": self.rows_of_topic(),
            "days": self.rows_of_files("days", "parquet"),
            "parts": self.rows_of_files("parts", "parquet"),
            "files": self.rows_of_files("files", "json"),
        }

    def rows_of_table(self) -> Counter:
        with self.postgres.connect() as connection:
            return Counter(
                connection.execute(f"SELECT {', '.join(COLUMNS)} FROM {self.name}").fetchall()
            )

    def rows_of_topic(self) -> Counter:
        newest: dict[bytes, tuple] = {}
        for record in self.broker.read(self.topic):
            newest.pop(record.key, None)
            if record.value is not None:
                newest[record.key] = read_row(record.value)
        return Counter(newest.values())

    def rows_of_files(self, folder: str, format_: str) -> Counter:
        path = self.gold.folder / "root" / folder
        if not list(path.rglob("part-*")):
            return Counter()
        rows = self.gold.spark.read.schema(SCHEMA).format(format_).load(str(path))
        # A folder's name tells no empty text from NULL.
        return Counter(
            tuple(row) for row in rows.selectExpr(*COLUMNS).fillna("", ["product"]).collect()
        )

    def check(self) -> None:
        table = Counter(tuple(row) for row in self.gold.table().select(*COLUMNS).collect())
        for sink, rows in self.held.items():
            lacks, strange = table - rows, rows - table
            assert not (lacks or strange), f"{sink} lacks {lacks}, and has {strange}"


SCHEMA = "key STRING, day DATE, product STRING, sold BIGINT, rows BIGINT"


def read_row(text: bytes | str) -> tuple:
    """A row of the table as the value of a record says it."""
    told = json.loads(text)
    told["day"] = date.fromisoformat(told["day"]) if "day" in told else None
    return tuple(told.get(name) for name in COLUMNS)


@contextmanager
def failing(chance: random.Random) -> Iterator[None]:
    """A kind of sink is away, before or after it took the batch; or the run ends before it notes
    what a sink has got."""
    with pytest.MonkeyPatch.context() as patch:
        kind = chance.choice([FilesWriter, JdbcWriter, KafkaWriter])
        original, late = kind.deliver, chance.random() < 0.5

        def fail(self, rows, delivery) -> int:
            if late:
                original(self, rows, delivery)
            raise TransientError(AWAY, where="here", do="wait")

        def die(*args: object) -> None:
            raise OSError("the machine is gone")

        if chance.random() < 0.3:
            patch.setattr(following, "write_position", die)
        else:
            patch.setattr(kind, "deliver", fail)
        yield


@pytest.fixture
def mirrors(spark, postgres, kafka_broker, tmp_path, monkeypatch, request):
    """Sinks of a query over tables that lie in a folder."""
    monkeypatch.setenv("PG_PASSWORD", postgres.password)

    def make(name: str, query: Query = SOLD) -> Mirrors:
        return Mirrors(Gold(spark, tmp_path, query), postgres, kafka_broker, name)

    return make


@pytest.fixture
def sold(mirrors, request) -> Mirrors:
    """A table over three days of orders, and its sinks, after one run."""
    found = mirrors(f"sold_{zlib.crc32(request.node.name.encode())}")
    create_table(found.gold.spark, found.gold.path("orders"), ORDERS)
    add(found.gold, "('tea', 1), ('tea', 1), ('milk', 1), ('tea', 2), ('salt', 3), (NULL, NULL)")
    assert found.gold.run().error is None
    found.check()
    return found


def add(gold: Gold, rows: str) -> None:
    """Orders of one piece of a product, on a day of January."""
    at = "timestamp('2026-01-01') + make_interval(0, 0, 0, day - 1)"
    read = f"SELECT product, {at}, 1 FROM VALUES {rows} AS v (product, day)"
    gold.sql(f"INSERT INTO {{table}} {read}")


def told(report: RunReport) -> str:
    return " ".join(render_text(report).split())


def test_what_goes_from_the_table_goes_from_every_sink_and_only_what_changed_is_sent(sold):
    gold = sold.gold
    add(gold, "('milk', 1)")
    gold.sql("DELETE FROM {table} WHERE date(at) = '2026-01-03'")
    gold.sql("UPDATE {table} SET product = 'Tea' WHERE date(at) = '2026-01-02'")
    report = gold.run()
    sold.check()
    records = [(dict(r.headers)["sluice.batch"], r) for r in sold.broker.read(sold.topic)]
    keys = {r.key.decode(): r.value is None for batch, r in records if batch.endswith(b"/1")}
    gone = {"2026-01-02/tea": True, "2026-01-03/salt": True}
    assert keys == gone | {"2026-01-01/milk": False, "2026-01-02/Tea": False}  # tea of the 1st: no
    assert f"2 rows were delivered to jdbc {sold.name}." in told(report)
    assert f"2 keys without a row were removed from jdbc {sold.name}." in told(report)
    days = gold.folder / "root" / "days"
    assert not list(days.glob("day=2026-01-03/*/part-*"))
    gold.sql("DELETE FROM {table}")
    assert gold.run().steps[0].warnings == []
    sold.check()
    assert sold.held == dict.fromkeys(sold.held, Counter())


def test_a_sink_that_was_away_is_made_what_the_table_is_by_batches_in_any_order(sold):
    gold = sold.gold
    with sold.postgres.connect() as connection:
        connection.execute(f"ALTER TABLE {sold.name} ADD CHECK (product <> 'milk') NOT VALID")
    add(gold, "('milk', 2)")
    assert gold.run().status == "undelivered"
    gold.sql("DELETE FROM {table} WHERE product = 'milk' OR date(at) = '2026-01-03'")
    add(gold, "('tea', 2)")
    assert gold.run().error is None
    sold.check()


def test_a_sink_that_is_added_or_lost_its_place_is_made_what_the_table_is_on_demand(sold):
    gold = sold.gold
    with sold.postgres.connect() as connection:
        connection.execute(f"UPDATE {sold.name} SET sold = 99 WHERE product = 'tea'")
        connection.execute(f"INSERT INTO {sold.name} (key, product) VALUES ('stray', 'none')")
        connection.execute(f"DELETE FROM {sold.name} WHERE product = 'salt'")
    days = gold.folder / "root" / "days"
    (stray := days / "day=2026-01-09" / "product=tea").mkdir(parents=True)
    part = next((days / "day=2026-01-02").rglob("part-*"))
    shutil.copy(part, stray / part.name)
    added = {**sold.files, "path": "added"}
    gold.step["sink"].append(added)
    for _ in range(2):  # the second time nothing is wrong
        report = gold.run(refill=Refill(everything=True))
        assert report.error is None
        sold.check()
        assert sold.rows_of_files("added", "json") == sold.held["files"]
        assert report.steps[0].delivered[f"jdbc {sold.name}"] == 5


def test_keys_that_name_no_batch_of_the_step_send_nothing(sold):
    report = sold.gold.run(refill=Refill(keys=["nonsense", "gold/daily/other/0"]))
    assert report.error is None
    assert sum(report.steps[0].delivered.values()) == 0
    sold.check()


def test_what_people_do_to_the_table_between_a_batch_and_its_retry_reaches_the_sinks(sold):
    gold = sold.gold
    add(gold, "('milk', 5)")
    assert gold.run().error is None
    gold.sql("DELETE FROM {table} WHERE date(at) = '2026-01-05'")
    gold.die(BEFORE)
    # What the batch was to take away is gone, so that it changes nothing there.
    gold.spark.sql(f"DELETE FROM delta.`{gold.target()}` WHERE day = '2026-01-05'")
    report = gold.run()
    assert report.error is None
    assert report.steps[0].batches[0].refresh.deleted == 0
    gold.check()
    sold.check()


def test_a_sink_that_replaces_rows_by_other_columns_is_sent_all_in_place_of_what_it_has(sold):
    gold = sold.gold
    sinks = gold.step["sink"]
    for sink, change in (
        (sold.jdbc, {"keys": ["day", "product"]}),
        (sold.days, {"partition_by": ["day"]}),
    ):
        sinks[sinks.index(sink)] = sink | change
    with sold.postgres.connect() as connection:
        connection.execute(f"CREATE UNIQUE INDEX ON {sold.name} (day, product)")
    gold.sql("DELETE FROM {table} WHERE date(at) = '2026-01-03' OR at IS NULL")
    report = gold.run()
    assert report.error is None
    sold.check()
    assert f"jdbc {sold.name} replaced rows by key and does so by day, product from here" in told(
        report
    )
    assert "files days replaced rows by day, product and does so by day from here" in told(report)
    add(gold, "('milk', 1)")
    report = gold.run()
    assert "from here on" not in told(report)
    sold.check()


def test_what_a_batch_took_away_and_nobody_can_read_any_more_is_asked_for_as_a_whole(sold):
    gold, spark = sold.gold, sold.gold.spark
    with sold.postgres.connect() as connection:
        connection.execute(f"ALTER TABLE {sold.name} ADD CONSTRAINT c CHECK (sold < 3) NOT VALID")
    gold.sql("DELETE FROM {table} WHERE date(at) = '2026-01-03'")
    add(gold, "('tea', 1), ('tea', 1)")
    assert gold.run().status == "undelivered"
    with sold.postgres.connect() as connection:
        connection.execute(f"ALTER TABLE {sold.name} DROP CONSTRAINT c")
    table = f"delta.`{gold.target()}`"
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(
        f"ALTER TABLE {table} SET TBLPROPERTIES "
        "('delta.deletedFileRetentionDuration' = 'interval 0 seconds')"
    )
    spark.sql(f"VACUUM {table} RETAIN 0 HOURS")
    lost = gold.run()
    assert lost.exit_code is ExitCode.TERMINAL
    assert "took out of the target cannot be read any more" in lost.error
    advice = f"`sluice deliver NAME --sink 'jdbc {sold.name}' --all`"
    assert advice in lost.error
    whole = gold.run(refill=Refill(everything=True, sink=f"jdbc {sold.name}"))
    assert whole.error is None
    sold.check()
    assert gold.run().exit_code is ExitCode.NOTHING_NEW


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("product", "5 rows have 4 keys, and of a key readers take the newest record"),
        ("nullif(key, 'no day/no product')", "1 row(s) have NULL as their key"),
    ],
)
def test_rows_that_readers_of_a_topic_could_not_tell_apart_are_not_sent(mirrors, key, message):
    code = f"SELECT *, {key} AS told FROM ({SOLD.code})"
    found = mirrors(f"told_{len(key)}", replace(SOLD, code=code))
    found.gold.step["sink"] = [{"kind": "delta"}, {**found.kafka, "key": "told"}]
    create_table(found.gold.spark, found.gold.path("orders"), ORDERS)
    add(found.gold, "('tea', 1), ('milk', 1), ('tea', 2), ('salt', 3), (NULL, NULL)")
    report = found.gold.run()
    assert report.exit_code is ExitCode.TERMINAL
    assert message in report.error
    assert found.broker.read(found.topic) == []


@pytest.mark.parametrize("seed", range(FIRST, FIRST + max(1, HISTORIES)))
def test_after_a_run_every_sink_holds_the_rows_of_the_table_whatever_died_or_was_away_before(
    mirrors, spark, tmp_path_factory, seed
):
    found = mirrors(f"mirrored_{seed}")
    chance, gold = random.Random(seed), found.gold
    tape = Tape(spark, tmp_path_factory.mktemp("tape"), seed)
    lake = Lake(tape, gold.tables, gold.query.tables.values(), chance)
    for left in range(6 if HISTORIES else 3, 0, -1):
        lake.advance(left)
        if chance.random() < 0.3:
            gold.die(chance.choice(DEATHS))
        if chance.random() < 0.6:
            with failing(chance):
                gold.run()
            lake.advance(left) if left > 1 else None
        report = gold.run()
        assert report.error is None
        gold.check()
        found.check()
    assert gold.run().exit_code is ExitCode.NOTHING_NEW
