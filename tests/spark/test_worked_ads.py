"""The worked pipeline `ads` against plain Python that knows what a watermark is."""

import gzip
import json
from collections import Counter
from datetime import datetime, timedelta

import pytest
from sluice.demo.ads import generate_landings

from tests.spark.worked import drive

HOUR = timedelta(hours=1)
DELAY = timedelta(minutes=30)


def read_rows(files: dict[str, bytes], name: str) -> list[dict]:
    """The rows of some files that are JSON, with their times."""
    rows = []
    for file, content in files.items():
        for line in gzip.decompress(content).decode().splitlines() if f"/{name}/" in file else ():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            rows.append(
                row | {"at": datetime.fromisoformat(row.get("shown_at") or row["clicked_at"])}
            )
    return rows


class Oracle:
    """What the tables hold, landing by landing."""

    def __init__(self) -> None:
        self.shown: dict[str, dict] = {}
        self.clicked: dict[str, dict] = {}
        self.in_time: list[dict] = []
        self.matched: dict[str, dict] = {}
        self.late: list[int] = []
        self.refused: set[str] = set()
        self.watermark: datetime | None = None

    def take(self, files: dict[str, bytes]) -> None:
        """A landing: each row once, of several clicks the first, and what came in time."""
        new = [row for row in read_rows(files, "impressions") if self._is_new(row, self.shown)]
        new = list({row["impression_id"]: row for row in new}.values())
        self.shown |= {row["impression_id"]: row for row in new if row["ad"] and row["price"] >= 0}
        new = [row for row in new if row["impression_id"] in self.shown]
        clicks: dict[str, dict] = {}
        for row in sorted(read_rows(files, "clicks"), key=lambda row: row["at"]):
            if len(row["country"]) == 2 and self._is_new(row, self.clicked):
                clicks.setdefault(row["impression_id"], row)
        self.clicked |= clicks
        late = [row for row in [*new, *clicks.values()] if self._is_late(row)]
        self.late.append(len(late))
        self.in_time += [row for row in new if row not in late]
        self.matched |= {name: row for name, row in clicks.items() if row not in late}
        newest = min(max(row["at"] for row in each.values()) for each in (self.shown, self.clicked))
        self.watermark = newest - DELAY

    def _is_new(self, row: dict, known: dict[str, dict]) -> bool:
        return row["impression_id"] not in known

    def _is_late(self, row: dict) -> bool:
        return self.watermark is not None and row["at"] <= self.watermark

    def click_of(self, row: dict) -> dict | None:
        """The click that meets an impression within the hour."""
        click = self.matched.get(row["impression_id"])
        return click if click and row["at"] <= click["at"] <= row["at"] + HOUR else None

    @property
    def rates(self) -> Counter:
        """(ad, hour, impressions, clicks) of the hours that are over: an impression waits an hour
        for its click before it is counted as one without."""
        seen, clicks = Counter(), Counter()
        for row in self.in_time:
            hour = row["at"].replace(minute=0, second=0)
            if hour + HOUR <= self.watermark - HOUR:
                seen[row["ad"], hour] += 1
                clicks[row["ad"], hour] += self.click_of(row) is not None
        return Counter((ad, hour, n, clicks[ad, hour]) for (ad, hour), n in seen.items())


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    oracle = Oracle()
    for landing in generate_landings():
        oracle.take(landing.files)
    return oracle


@pytest.fixture(scope="module")
def driven(spark, tmp_path_factory):
    return drive(spark, "ads", tmp_path_factory.mktemp("ads"))


def naive(at: datetime) -> datetime:
    """As a test's session gives it."""
    return at.replace(tzinfo=None)


def test_each_impression_and_each_first_click_is_in_its_table_once(driven, oracle):
    assert driven.rows("impressions", "impression_id", "ad", "price") == Counter(
        (name, row["ad"], row["price"]) for name, row in oracle.shown.items()
    )
    assert driven.rows("clicks", "click_id", "impression_id", "clicked_at") == Counter(
        (row["click_id"], name, naive(row["at"])) for name, row in oracle.clicked.items()
    )


def test_clicks_that_met_their_impression_are_conversions_and_those_of_programs_are_refused(
    driven, oracle
):
    met = [(row, click) for row in oracle.in_time if (click := oracle.click_of(row))]
    kept = [(row, click) for row, click in met if click["at"] > row["at"]]
    assert driven.rows("conversions", "impression_id", "ad", "clicked_at") == Counter(
        (row["impression_id"], row["ad"], naive(click["at"])) for row, click in kept
    )
    assert driven.reasons("conversions") == {"clicked_by_a_person": len(met) - len(kept)}


def test_the_rate_of_each_hour_that_is_over_counts_those_who_clicked_and_those_who_did_not(
    driven, oracle
):
    assert len(oracle.rates) > 50
    assert driven.rows("rates", "ad", "hour", "impressions", "clicks") == Counter(
        (ad, naive(hour), seen, clicks) for ad, hour, seen, clicks in oracle.rates
    )


def test_what_came_behind_the_watermark_is_counted_and_the_rest_is_told_as_held(driven, oracle):
    assert oracle.late[1] > 0 and oracle.late[2] > 0
    for step in ("conversions", "rates"):
        assert [counts.late for counts in driven.counts(step)] == oracle.late
    last = driven.reports[-1].steps
    assert [step.name for step in last if step.held] == ["conversions", "rates"]
    assert {"ad_known", "price_not_negative", "country_code"} <= driven.failed(0)
    assert driven.is_on_its_page
