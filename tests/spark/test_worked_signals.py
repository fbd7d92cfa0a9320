"""The worked pipeline `signals` against plain Python: after each run, not only after the last."""

import gzip
import json
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import NamedTuple

import pytest
from sluice.demo.signals import DEVICES, generate_landings

from tests.spark.worked import drive

DELAY = timedelta(minutes=30)
TEN, TWENTY = timedelta(minutes=10), timedelta(minutes=20)
RUNS = range(3)
Group = tuple[str, datetime]


class Reading(NamedTuple):
    """What a sensor said, in Celsius; `at` without a zone, as a test's session gives it."""

    device: str
    at: datetime
    unit: str
    celsius: float

    @property
    def reasons(self) -> list[str]:
        """Why it is refused."""
        checks = {
            "future_time": self.at.year > 2090,
            "device_known": self.device not in DEVICES,
            "unit_known": self.unit not in ("C", "F"),
            "within_range": not -40 <= self.celsius <= 85,
        }
        return [name for name, failed in checks.items() if failed]


def read_landing(files: dict[str, bytes]) -> list[Reading]:
    """The readings of some files, copies among them."""
    readings = []
    for line in "".join(gzip.decompress(data).decode() for data in files.values()).splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        value, at = row["value"], datetime.fromisoformat(row["at"]).replace(tzinfo=None)
        celsius = (value - 32) / 1.8 if row["unit"] == "F" else value
        readings.append(Reading(row["device"], at, row["unit"], celsius))
    return readings


class Oracle:
    """What the tables hold, landing by landing. `new`: readings that came for the first time and
    are none to refuse; `watermarks`: before each landing, and behind the last."""

    def __init__(self) -> None:
        self.new: list[list[Reading]] = []
        self.refused: Counter[str] = Counter()
        self.copies: list[int] = []
        self.watermarks = [datetime.min]
        seen: set[Reading] = set()
        for landing in generate_landings():
            came = read_landing(landing.files)
            first = set(came) - seen
            seen |= first
            self.copies.append(len(came) - len(first))
            self.refused += Counter(reason for row in first for reason in row.reasons)
            self.new.append([row for row in first if not row.reasons])
            newest = max(row.at for row in self.new[-1]) - DELAY
            self.watermarks.append(max(newest, self.watermarks[-1]))

    def groups(self, length: timedelta, run: int) -> tuple[dict[Group, list[float]], set[Group]]:
        """The windows after a run with the readings that were not late, and those of the run for
        which some were. A reading is late for a window that was closed when it came."""
        groups: dict[Group, list[float]] = defaultdict(list)
        for number in range(run + 1):
            late = set()
            for row in self.new[number]:
                for began in windows_of(row.at, length):
                    if began + length <= self.watermarks[number]:
                        late.add((row.device, began))
                    else:
                        groups[row.device, began].append(row.celsius)
        return groups, late

    def closed(self, length: timedelta, run: int) -> dict[Group, list[float]]:
        """Those of the windows that the watermark has passed."""
        past = self.watermarks[run + 1]
        groups, _ = self.groups(length, run)
        return {key: values for key, values in groups.items() if key[1] + length <= past}


def windows_of(at: datetime, length: timedelta) -> list[datetime]:
    """Begins of the windows of that length, one every ten minutes, that a time is in."""
    newest = at.replace(minute=at.minute // 10 * 10, second=0, microsecond=0)
    return [newest - number * TEN for number in range(length // TEN)]


def summed(groups: dict[Group, list[float]]) -> Counter:
    """(device, begin, readings, highest) of each group."""
    return Counter((*key, len(values), max(values)) for key, values in groups.items())


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture(scope="module")
def driven(spark, tmp_path_factory):
    return drive(spark, "signals", tmp_path_factory.mktemp("signals"))


GROUPS = ("device", "began", "readings", "highest")


def test_each_reading_is_in_its_table_once_in_celsius_and_each_refused_one_has_its_reason(
    driven, oracle
):
    kept = [row for rows in oracle.new for row in rows]
    assert driven.rows("readings", "device", "at", "unit", "celsius") == Counter(map(tuple, kept))
    assert driven.reasons("readings") == oracle.refused + Counter(malformed=3)
    assert [counts.duplicate for counts in driven.counts("readings")] == oracle.copies
    assert oracle.refused.keys() == {"future_time", "device_known", "unit_known", "within_range"}


@pytest.mark.parametrize("run", RUNS)
def test_in_update_mode_the_table_is_the_query_over_all_readings_that_were_not_late(
    driven, oracle, run
):
    groups, _ = oracle.groups(TEN, run)
    assert driven.rows("live", *GROUPS, run=run) == summed(groups)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(("table", "length"), [("tumbling", TEN), ("sliding", TWENTY)])
def test_in_append_mode_the_table_is_that_query_up_to_the_watermark(
    driven, oracle, table, length, run
):
    closed = oracle.closed(length, run)
    assert len(closed) > 60
    assert driven.rows(table, *GROUPS, run=run) == summed(closed)


def test_what_update_has_and_append_lacks_are_the_groups_that_are_still_open(driven, oracle):
    live, tumbling = (driven.rows(table, *GROUPS, "average") for table in ("live", "tumbling"))
    assert not tumbling - live
    assert {row[1] + TEN for row in live - tumbling} == {
        datetime(2025, 6, 1, 8, 30) + number * TEN for number in range(4)
    }
    groups, _ = oracle.groups(TEN, RUNS[-1])
    for device, began, _, _, average in live:
        values = groups[device, began]
        assert average == pytest.approx(sum(values) / len(values), abs=0.0051)


def test_late_groups_are_those_whose_window_was_closed_when_a_reading_of_them_came(driven, oracle):
    for step, length in (("tumbling", TEN), ("live", TEN), ("sliding", TWENTY)):
        late = [len(oracle.groups(length, run)[1]) for run in RUNS]
        assert [counts.late for counts in driven.counts(step)] == late
        assert late[0] == 0 and late[1] > 0 and late[2] > 0
    # Some readings of the second landing are behind the watermark, and in time all the same.
    groups, late = oracle.groups(TEN, 1)
    behind = [row for row in oracle.new[1] if row.at <= oracle.watermarks[1]]
    assert any((row.device, windows_of(row.at, TEN)[0]) in groups.keys() - late for row in behind)
    assert {"within_range", "not_hot", "enough_readings"} <= driven.failed(1)


def test_the_page_quotes_the_report_of_a_run(driven):
    assert driven.is_on_its_page
