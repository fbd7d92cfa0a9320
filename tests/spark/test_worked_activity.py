"""The worked pipeline `activity` against plain Python, which splits visits in two ways as well: as
a session window takes what is late, and as custom state does."""

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

import pytest
from sluice.demo.activity import generate_landings

from tests.spark.worked import drive

GAP = timedelta(minutes=30)
DELAY = timedelta(minutes=10)


class Request(NamedTuple):
    """What a visitor asked for; `at` without a zone, as a test's session gives it."""

    visitor: str | None
    at: datetime
    page: str
    status: int

    @property
    def reasons(self) -> list[str]:
        """Why it is refused."""
        checks = {
            "null_key": self.visitor is None,
            "future_time": self.at.year > 2090,
            "a_page": not self.page.startswith("/"),
            "http_status": not 100 <= self.status <= 599,
        }
        return [name for name, failed in checks.items() if failed]


Visit = list[Request]


def read_landing(files: dict[str, bytes]) -> list[Request]:
    """The requests of some files, copies among them."""
    found = []
    for line in "".join(gzip.decompress(data).decode() for data in files.values()).splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        at = datetime.fromisoformat(row["at"]).replace(tzinfo=None)
        found.append(Request(row["visitor"], at, row["page"], row["status"]))
    return found


def split(requests: list[Request]) -> list[Visit]:
    """Requests of a visitor, parted at each gap; those of one second by what they say."""
    visits: list[Visit] = []
    for request in sorted(requests):
        if not visits or request.at - visits[-1][-1].at >= GAP:
            visits.append([])
        visits[-1].append(request)
    return visits


class Oracle:
    """Landing by landing, which requests are new and not to refuse, and the watermark before each
    landing and behind the last."""

    def __init__(self) -> None:
        self.new: list[list[Request]] = []
        self.refused: Counter[str] = Counter()
        self.copies: list[int] = []
        self.watermarks = [datetime.min]
        seen: set[Request] = set()
        for landing in generate_landings():
            came = read_landing(landing.files)
            first = set(came) - seen
            seen |= first
            self.copies.append(len(came) - len(first))
            self.refused += Counter(reason for row in first for reason in row.reasons)
            self.new.append([row for row in first if not row.reasons])
            newest = max(row.at for row in self.new[-1]) - DELAY
            self.watermarks.append(max(newest, self.watermarks[-1]))

    def follow(self, is_late: Callable[[datetime, datetime], bool]) -> tuple[list[Visit], list]:
        """The visits that are over after the last landing, and of each landing what was late."""
        waiting: dict[str, list[Request]] = defaultdict(list)
        over, late = [], []
        for number, rows in enumerate(self.new):
            late.append([row for row in rows if is_late(row.at, self.watermarks[number])])
            for row in rows:
                if row not in late[-1]:
                    waiting[row.visitor].append(row)
            for visitor, requests in waiting.items():
                visits = split(requests)
                closed = [v for v in visits if v[-1].at + GAP <= self.watermarks[number + 1]]
                over += closed
                waiting[visitor] = [row for visit in visits if visit not in closed for row in visit]
        return over, late

    def of_windows(self) -> tuple[list[Visit], list]:
        """To a session window a request is late when the session of it alone would be over."""
        return self.follow(lambda at, watermark: at + GAP <= watermark)

    def of_custom_state(self) -> tuple[list[Visit], list]:
        """To custom state a request is late when its time is past."""
        return self.follow(lambda at, watermark: at <= watermark)

    @property
    def between(self) -> set[str]:
        """Visitors with a request that one of the two took as late, and the other did not."""
        pairs = zip(self.of_windows()[1], self.of_custom_state()[1], strict=True)
        return {row.visitor for one, other in pairs for row in set(other) - set(one)}


def count(visit: Visit) -> tuple:
    """A visit as both tables tell it."""
    failed = sum(row.status >= 400 for row in visit)
    pages = len({row.page for row in visit})
    return (visit[0].visitor, visit[0].at, visit[-1].at, len(visit), pages, failed)


def failed_in_a_row(visit: Visit) -> int:
    """The longest run of requests that failed."""
    text = "".join("x" if row.status >= 400 else " " for row in visit)
    return max(map(len, text.split()), default=0)


COUNTED = ("visitor", "began", "ended", "requests", "pages", "failed")


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture(scope="module")
def driven(spark, tmp_path_factory):
    return drive(spark, "activity", tmp_path_factory.mktemp("activity"))


def test_each_request_is_in_its_table_once_and_each_refused_one_has_its_reason(driven, oracle):
    kept = [row for rows in oracle.new for row in rows]
    assert driven.rows("events", "visitor", "at", "page", "status") == Counter(map(tuple, kept))
    assert driven.reasons("events") == oracle.refused + Counter(malformed=3)
    assert [counts.duplicate for counts in driven.counts("events")] == oracle.copies
    assert oracle.refused.keys() == {"null_key", "future_time", "a_page", "http_status"}


def test_a_session_window_has_each_visit_that_is_over_and_the_robot_is_refused(driven, oracle):
    over, late = oracle.of_windows()
    kept = [visit for visit in over if len(visit) <= 150]
    assert len(kept) > 200
    assert driven.rows("sessions", *COUNTED) == Counter(map(count, kept))
    assert driven.reasons("sessions") == {"no_robot": len(over) - len(kept)} == {"no_robot": 1}
    moments = [len({(row.visitor, row.at) for row in rows}) for rows in late]
    assert [counts.late for counts in driven.counts("sessions")] == moments


def test_custom_state_has_each_visit_that_is_over_with_what_came_after_what(driven, oracle):
    over, late = oracle.of_custom_state()
    kept = [visit for visit in over if len(visit) <= 150]
    told = ("first_page", "last_page", "failed_in_a_row")
    assert driven.rows("visits", *COUNTED, *told) == Counter(
        (*count(visit), visit[0].page, visit[-1].page, failed_in_a_row(visit)) for visit in kept
    )
    assert driven.reasons("visits") == {"no_robot": len(over) - len(kept)} == {"no_robot": 1}
    assert [counts.late for counts in driven.counts("visits")] == list(map(len, late))
    assert late[1] and late[2]


def test_both_tables_agree_but_for_visitors_of_whom_one_took_a_request_as_late(driven, oracle):
    sessions, visits = (driven.rows(table, *COUNTED) for table in ("sessions", "visits"))
    differing = {row[0] for row in (sessions - visits) + (visits - sessions)}
    assert differing <= oracle.between
    assert differing and (sessions & visits).total() > 200


def test_an_alert_is_delivered_once_for_each_visit_in_which_five_requests_in_a_row_failed(
    driven, oracle
):
    over, _ = oracle.of_custom_state()
    alerts = Counter(
        (visit[0].visitor, len(visit), failed_in_a_row(visit))
        for visit in over
        if failed_in_a_row(visit) >= 5
    )
    files = sorted((driven.root / "alerts").glob("*"))
    found = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    keys = ("visitor", "requests", "failed_in_a_row")
    assert Counter(tuple(row[key] for key in keys) for row in found) == alerts
    assert alerts.total() > 3
    assert {"no_robot", "few_failures", "servers_answer"} <= driven.failed(1)


def test_the_page_quotes_the_report_of_a_run(driven):
    assert driven.is_on_its_page
