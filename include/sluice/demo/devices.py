"""Seeded messages of devices: the same seed gives the same bytes.

Three landings of four hours, each to a topic, and a catalogue beside them. What devices do is in
them: messages sent again, a device that was away for hours and sends what it kept, one that nobody
knows, sensors that fail, a measure nobody declared, messages that were cut, and a clock at 2099.
"""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from .landing import Deliver, Landing, deliver_files, set_environment
from .topics import Message, create_topic, read_newest, send, start_broker

START = datetime(2025, 6, 1, tzinfo=UTC)
LANDINGS = 3
SPAN = timedelta(hours=4)
STEP = timedelta(minutes=10)
TOPIC, COMPACTED = "measures", "device_hours"
_DEVICES = [f"d-{number:02}" for number in range(20)]
_AWAY = _DEVICES[3]
_SITES = ("Aachen", "Bonn", "Essen")


def generate_landings(seed: int = 7) -> Iterator[Landing]:
    """What each four hours bring: messages, and before the first ones the catalogue."""
    rng = random.Random(seed)  # noqa: S311 (made to be repeatable, not secret)
    kept: list[Message] = []
    for number in range(LANDINGS):
        start = START + number * SPAN
        messages: list[Message] = []
        for device in (*_DEVICES, "d-99"):
            sent = [_message(rng, device, start + n * STEP) for n in range(int(SPAN / STEP))]
            if device == _AWAY and number == 0:
                kept = sent
            else:
                messages += sent
        messages += (kept if number == 1 else []) + _odd_messages(rng, start, number)
        messages += rng.sample(messages, len(messages) // 25)
        rng.shuffle(messages)
        files = {} if number else {"devices/catalogue/2025-06-01.csv": _catalogue()}
        title = f"{start:%Y-%m-%d %H:%M} to {start + SPAN:%H:%M}"
        yield Landing(title, files, {TOPIC: messages})


def _catalogue() -> bytes:
    """Every device but one, with one that stands nowhere and one that is listed twice."""
    rows = [
        f"{device},{_SITES[n % 3]},m{n % 2},2025-01-{n + 1:02}T00:00:00Z"
        for n, device in enumerate(_DEVICES)
    ]
    lost = "d-50,,m1,2025-01-01T00:00:00Z"
    return "\n".join(["device,site,model,installed", *rows, rows[0], lost, ""]).encode()


def _message(rng: random.Random, device: str, at: datetime) -> Message:
    """What a device sends every ten minutes; now and then a sensor fails."""
    at += timedelta(seconds=rng.randrange(60))
    measures = {
        "temperature": round(rng.uniform(15, 30), 1),
        "humidity": round(rng.uniform(30, 70), 1),
    }
    chance = rng.random()
    if chance < 0.3:
        measures["co2"] = float(rng.randint(400, 1200))
    elif chance < 0.31:
        measures["temperature"] = -273.1
    elif chance < 0.32:
        measures["pressure"] = 1013.2
    return device, json.dumps(
        {"device": device, "at": f"{at:%Y-%m-%dT%H:%M:%SZ}", "measures": measures}
    )


def _odd_messages(rng: random.Random, start: datetime, number: int) -> list[Message]:
    """Messages that no rule can judge, or that say nothing: cut, without measures or a time; in the
    second landing one from 2099."""
    whole = _message(rng, _DEVICES[0], start)[1]
    says = {"device": _DEVICES[1], "at": f"{start:%Y-%m-%dT%H:%M:%SZ}", "measures": {"co2": 500.0}}
    odd = [whole[:40], "hello", json.dumps(says | {"measures": None, "n": number})]
    odd += [json.dumps(says | {"at": None}), json.dumps(says | {"measures": {}})]
    if number == 1:
        odd.append(json.dumps(says | {"at": "2099-12-31T23:59:59Z"}))
    return [(_DEVICES[1], text) for text in odd]


@contextmanager
def deliver_messages(root: Path) -> Iterator[Deliver]:
    """Landings become files below the root, and records of a broker that $KAFKA_SERVERS names
    meanwhile; at the end the newest record of each key is kept beside the tables."""
    with start_broker(root / "broker") as broker, deliver_files(root) as deliver:
        create_topic(broker, TOPIC, 2)
        create_topic(broker, COMPACTED, 2, cleanup_policy="compact")

        def deliver_all(landing: Landing) -> None:
            deliver(landing)
            for topic, messages in landing.messages.items():
                send(broker, topic, messages)

        with set_environment(KAFKA_SERVERS=broker.servers):
            yield deliver_all
            newest = read_newest(broker, COMPACTED)
            lines = [newest[key] for key in sorted(newest)]
            (root / f"{COMPACTED}.jsonl").write_text("".join(f"{line}\n" for line in lines))
