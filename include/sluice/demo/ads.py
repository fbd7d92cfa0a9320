"""Seeded impressions and clicks: the same seed gives the same bytes.

Three landings of six hours each, impressions and clicks in files of their own. What advertisers get
is in them: clicks that come with the next landing, some of them behind the watermark by then, two
clicks of one impression, copies, clicks without an impression or before it, programs that click
within a second, lines that broke, and rows that break a rule.
"""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from .landing import Landing, pack

START = datetime(2025, 6, 1, tzinfo=UTC)
LANDINGS = 3
SPAN = timedelta(hours=6)
ADS = ("bicycle", "coffee", "shoes", "umbrella")


def generate_landings(seed: int = 7, impressions: int = 1200) -> Iterator[Landing]:
    """What each six hours bring. Args: impressions: of a landing."""
    rng = random.Random(seed)  # noqa: S311 (made to be repeatable, not secret)
    delayed: list[dict] = []
    for number in range(LANDINGS):
        start = START + number * SPAN
        shown = [_impression(rng, f"i-{number}-{n:05}", start) for n in range(impressions)]
        clicks = [click for row in shown for click in _clicks(rng, row)]
        edge = f"{start + SPAN - timedelta(minutes=20):%Y-%m-%dT%H:%M:%SZ}"
        # The end of a landing is not yet there; of the rest a few were held up on their way.
        held = {row["impression_id"] for row in shown if rng.random() < 0.02}
        late = [c for c in clicks if c["clicked_at"] > edge or c["impression_id"] in held]
        clicks = [click for click in clicks if click not in late] + delayed
        delayed = late
        files = {"impressions": _lines(rng, shown), "clicks": _lines(rng, clicks)}
        yield Landing(
            f"{start:%Y-%m-%d %H:%M} to {start + SPAN:%H:%M}",
            {
                f"ads/{name}/{start:%Y%m%d%H}-{part}.jsonl.gz": pack(".gz", "".join(lines[part::2]))
                for name, lines in files.items()
                for part in range(2)
            },
        )


def _impression(rng: random.Random, name: str, start: datetime) -> dict:
    at = start + timedelta(seconds=rng.randrange(int(SPAN.total_seconds())))
    row: dict[str, Any] = {
        "impression_id": name,
        "ad": rng.choice(ADS),
        "campaign": f"c-{rng.randrange(5)}",
        "shown_at": f"{at:%Y-%m-%dT%H:%M:%SZ}",
        "price": rng.randint(1, 300) / 100,
    }
    chance = rng.random()
    if chance < 0.004:
        row["ad"] = None
    elif chance < 0.008:
        row["price"] *= -1
    elif chance < 0.012:
        row["price"] = 9.99
    return row


def _clicks(rng: random.Random, row: dict) -> list[dict]:
    """What followed an impression: mostly nothing, often a click, now and then two."""
    if rng.random() > 0.3:
        return []
    shown = datetime.fromisoformat(row["shown_at"])
    seconds = rng.choice((rng.randrange(5, 1800), rng.randrange(5, 1800), rng.randrange(5, 5400)))
    chance = rng.random()
    if chance < 0.02:
        seconds = 0  # no person is as fast
    elif chance < 0.04:
        seconds = -30  # the clocks of two machines
    click = {
        "click_id": f"k{row['impression_id']}",
        "impression_id": row["impression_id"]
        if rng.random() > 0.01
        else f"x{row['impression_id']}",
        "clicked_at": f"{shown + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}",
        "country": rng.choice(("DE", "FR", "GB", "US")) if rng.random() > 0.01 else "Germany",
    }
    if rng.random() > 0.03 or click["impression_id"] != row["impression_id"]:
        return [click]
    again = f"{shown + timedelta(seconds=seconds + 2):%Y-%m-%dT%H:%M:%SZ}"
    return [click, click | {"click_id": f"{click['click_id']}-2", "clicked_at": again}]


def _lines(rng: random.Random, rows: list[dict]) -> list[str]:
    """Rows as lines, out of order, with copies and two lines that broke."""
    lines = [json.dumps(row) + "\n" for row in rows]
    lines += rng.sample(lines, len(lines) // 50)
    lines += [lines[0][:30] + "\n", "-- end of export --\n"]
    rng.shuffle(lines)
    return lines
