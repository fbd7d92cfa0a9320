"""Orders that come by Kafka and go to Delta, PostgreSQL and Kafka in one step.

Plain Python says what they come to; the shop compares that with what is really there.
"""

import json
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from psycopg import OperationalError
from pyspark.sql import Row
from sluice.errors import ExitCode
from sluice.report import BatchReport, Counts, RunReport, list_reports
from sluice.runner import run_pipeline
from sluice.spec import Refill, RunRequest
from sluice.verify.roots import count_rows

from tests.delta_rows import read_rows
from tests.kafka_broker import KafkaBroker, Record
from tests.postgres_server import PostgresServer

PARTITIONS = 3
FIELDS = {"id": "string", "n": "bigint", "amount": "double", "at": "timestamp"}
RULE = {
    "type": "expect_column_values_to_be_between",
    "kwargs": {"column": "amount", "min_value": 0},
    "on_fail": "quarantine",
    "name": "amount_not_negative",
}
TOMBSTONE = "the record has no value (a tombstone)"


def make_record(number: int, partition: int | None = None) -> Record:
    """An order; all copies of one say the same, and each twentieth breaks the rule."""
    value = {
        "id": f"o{number}",
        "n": number,
        "amount": float(number % 20 - 1),
        "at": f"2026-01-01T{number % 24:02d}:00:00Z",
    }
    return Record(json.dumps(value), key=f"o{number}", partition=partition)


def make_records(rng: random.Random, count: int, numbers: int) -> list[Record]:
    """Orders out of so many numbers, each fifth record of another kind.

    Copies side by side, malformed values, tombstones.
    """
    records = []
    while len(records) < count:
        order = make_record(rng.randrange(numbers), rng.randrange(PARTITIONS))
        odd = Record(
            rng.choice(["{broken", "", "[1]", None]),
            key=f"k{rng.randrange(4)}",
            partition=rng.randrange(PARTITIONS),
        )
        records += (
            [odd] if rng.random() < 0.1 else [order, order] if rng.random() < 0.1 else [order]
        )
    return records[:count]


@dataclass
class Truth:
    """What must be there after everything was produced that `add` was told of."""

    read: int = 0
    good: set[tuple] = field(default_factory=set)
    refused: set[tuple] = field(default_factory=set)
    """Rows of the quarantine table: (text, key, reason or defect)."""

    def add(self, records: list[Record]) -> None:
        """Count records that a reader sees."""
        self.read += len(records)
        for record in records:
            if record.value is None:
                self.refused.add((None, record.key, TOMBSTONE))
            elif not record.value.startswith('{"'):
                self.refused.add((record.value, record.key, "not a JSON object"))
            elif (order := json.loads(record.value))["amount"] < 0:
                self.refused.add((record.value, record.key, RULE["name"]))
            else:
                self.good.add((order["id"], order["n"]))

    @property
    def counts(self) -> tuple[int, int, int, int, int]:
        """read, written, quarantined, duplicate and late."""
        return (
            self.read,
            len(self.good),
            len(self.refused),
            self.read - len(self.good) - len(self.refused),
            0,
        )


class KafkaShop:
    """A pipeline from the topic `name` to a Delta table, a table and another topic.

    The database's table is `name`, the topic `name`_out; the root lies below a folder.
    """

    def __init__(
        self,
        folder: Path,
        broker: KafkaBroker,
        postgres: PostgresServer,
        name: str,
        **source: object,
    ) -> None:
        self.folder, self.root, self.yaml, self.log = (
            folder,
            folder / "root",
            folder / "orders.yaml",
            folder / "run.log",
        )
        self.broker, self.postgres, self.name = broker, postgres, name
        self.topic, self.sent = (
            broker.create_topic(name, partitions=PARTITIONS),
            broker.create_topic(f"{name}_out", partitions=2),
        )
        self.truth = Truth()
        step = {
            "name": "s",
            "source": {
                "kind": "kafka",
                "servers": broker.servers,
                "subscribe": name,
                "format": "json",
                "schema": FIELDS,
                **source,
            },
            "event_time": {"column": "at"},
            "dedup": {"keys": ["id"], "within": "2 days"},
            "rules": [RULE],
            "sink": [
                {"kind": "delta"},
                postgres.as_sink(name),
                {
                    "kind": "kafka",
                    "servers": broker.servers,
                    "topic": self.sent,
                    "key": "id",
                    "options": {"kafka.max.block.ms": "5000"},
                },
            ],
        }
        self.step, self.files = step, folder / "out"
        folder.mkdir(exist_ok=True)
        self.write()

    def write(self) -> None:
        """Write the YAML (again)."""
        self.yaml.write_text(yaml.safe_dump({"name": "orders", "steps": [self.step]}))

    def refuse_some(self) -> None:
        """Let the database refuse some of the rows for good."""
        self._alter("ADD CONSTRAINT picky CHECK (n % 7 <> 0) NOT VALID")

    def accept_all(self) -> None:
        """Let it take every row."""
        self._alter("DROP CONSTRAINT IF EXISTS picky")

    def _alter(self, what: str) -> None:
        with self.postgres.connect() as connection:
            connection.execute(f"ALTER TABLE IF EXISTS {self.name} {what}")

    def add_sink(self) -> None:
        """Let the rows go to a folder as well, from now on."""
        self.step["sink"].append({"kind": "files", "path": str(self.files), "format": "json"})
        self.write()

    def fill_sink(self) -> None:
        """Send the folder what it lacks."""
        report = self.run(refill=Refill(sink=f"files {self.files}", everything=True))
        assert (report.exit_code, report.error) == (ExitCode.DONE, None)

    def produce(
        self, records: list[Record], transaction: bool = False, abort: bool = False
    ) -> None:
        """Append records, in a transaction or not; those of an aborted one count for nothing."""
        if transaction:
            self.broker.produce_in_transaction(self.topic, records, abort)
        else:
            self.broker.produce(self.topic, records)
        self.truth.add([] if abort else records)

    def run(self, **request: object) -> RunReport:
        """Run once in this process; every report balances."""
        report = run_pipeline(RunRequest(pipeline=str(self.yaml), root=str(self.root), **request))
        report.check()
        return report

    def differences(self, spark) -> list[str]:
        """One sentence for each place that does not hold what it should.

        None means that nothing was lost, doubled or miscounted.
        """
        good, counts = Counter(self.truth.good), count_rows(self.root, "orders")
        found = {
            "Delta": (self._rows(), good),
            "PostgreSQL": (self._selected(), good),
            "Kafka": (self._sent_once(), good),
            "files": (self._written(spark), good if self.files.exists() else Counter()),
            "quarantine": (self._refused(), Counter(self.truth.refused)),
            "the reports": (
                (counts.read, counts.written, counts.quarantined, counts.duplicate, counts.late),
                self.truth.counts,
            ),
            "reports that do not balance": (
                [
                    report.run_id
                    for report in list_reports(self.root / "reports" / "orders")
                    if not report.counts.balanced
                ],
                [],
            ),
        }
        return [
            f"{place}: {_compare(there, wanted)}"
            for place, (there, wanted) in found.items()
            if there != wanted
        ]

    @property
    def counts(self) -> Counts:
        """The sum of all reports."""
        return count_rows(self.root, "orders")

    @property
    def sent_again(self) -> int:
        """Records of the topic that a reader who knows the headers passes over."""
        return len(self.broker.read(self.sent)) - sum(self._sent_once().values())

    @property
    def delivered(self) -> int:
        """Batches that the database says it has; none while it is away."""
        with suppress(OperationalError):
            return self._count_delivered()
        return 0

    def _count_delivered(self) -> int:
        with self.postgres.connect() as connection:
            there = connection.execute("SELECT to_regclass('sluice_batches')").fetchone()[0]
            return (
                connection.execute(
                    "SELECT count(*) FROM sluice_batches WHERE target LIKE %s", [f"%{self.name}"]
                ).fetchone()[0]
                if there
                else 0
            )

    @property
    def replayed(self) -> int:
        """Batches of which a run found the target's rows already there."""
        return sum(batch.replayed for batch in self._list_batches())

    @property
    def batches(self) -> int:
        """Batches that the reports tell of."""
        return len(self._list_batches())

    def _list_batches(self) -> list[BatchReport]:
        return [
            batch
            for report in list_reports(self.root / "reports" / "orders")
            for step in report.steps
            for batch in step.batches
        ]

    def _rows(self) -> Counter:
        return Counter((row.id, row.n) for row in self._table("s"))

    def _table(self, name: str) -> list[Row]:
        return read_rows(self.root / "tables" / "orders" / name)

    def _selected(self) -> Counter:
        with self.postgres.connect() as connection:
            return Counter(connection.execute(f"SELECT id, n FROM {self.name}").fetchall())

    def _written(self, spark) -> Counter:
        if not self.files.exists():
            return Counter()
        return Counter((row.id, row.n) for row in spark.read.json(str(self.files)).collect())

    def _sent_once(self) -> Counter:
        once: dict[tuple, bytes] = {}
        for record in self.broker.read(self.sent):
            headers = dict(record.headers)
            place = headers["sluice.batch"], headers["sluice.position"]
            assert once.setdefault(place, record.value) == record.value, (
                f"{place} was sent twice and not the same"
            )
        return Counter((value["id"], value["n"]) for value in map(json.loads, once.values()))

    def _refused(self) -> Counter:
        rows = self._table("s__quarantine")
        return Counter(
            (
                None if row.detail == TOMBSTONE else row.row,
                json.loads(row._source).get("key"),
                row.detail or row.reasons[0],
            )
            for row in rows
        )


def _compare(there: object, wanted: object) -> str:
    if isinstance(there, Counter):
        missing, extra = wanted - there, there - wanted
        some = [*missing, *extra][:4]
        return f"{missing.total()} missing, {extra.total()} too many: {some}"
    return f"{there} instead of {wanted}"
