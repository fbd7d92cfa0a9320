"""Seeded readings of sensors: the same seed gives the same bytes.

Three landings of three hours each, in several files. What sensors do is in them: one that lost its
line and sends its last hour with the next landing, readings held up for minutes or for hours,
copies across files and landings, one in Fahrenheit, values that no air has, a sensor that nobody
knows, a clock at 2099, and lines that broke.
"""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from .landing import Landing, pack

START = datetime(2025, 6, 1, tzinfo=UTC)
LANDINGS = 3
SPAN = timedelta(hours=3)
STEP = timedelta(minutes=2)
FILES = 3
DEVICES = tuple(f"s-{number}" for number in range(1, 7))
_CUT, _AMERICAN = DEVICES[1], DEVICES[4]


def generate_landings(seed: int = 7) -> Iterator[Landing]:
    """What each three hours bring."""
    rng = random.Random(seed)  # noqa: S311 (made to be repeatable, not secret)
    kept: list[dict] = []
    sent: list[dict] = []
    for number in range(LANDINGS):
        start = START + number * SPAN
        taken = [
            _reading(rng, device, start + n * STEP)
            for device in DEVICES
            for n in range(SPAN // STEP)
        ]
        held = [row for row in taken if _is_held(rng, row, start, number)]
        rows = [row for row in taken if row not in held] + kept
        rows += rng.sample(sent, 20) if sent else []  # copies of what came before
        rows += rng.sample(rows, len(rows) // 40) + _odd_readings(rng, start, number)
        kept, sent = held, taken
        lines = [json.dumps(row) + "\n" for row in rows] + [json.dumps(rows[0])[:45] + "\n"]
        rng.shuffle(lines)
        yield Landing(
            f"{start:%Y-%m-%d %H:%M} to {start + SPAN:%H:%M}",
            {
                f"signals/{start:%Y%m%d%H}-{part}.jsonl.gz": pack(
                    ".gz", "".join(lines[part::FILES])
                )
                for part in range(FILES)
            },
        )


def _reading(rng: random.Random, device: str, at: datetime) -> dict[str, Any]:
    """What a sensor measures every two minutes; now and then it fails, or stands in the sun."""
    at += timedelta(seconds=rng.randrange(120))
    celsius, chance = rng.uniform(15, 30), rng.random()
    if chance < 0.006:
        celsius = rng.choice((-273.1, 999.9))
    elif chance < 0.012:
        celsius = rng.uniform(46, 60)
    unit = "F" if device == _AMERICAN else "C"
    value = round(celsius * 1.8 + 32 if unit == "F" else celsius, 1)
    return {"device": device, "at": f"{at:%Y-%m-%dT%H:%M:%SZ}", "value": value, "unit": unit}


def _is_held(rng: random.Random, row: dict, start: datetime, number: int) -> bool:
    """Whether a reading comes with the next landing: the last minutes of all sensors do in part, in
    the first landing the last hour of one, and of the rest a few."""
    left = start + SPAN - datetime.fromisoformat(row["at"])
    if number == 0 and row["device"] == _CUT and left < timedelta(hours=1):
        return True
    return rng.random() < (0.3 if left < timedelta(minutes=25) else 0.01)


def _odd_readings(rng: random.Random, start: datetime, number: int) -> list[dict]:
    """Readings that a rule refuses: of no sensor of ours, in a unit of its own, and from 2099."""
    rows = [_reading(rng, device, start) for device in ("s-9", DEVICES[0], DEVICES[2])]
    rows[1] |= {"unit": "K", "at": f"{start:%Y-%m-%dT%H:%M}:00.5Z"}
    rows[2] |= {"at": f"2099-12-31T23:59:{number:02}Z"}
    return rows
