"""Orders in files, by seed: one row in thirty is a copy, one in twenty-one breaks a rule.

The same rows as JSON lines, CSV or Parquet, or in nested JSON, where one in fifty has a field that
nobody declared.
"""

import csv
import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow
import pyarrow.parquet

_COUNTRIES, _STATES, _CHANNELS = (
    ("DE", "FR", "UK", "US", "IN"),
    ("new", "paid", "sent", "back"),
    ("web", "app", "shop"),
)
_FIRST_DAY = datetime(2026, 1, 1)
ROWS_PER_FILE = 125_000


def write_orders(folder: Path, form: str, rows: int, seed: int = 1) -> Path:
    """Write orders of one day; a row of flat JSON is 248 bytes. Returns the folder.

    Args: form: json, csv, parquet or nested. seed: also says which day.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = max(1, rows // ROWS_PER_FILE)
    orders = _draw(random.Random(seed), _FIRST_DAY + timedelta(days=seed), form == "nested")
    suffix = "json" if form == "nested" else form
    for number in range(files):
        some = [next(orders) for _ in range(rows // files)]
        _WRITERS[suffix](folder / f"s{seed:04d}-{number:05d}.{suffix}", some)
    return folder


def _draw(draw: random.Random, day: datetime, nested: bool) -> Iterator[dict]:
    earlier: list[dict] = []
    while True:
        if earlier and draw.random() < 0.03:
            yield draw.choice(earlier)
            continue
        row = _order(draw, day)
        row = _nest(draw, row) if nested else row
        yield row
        if draw.random() < 0.01:
            earlier.append(row)


def _order(draw: random.Random, day: datetime) -> dict:
    return {
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


def _nest(draw: random.Random, row: dict) -> dict:
    """The same order with a struct, an array of structs, an array and a map; 410 bytes."""
    lines = [{"sku": row["sku"], "quantity": n} for n in range(draw.randrange(1, 4))]
    address = {"city": f"city {draw.randrange(500)}", "geo": {"lat": 1.5, "lon": 2.5}}
    labels = {"campaign": f"c{draw.randrange(9)}", "device": draw.choice(_CHANNELS)}
    more = {"gift": True} if draw.random() < 0.02 else {}
    tags = draw.sample(_STATES, 2)
    return {**row, "address": address, "lines": lines, "tags": tags, "labels": labels, **more}


def _write_json(path: Path, orders: list[dict]) -> None:
    path.write_text("".join(json.dumps(order) + "\n" for order in orders))


def _write_csv(path: Path, orders: list[dict]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(orders[0]))
        writer.writeheader()
        writer.writerows(orders)


def _write_parquet(path: Path, orders: list[dict]) -> None:
    timed = [{**o, "event_time": datetime.fromisoformat(o["event_time"])} for o in orders]
    table = pyarrow.Table.from_pylist(timed)
    kind = pyarrow.timestamp("us", tz="UTC")
    place = table.schema.get_field_index("event_time")
    column = table.column("event_time").cast(kind)
    pyarrow.parquet.write_table(table.set_column(place, "event_time", column), path)


_WRITERS = {"json": _write_json, "csv": _write_csv, "parquet": _write_parquet}
