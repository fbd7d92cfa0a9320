"""What a run from Kafka costs beside plain PySpark. `make bench-kafka SIZE=3`.

CPU-seconds of whole process trees (the broker's left out), interleaved.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

import yaml
from sluice.setup.fetch import fetch_jars
from sluice.setup.jars import jar_paths

from tests.benchmarks.bench import compare
from tests.benchmarks.process import cpu_seconds
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


def ours(broker: KafkaBroker, folder: Path, mode: str) -> float:
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
    return cpu_seconds(
        [sys.executable, "-m", "sluice.cli", "run", "--spec", str(file), "--root", str(root)],
        folder / "output.log",
        {broker.process_id},
    )


def plain(broker: KafkaBroker, folder: Path, mode: str) -> float:
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
    return cpu_seconds(command, folder / "output.log", {broker.process_id})


def main() -> None:
    """Run both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=3, help="repetitions of each pair")
    parser.add_argument("--records", type=int, default=500_000)
    chosen = parser.parse_args()
    fetch_jars("core", "kafka")
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as name:
        folder, broker = Path(name), KafkaBroker(Path(name) / "kafka")
        broker.start()
        try:
            fill(broker, chosen.records)
            print(
                f"{chosen.records:,} records in {PARTITIONS} partitions; "
                f"{chosen.size} interleaved pairs each",
                flush=True,
            )
            for mode in STEPS:
                compare(
                    mode,
                    chosen.size,
                    partial(ours, broker, folder, mode),
                    partial(plain, broker, folder, mode),
                    1.10,
                )
        finally:
            broker.kill()


if __name__ == "__main__":
    main()
