"""Orders as JSON lines, by seed: one row in thirty is a copy, one in twenty-one breaks a rule."""

import json
import random
from datetime import datetime, timedelta
from pathlib import Path

_COUNTRIES, _STATES, _CHANNELS = (
    ("DE", "FR", "UK", "US", "IN"),
    ("new", "paid", "sent", "back"),
    ("web", "app", "shop"),
)


def write_orders(folder: Path, rows: int, files: int, seed: int = 1) -> Path:
    """Write `rows` orders of one day into `files` files; 248 bytes a row. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    draw, day = random.Random(seed), datetime(2026, 1, 1) + timedelta(days=seed)
    earlier: list[str] = []
    for number in range(files):
        with (folder / f"s{seed:04d}-{number:05d}.json").open("w") as file:
            for _ in range(rows // files):
                if earlier and draw.random() < 0.03:
                    file.write(draw.choice(earlier))
                    continue
                row = _order(draw, day)
                file.write(row)
                if draw.random() < 0.01:
                    earlier.append(row)
    return folder


def _order(draw: random.Random, day: datetime) -> str:
    row = {
        "id": f"{draw.getrandbits(128):032x}",
        "customer": f"c{draw.randrange(100_000):06d}",
        "country": draw.choice(_COUNTRIES),
        "status": draw.choice(_STATES),
        "price": round(draw.random() * 500, 2),
        "quantity": draw.randrange(-1, 20),
        "sku": f"sku-{draw.randrange(5000):05d}",
        "event_time": (day + timedelta(seconds=draw.randrange(86_400))).isoformat(),
        "note": "x" * draw.randrange(80),
        "channel": draw.choice(_CHANNELS),
    }
    return json.dumps(row) + "\n"
