"""Both ends of an operator's pipeline: what others write into its source, and what its sink holds.

A folder of JSON lines needs no class: a shop lands them.
"""

import json
import shutil
from collections import Counter
from typing import Protocol

from confluent_kafka import KafkaException

from tests.kafka_broker import KafkaBroker, Record
from tests.postgres_server import PostgresServer

FACTORS = (1, 3)
"""By which the transform may multiply amounts."""
_ON_DAY_10 = 1_768_003_200_000
"""Milliseconds since 1970 of the day of all orders: a topic's records are dated by it."""


class Upstream(Protocol):
    """A source that others write; `source`: its fields in the spec. `typed`: its rows are no text.
    `renewed`: what a run says that finds another one in its place. A commit of a table, or what is
    produced at once, is what a file is elsewhere."""

    source: dict
    typed: bool
    renewed: str

    def add(self, lines: list[str]) -> None:
        """Write some orders."""

    def renew(self) -> None:
        """Remove it with all that is in it; there is another of that name when `add` is next."""

    def line_of(self, row: str) -> str:
        """The line that a refused row was landed as."""


class TableUpstream:
    """A Delta table of orders."""

    typed = True
    renewed = "the table was made anew"

    def __init__(self, spark: object, path: str) -> None:
        self.spark, self._lines = spark, {}
        self.source = {"kind": "table", "path": path}

    def add(self, lines: list[str]) -> None:
        """One commit."""
        rows = [json.loads(line) for line in lines]
        for row, line in zip(rows, lines, strict=True):
            for factor in FACTORS:
                self._lines[row.get("order_id"), row["amount"] * factor] = line
        values = [(row.get("order_id"), row["amount"], row["at"]) for row in rows]
        frame = self.spark.createDataFrame(values, "order_id string, amount double, at string")
        frame = frame.withColumn("at", frame.at.cast("timestamp")).coalesce(1)
        frame.write.format("delta").mode("append").save(self.source["path"])

    def renew(self) -> None:
        """The next commit makes it anew."""
        shutil.rmtree(self.source["path"])

    def line_of(self, row: str) -> str:
        """Of a table what the transform made of a row is kept."""
        found = json.loads(row)
        return self._lines[found.get("order_id"), found["amount"]]


class TopicUpstream:
    """A topic of one partition, so that its records have an order."""

    typed = False
    renewed = (
        "offsets mean other records than when they were read, because their topics were made anew"
    )

    def __init__(self, broker: KafkaBroker, topic: str) -> None:
        self.broker, self.topic = broker, broker.create_topic(topic)
        self.source = {"kind": "kafka", "servers": broker.servers, "subscribe": topic}

    def add(self, lines: list[str]) -> None:
        """A record a line."""
        self.broker.produce(self.topic, [Record(line, timestamp=_ON_DAY_10) for line in lines])

    def renew(self) -> None:
        """An empty topic of the same name is there at once."""
        self.broker.delete_topic(self.topic)
        self.broker.create_topic(self.topic)

    def line_of(self, row: str) -> str:
        """The value of the record."""
        return row


class TableSink:
    """A table in PostgreSQL."""

    def __init__(self, postgres: PostgresServer, table: str) -> None:
        self._postgres, self._table = postgres, table
        self.spec = postgres.as_sink(table)

    def exists(self) -> bool:
        """Whether a run has made it."""
        return self._ask(f"SELECT to_regclass('{self._table}')")[0][0] is not None

    def rows(self) -> Counter:
        """Ids and amounts."""
        return Counter(self._ask("SELECT order_id, amount FROM {t}") if self.exists() else [])

    def empty(self) -> None:
        """Delete every row."""
        self._ask("DELETE FROM {t}")

    def refuse(self, refuses: bool) -> None:
        """Take no row more, or take every row again."""
        if self.exists():
            self._ask("ALTER TABLE {t} DROP CONSTRAINT IF EXISTS nothing")
        if self.exists() and refuses:
            self._ask("ALTER TABLE {t} ADD CONSTRAINT nothing CHECK (amount < -9) NOT VALID")

    def leave(self, away: bool) -> None:
        """Be where the pipeline does not find it, or where it does."""
        self.spec["url"] = "jdbc:postgresql://127.0.0.1:1/no" if away else self._postgres.jdbc_url

    def widen(self) -> None:
        """Have the column `more`."""
        if self.exists():
            self._ask("ALTER TABLE {t} ADD COLUMN IF NOT EXISTS more bigint")

    def _ask(self, sql: str) -> list[tuple]:
        with self._postgres.connect() as connection:
            done = connection.execute(sql.format(t=self._table))
            return done.fetchall() if done.description else []


class TopicSink:
    """A topic, read as one who knows the headers reads it: a row that came twice counts once."""

    def __init__(self, broker: KafkaBroker, topic: str) -> None:
        self._broker, self._topic = broker, broker.create_topic(topic)
        quick = {"kafka.max.block.ms": "1500"}
        self.spec = {"kind": "kafka", "topic": topic, "key": "order_id", "options": quick}
        self.leave(away=False)

    def exists(self) -> bool:
        """It was there before the pipeline."""
        return True

    def rows(self) -> Counter:
        """Ids and amounts."""
        once: dict[tuple, bytes] = {}
        for record in self._broker.read(self._topic):
            headers = dict(record.headers)
            place = headers["sluice.batch"], headers["sluice.position"]
            assert once.setdefault(place, record.value) == record.value, f"two rows of {place}"
        values = map(json.loads, once.values())
        return Counter((value["order_id"], value["amount"]) for value in values)

    def empty(self) -> None:
        """Delete every record."""
        self._broker.expire(self._topic, 0, self._broker.end_offsets(self._topic)[0])

    def refuse(self, refuses: bool) -> None:
        """Take no record more, or take every record again."""
        self._broker.set_topic_config(self._topic, max_message_bytes=1 if refuses else None)
        if refuses:
            self._broker.wait_until(self._refuses, f"{self._topic} takes no record")

    def _refuses(self) -> bool:
        try:
            self._broker.produce_in_transaction(self._topic, [Record("probe")], abort=True)
        except KafkaException:
            return True
        return False

    def leave(self, away: bool) -> None:
        """Be where the pipeline does not find it, or where it does."""
        self.spec["servers"] = "127.0.0.1:1" if away else self._broker.servers

    def widen(self) -> None:
        """A record's value has the columns that it is sent with."""
