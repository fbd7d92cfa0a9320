"""Visits by custom state: a visitor's requests wait until a timer says that nothing more comes."""

from itertools import groupby

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

GAP = 30 * 60_000  # milliseconds
KEPT = "ms bigint, page string, status int"
MADE = """visitor string, began bigint, ended bigint, requests bigint, pages bigint, failed bigint,
    first_page string, last_page string, failed_in_a_row bigint"""


def split(requests):
    """Requests in order, parted where no less than the gap lies between two."""
    visits = []
    for request in sorted(requests):
        if not visits or request[0] - visits[-1][-1][0] >= GAP:
            visits.append([])
        visits[-1].append(request)
    return visits


def describe(visitor, visit):
    """A visit as a row."""
    pages = [page for _, page, _ in visit]
    failures = [status >= 400 for _, _, status in visit]
    runs = [len(list(run)) for failed, run in groupby(failures) if failed]
    return Row(
        visitor=visitor,
        began=visit[0][0],
        ended=visit[-1][0],
        requests=len(visit),
        pages=len(set(pages)),
        failed=sum(failures),
        first_page=pages[0],
        last_page=pages[-1],
        failed_in_a_row=max(runs, default=0),
    )


class Visits(StatefulProcessor):
    """Keeps the requests of the visits of a visitor that are not over."""

    def init(self, handle):
        self.handle = handle
        self.requests = handle.getListState("requests", KEPT)

    def handleInputRows(self, key, rows, timerValues):
        came = [(row.ms, row.page, row.status) for row in rows]
        self.requests.appendList(came)
        # Nothing is over before the gap behind the oldest of them; the timer then looks again.
        self.handle.registerTimer(min(came)[0] + GAP)
        return iter([])

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        watermark, still_open = timerValues.getCurrentWatermarkInMs(), []
        for visit in split(self.requests.get()):
            if visit[-1][0] + GAP <= watermark:
                yield describe(key[0], visit)
            else:
                still_open.append(visit)
        self.requests.clear()
        if still_open:
            self.requests.put([request for visit in still_open for request in visit])
            self.handle.registerTimer(still_open[0][-1][0] + GAP)

    def close(self):
        pass


def find_visits(events: DataFrame) -> DataFrame:
    """Each visit once, when its time and the gap are behind the watermark."""
    requests = events.select("visitor", "at", F.unix_millis("at").alias("ms"), "page", "status")
    visits = requests.groupBy("visitor").transformWithState(Visits(), MADE, "Append", "EventTime")
    times = {name: F.timestamp_millis(name) for name in ("began", "ended")}
    return visits.withColumns(times).withColumn("alert", F.col("failed_in_a_row") >= 5)
