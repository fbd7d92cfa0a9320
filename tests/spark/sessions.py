"""Sessions of visitors, gathered by a state of the user's own: each way in which Spark lets a user
write it, a pipeline around it, and what plain Python says the sessions are."""

import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GAP_MS = 30 * 60_000
COLUMNS = ("visitor", "nth", "hits", "began", "known")
"""The session's visitor, its number among theirs, its hits, its first moment in epoch milliseconds,
and how many pages the visitor had seen by its end."""

COMMON = '''
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

GAP = 30 * 60_000
MADE = "visitor string, nth bigint, hits bigint, began bigint, known bigint"


def split(hits):
    """Hits in order of time, parted where more than the gap lies between two."""
    sessions = []
    for hit in sorted(hits):
        if not sessions or hit[0] - sessions[-1][-1][0] > GAP:
            sessions.append([])
        sessions[-1].append(hit)
    return sessions


class Keeping(StatefulProcessor):
    def init(self, handle):
        self.handle = handle
        self.hits = handle.getListState("hits", "ms bigint, page string")
        self.sessions = handle.getValueState("sessions", "n bigint")
        self.pages = handle.getMapState("pages", "page string", "hits bigint")

    def add(self, hits):
        self.hits.appendList(hits)
        if next(self.handle.listTimers(), None) is None:
            self.handle.registerTimer(max(ms for ms, _ in hits) + GAP)

    def close_until(self, watermark):
        """The sessions that no hit can join any more; the timer goes to the end of the others."""
        over, open_ = [], []
        for session in split(tuple(hit) for hit in self.hits.get()):
            (over if session[-1][0] + GAP <= watermark else open_).append(session)
        self.hits.clear()
        if open_:
            self.hits.put([hit for session in open_ for hit in session])
            self.handle.registerTimer(open_[-1][-1][0] + GAP)
        nth = self.sessions.get()[0] if self.sessions.exists() else 0
        for nth, session in enumerate(over, nth + 1):
            for _, page in session:
                seen = self.pages.getValue((page,))[0] if self.pages.containsKey((page,)) else 0
                self.pages.updateValue((page,), (seen + 1,))
            yield nth, len(session), session[0][0], sum(1 for _ in self.pages.keys())
        if over:
            self.sessions.update((nth,))

    def close(self):
        pass


def keyed(rows):
    hits = rows.select("visitor", "page", "at", F.unix_millis("at").alias("ms"))
    return hits.withWatermark("at", "10 minutes").groupBy("visitor")
'''
ROWS = (
    COMMON
    + """
from pyspark.sql import Row


class Sessions(Keeping):
    def handleInputRows(self, key, rows, timerValues):
        self.add([(row.ms, row.page) for row in rows])
        return iter([])

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        for made in self.close_until(timerValues.getCurrentWatermarkInMs()):
            yield Row(visitor=key[0], nth=made[0], hits=made[1], began=made[2], known=made[3])


def sessions(rows):
    return keyed(rows).transformWithState(Sessions(), MADE, "Append", "EventTime")
"""
)
PANDAS = (
    COMMON
    + """
import pandas as pd


class Sessions(Keeping):
    def handleInputRows(self, key, rows, timerValues):
        for frame in rows:
            self.add(list(zip(frame.ms.tolist(), frame.page.tolist())))
        return iter([])

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        made = [(key[0], *one) for one in self.close_until(timerValues.getCurrentWatermarkInMs())]
        yield pd.DataFrame(made, columns=["visitor", "nth", "hits", "began", "known"])


def sessions(rows):
    return keyed(rows).transformWithStateInPandas(Sessions(), MADE, "Append", "EventTime")
"""
)
FUNCTION = (
    COMMON
    + '''
import json

import pandas as pd
from pyspark.sql.streaming.state import GroupStateTimeout


def gather(key, frames, state):
    """One text per visitor: its hits, its number of sessions, the pages that it has seen."""
    hits, nth, pages = json.loads(state.get[0]) if state.exists else ([], 0, [])
    watermark, made = state.getCurrentWatermarkMs(), []
    if not state.hasTimedOut:
        for frame in frames:
            hits += zip(frame.ms.tolist(), frame.page.tolist())
    rest = []
    for session in split(tuple(hit) for hit in hits):
        if state.hasTimedOut and session[-1][0] + GAP <= watermark:
            nth, pages = nth + 1, sorted({*pages, *(page for _, page in session)})
            made.append((key[0], nth, len(session), session[0][0], len(pages)))
        else:
            rest += session
    state.update((json.dumps([rest, nth, pages]),))
    if rest:
        first = split(rest)[0]  # of which the others wait: a key has one timeout
        state.setTimeoutTimestamp(max(first[-1][0] + GAP, watermark + 1))
    if made:
        yield pd.DataFrame(made, columns=["visitor", "nth", "hits", "began", "known"])


def sessions(rows):
    timeout = GroupStateTimeout.EventTimeTimeout
    return keyed(rows).applyInPandasWithState(gather, MADE, "kept string", "append", timeout)
'''
)
VARIANTS = {"rows": ROWS, "pandas": PANDAS, "function": FUNCTION}

SOURCE = {
    "kind": "files",
    "format": "json",
    "schema": {"visitor": "string", "page": "string", "at": "timestamp"},
    "max_files_per_batch": 1,
}
STEP = {"transform": "t.py:sessions", "sink": {"mode": "append"}}

Hit = tuple[str | None, str, float]
"""A visitor, a page, and minutes after noon."""


def line(hit: Hit) -> str:
    """A hit as a record."""
    visitor, page, minutes = hit
    at = (NOON + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")
    return json.dumps({"visitor": visitor, "page": page, "at": at}) + "\n"


def lines(*hits: Hit) -> str:
    """Hits as the content of a file."""
    return "".join(map(line, hits))


def millis(minutes: float) -> int:
    """Minutes after noon as epoch milliseconds."""
    return int((NOON + timedelta(minutes=minutes)).timestamp() * 1000)


def find_sessions(hits: Iterable[Hit]) -> Counter:
    """The sessions of all hits, as plain Python finds them."""
    found: Counter = Counter()
    by_visitor: dict[str | None, list[tuple[int, str]]] = {}
    for visitor, page, minutes in hits:
        by_visitor.setdefault(visitor, []).append((millis(minutes), page))
    for visitor, own in by_visitor.items():
        own.sort()
        cuts = [i + 1 for i, (a, b) in enumerate(pairwise(own)) if b[0] - a[0] > GAP_MS]
        for nth, (start, end) in enumerate(pairwise([0, *cuts, len(own)]), 1):
            known = len({page for _, page in own[:end]})
            found[(visitor, nth, end - start, own[start][0], known)] += 1
    return found
