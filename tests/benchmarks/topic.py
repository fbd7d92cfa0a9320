"""Runs that read a Kafka topic; what the broker costs is left out."""

import json
import random
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import yaml
from sluice.setup.fetch import fetch_jars
from sluice.setup.jars import jar_paths

from tests.benchmarks.comparison import Comparison
from tests.benchmarks.process import Cost, run_measured, run_sluice
from tests.kafka_broker import KafkaBroker, Record

HERE = Path(__file__).parent
TOPIC, PARTITIONS = "orders", 3
SOURCE = {
    "kind": "kafka",
    "subscribe": TOPIC,
    "format": "json",
    "schema": {
        "id": "string",
        "at": "timestamp",
        "amount": "double",
        "country": "string",
        "note": "string",
    },
}
STEPS = {
    "append": {"sink": {"mode": "append"}},
    "dedup": {"event_time": {"column": "at"}, "dedup": {"keys": ["id"], "within": "2 days"}},
}
_SAID = {"append": "appended", "dedup": "one a key within two days"}


def fill(broker: KafkaBroker, records: int) -> None:
    """Orders of one day, 2 % of them twice: a copy says the same."""
    rng = random.Random(1)
    broker.create_topic(TOPIC, partitions=PARTITIONS)
    for start in range(0, records, 50_000):
        numbers = [
            n if rng.random() > 0.02 else rng.randrange(n + 1)
            for n in range(start, min(start + 50_000, records))
        ]
        broker.produce(TOPIC, [Record(_order(n), key=str(n)) for n in numbers])


def _order(number: int) -> str:
    seconds = number * 7919 % 86_400
    return json.dumps(
        {
            "id": f"o{number}",
            "at": f"2026-01-01T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z",
            "amount": number % 997 / 7,
            "country": ("DE", "FR", "GB", "US")[number % 4],
            "note": f"order {number} of a customer who likes long notes",
        }
    )


def ours(broker: KafkaBroker, folder: Path, mode: str) -> Cost:
    """One run of a pipeline into an empty root."""
    root, file = folder / "ours", folder / "orders.yaml"
    shutil.rmtree(root, ignore_errors=True)
    file.write_text(
        yaml.safe_dump(
            {
                "name": "orders",
                "steps": [
                    {
                        "name": "orders",
                        "source": {**SOURCE, "servers": broker.servers},
                        **STEPS[mode],
                    }
                ],
            }
        )
    )
    return run_sluice("run", file, root, folder / "output.log", {broker.process_id})


def plain(broker: KafkaBroker, folder: Path, mode: str) -> Cost:
    """One run of the hand-written job into an empty root."""
    root, jars = folder / "plain", ":".join(map(str, jar_paths("core", "kafka")))
    shutil.rmtree(root, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.plain_kafka",
        broker.servers,
        TOPIC,
        str(root),
        jars,
        mode,
    ]
    return run_measured(command, folder / "output.log", {broker.process_id})


def topic_loads(folder: Path, records: int) -> Iterator[Comparison]:
    """P4c of a topic. The broker ends with the iterator."""
    fetch_jars("core", "kafka")
    broker = KafkaBroker(folder / "kafka")
    broker.start()
    try:
        fill(broker, records)
        for mode in STEPS:
            yield Comparison(
                f"P4c {mode}",
                f"{records:,} records of a topic, {_SAID[mode]} ÷ the job by hand",
                1.00,
                partial(ours, broker, folder, mode),
                partial(plain, broker, folder, mode),
            )
    finally:
        broker.kill()
