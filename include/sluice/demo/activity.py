"""Seeded requests of visitors: the same seed gives the same bytes.

Three landings of four hours each, in two files. What web sites get is in them: visits that go on
with the next landing, requests that a server of the edge held up, for minutes or for hours, copies
across files and landings, a robot, a shop whose payment fails again and again, pages that are none,
a clock at 2099, and lines that broke.
"""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from .landing import Deliver, Landing, deliver_files, pack, set_environment

START = datetime(2025, 6, 1, tzinfo=UTC)
LANDINGS = 3
SPAN = timedelta(hours=4)
FILES = 2
_PAGES = ("/", "/list", "/item/1", "/item/2", "/item/3", "/cart", "/pay")
_EDGE = timedelta(minutes=45)
"""Before a landing's end: what is held up there is behind the watermark later, but not by much."""


def generate_landings(seed: int = 7, visits: int = 120) -> Iterator[Landing]:
    """What each four hours bring. Args: visits: that begin in them."""
    rng = random.Random(seed)  # noqa: S311 (made to be repeatable, not secret)
    waiting: list[dict] = []
    sent: list[dict] = []
    for number in range(LANDINGS):
        start = START + number * SPAN
        end = _tell(start + SPAN)
        made = [row for _ in range(visits) for row in _visit(rng, start)] + waiting
        if number == 1:
            made += _robot(start)
        rows = [row for row in made if row["at"] < end]
        held = [row for row in rows if row["at"] >= _tell(start) and _is_held(rng, row, start)]
        waiting = [row for row in made if row["at"] >= end] + held
        rows = [row for row in rows if row not in held]
        copies = rng.sample(rows, len(rows) // 40) + (rng.sample(sent, 20) if sent else [])
        sent = rows
        lines = [json.dumps(row) + "\n" for row in rows + copies + _odd_rows(rng, start, number)]
        lines += [lines[0][:45] + "\n"]
        rng.shuffle(lines)
        yield Landing(
            f"{start:%Y-%m-%d %H:%M} to {start + SPAN:%H:%M}",
            {
                f"activity/{start:%Y%m%d%H}-{part}.jsonl.gz": pack(
                    ".gz", "".join(lines[part::FILES])
                )
                for part in range(FILES)
            },
        )


@contextmanager
def deliver_requests(root: Path) -> Iterator[Deliver]:
    """Landings become files below the root; $ALERTS names a folder beside them meanwhile."""
    with deliver_files(root) as deliver, set_environment(ALERTS=str(root / "alerts")):
        yield deliver


def _tell(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def _request(visitor: str, at: datetime, page: str, status: int) -> dict[str, Any]:
    return {"visitor": visitor, "at": _tell(at), "page": page, "status": status}


def _visit(rng: random.Random, start: datetime) -> Iterator[dict]:
    """Some pages one after the other; one visit in twelve ends where the payment fails."""
    visitor = f"v-{rng.randrange(60):02}"
    at = start + timedelta(seconds=rng.randrange(int(SPAN.total_seconds())))
    for _ in range(rng.randint(1, 9)):
        yield _request(visitor, at, rng.choice(_PAGES), 404 if rng.random() < 0.04 else 200)
        at += timedelta(seconds=rng.randint(3, 600))
    if rng.random() < 1 / 12:
        for _ in range(rng.randint(3, 8)):
            yield _request(visitor, at, "/pay", 502)
            at += timedelta(seconds=rng.randint(3, 30))


def _robot(start: datetime) -> Iterator[dict]:
    """Asks for everything, a page in twenty seconds."""
    for number in range(200):
        at = start + timedelta(minutes=30, seconds=20 * number)
        yield _request("v-robot", at, f"/item/{number}", 200)


def _is_held(rng: random.Random, row: dict, start: datetime) -> bool:
    """Whether a request comes with the next landing: of the last ten minutes many do, of the half
    hour before them one in thirty, and of the rest a few."""
    left = start + SPAN - datetime.fromisoformat(row["at"])
    often = 0.3 if left < timedelta(minutes=9) else 1 / 30 if left < _EDGE else 0.005
    return rng.random() < often


def _odd_rows(rng: random.Random, start: datetime, number: int) -> list[dict]:
    """Requests that are refused: without a visitor, of no page, with no status, from 2099."""
    at = start + timedelta(minutes=rng.randrange(60))
    row = _request("v-00", at, "/", 200)
    broken: list[dict] = [{"visitor": None}, {"page": "favicon.ico"}, {"status": 0}]
    return [row | odd for odd in [*broken, {"at": f"2099-12-31T23:59:{number:02}Z"}]]
