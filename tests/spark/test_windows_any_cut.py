"""Windows and joins in append mode: what random runs write, however the backlog was cut, whichever
input was idle and wherever a run died, is what the same SQL gives over all of the rows.

By default one history for all kinds over one input, one for those over two, and one for three: a
query that puts them one below the other, without some that others stand for (`SLUICE_LONG=1` has
them all). `SLUICE_EXAMPLES=20` runs as many of each kind alone.
"""

import os
import random
from collections import Counter

import pytest
from sluice.spec import load_pipeline
from sluice.streaming import tally as tally_module
from sluice.streaming.replay import verify_by_replay

from tests.long_runs import LONG
from tests.spark.several import Ads, moment

pytestmark = pytest.mark.usefixtures("two_partitions")

EXAMPLES = range(int(os.environ.get("SLUICE_EXAMPLES", "0")))
ROW = {"id": "string", "n": "bigint", "gap": "string", "at": "timestamp"}
LAST = 100_000
RANGE = "b.at BETWEEN a.at AND a.at + INTERVAL 30 MINUTES"
JOIN = f"SELECT a.id, a.at, a.n, b.n AS m FROM a {{0}} JOIN b ON a.id = b.id AND {RANGE}"
HOURS = "(SELECT id, n, window(at, '1 hour') AS hour FROM {0}) {0}"
BY_HOUR = f"FROM {HOURS.format('a')} {{0}} JOIN {HOURS.format('b')} ON a.id = b.id"

ONE = {
    "tumbling": """SELECT window.start AS at, count(*) AS n, sum(n) FILTER (WHERE n > 3) AS some,
        min(n) AS low, max(n) AS high, avg(n) AS mean FROM a GROUP BY window(at, '30 minutes')""",
    "sliding_by_key": """SELECT window.start AS at, id, count(*) AS n,
        approx_count_distinct(n) AS kinds, array_join(array_sort(collect_set(n)), ' ') AS found
        FROM a GROUP BY window(at, '30 minutes', '10 minutes'), id""",
    "session": """SELECT session_window.start AS at, session_window.end AS until, id, count(*) AS n
        FROM a GROUP BY session_window(at, '7 minutes'), id""",
    "session_dynamic": """SELECT session_window.start AS at, session_window.end AS until, id,
        sum(n) AS n FROM a GROUP BY session_window(at, gap), id""",
    "chained": """SELECT window(window_time(part), '1 hour').start AS at, max(n) AS n FROM
        (SELECT window AS part, id, count(*) AS n FROM a GROUP BY window(at, '10 minutes'), id)
        GROUP BY window(window_time(part), '1 hour')""",
    "distinct_then_window": """SELECT window.start AS at, count(*) AS n FROM
        (SELECT DISTINCT id, at FROM a) GROUP BY window(at, '30 minutes')""",
}
TWO = {
    "inner": JOIN.format("INNER"),
    "left": JOIN.format("LEFT"),
    "anti": JOIN.format("LEFT") + " WHERE b.id IS NULL",
    "shifted": """SELECT a.id, coalesce(a.at, b.at) AS at, a.n, b.n AS m
        FROM a FULL JOIN b ON a.id = b.id AND b.at BETWEEN a.at + INTERVAL 5 MINUTES
        AND a.at + INTERVAL 5 MINUTES""",
    "itself": """SELECT x.id, x.at, y.at AS later FROM a x JOIN a y
        ON x.id = y.id AND y.at BETWEEN x.at AND x.at + INTERVAL 9 MINUTES
        UNION ALL SELECT id, at, at FROM b""",
    "right": "SELECT b.id, b.at, a.n, b.n AS m FROM a RIGHT JOIN b ON a.id = b.id AND " + RANGE,
    "full": "SELECT coalesce(a.at, b.at) AS at, a.id, a.n, b.n AS m FROM a FULL JOIN b "
    "ON a.id = b.id AND " + RANGE,
    "semi": f"SELECT a.id, a.at, a.n FROM a LEFT SEMI JOIN b ON a.id = b.id AND {RANGE}",
    "full_by_window": "SELECT coalesce(a.hour, b.hour).start AS at, a.id, a.n, b.n AS m "
    + BY_HOUR.format("FULL")
    + " AND a.hour = b.hour",
    "left_by_time": "SELECT a.id, a.at, a.n, b.n AS m FROM a LEFT JOIN b "
    "ON a.id = b.id AND a.at = b.at",
    "join_then_window": f"""SELECT window.start AS at, count(*) AS n, count(m) AS met FROM
        ({JOIN.format("LEFT")}) GROUP BY window(at, '30 minutes')""",
    "window_then_join": """SELECT x.hour.start AS at, x.id, x.n, y.n AS m FROM
        (SELECT window AS hour, id, count(*) AS n FROM a GROUP BY window(at, '30 minutes'), id) x
        LEFT JOIN
        (SELECT window AS hour, id, count(*) AS n FROM b GROUP BY window(at, '30 minutes'), id) y
        ON x.id = y.id AND x.hour = y.hour""",
    "union_then_window": """SELECT window.start AS at, count(*) AS n FROM
        (SELECT at FROM a UNION ALL SELECT at FROM b) GROUP BY window(at, '30 minutes')""",
}
THREE = {
    "three": f"""SELECT j.id, j.at, j.n, j.m, c.n AS o FROM ({JOIN.format("LEFT")}) j LEFT JOIN c
        ON j.id = c.id AND c.at BETWEEN j.at AND j.at + INTERVAL 30 MINUTES""",
}
NAMES = {"one": "a", "two": "ab", "three": "abc"}
KINDS = {"one": ONE, "two": TWO, "three": THREE}
ALONE = [(many, kind) for many, kinds in KINDS.items() for kind in kinds]
FURTHER = {"inner", "left", "right", "left_by_time", "join_then_window"}
"""Joins whose rows `anti`, `full` and `full_by_window` have as well, and a window behind a join,
where `window_then_join` and `chained` have each behind the other."""


def put_below(kinds: dict[str, str]) -> str:
    """One query of several, each row with the kind that it is of."""
    each = "SELECT '{0}' AS kind, at, to_json(struct(*)) AS made FROM ({1})"
    return " UNION ALL ".join(each.format(kind, sql) for kind, sql in kinds.items())


def make_row(chance: random.Random, minutes: float) -> dict:
    at = moment(round(minutes))  # whole minutes, so that times are equal and rows come again
    gap = chance.choice(["3 minutes", "9 minutes"])
    return {"id": str(chance.randint(1, 4)), "n": chance.randint(1, 5), "gap": gap, "at": at}


def feed(ads: Ads, chance: random.Random, clock: dict[str, float]) -> None:
    """New rows of some of the inputs, at most eight minutes back: the watermark waits for ten."""
    for name in chance.sample(sorted(clock), chance.randint(1, len(clock))):
        rows = []
        for _ in range(chance.randint(1, 9)):
            clock[name] = max(clock[name], min(clock.values())) + chance.random() * 12
            rows.append(make_row(chance, clock[name] - chance.random() * 8))
        ads.land(name, *rows)


def without_last(rows: Counter) -> Counter:
    """The rows in which nobody's last row had a part."""
    return Counter({row: n for row, n in rows.items() if row[1] is None or row[1].month == 1})


def check_history(spark, ads: Ads, chance: random.Random, monkeypatch) -> None:
    """Runs that die now and then, of inputs that are idle now and then, and one that closes all."""
    clock, note = dict.fromkeys(ads.schemas, 0.0), tally_module.note_batch

    def die_now_and_then(*args):
        note(*args)
        if chance.random() < 0.3:
            raise OSError("the machine is gone")

    for _ in range(3):
        feed(ads, chance, clock)
        with monkeypatch.context() as patched:
            patched.setattr(tally_module, "note_batch", die_now_and_then)
            ads.run()
    report = ads.run()
    assert report.error is None
    check_verified(spark, ads)
    for name in ads.schemas:
        ads.land(name, make_row(chance, LAST))
    report = ads.run()
    assert (report.error, report.counts.late) == (None, 0)
    columns = ("kind", "at", "made")
    found = without_last(ads.rows(spark, *columns))
    assert found == without_last(ads.expected(spark, *columns))
    assert found


def check_verified(spark, ads: Ads) -> None:
    """`sluice verify` says of the table what is true of it, up to the watermark that it has come
    to."""
    pipeline = load_pipeline(ads.folder / "ads.yaml")
    (step,) = pipeline.steps
    found = list(verify_by_replay(spark, pipeline, step, pipeline.paths(str(ads.folder / "root"))))
    assert all(one.equal for one in found), found
    assert found


def make_streams(folder, chance: random.Random, many: str, kinds: dict[str, str]) -> Ads:
    asked = {}
    for name in NAMES[many]:
        files = {"kind": "files", "path": str(folder / name), "format": "json", "schema": ROW}
        asked[name] = {"source": files | {"max_files_per_batch": chance.choice([1, 100])}}
    schemas = dict.fromkeys(NAMES[many], ROW)
    return Ads(folder, put_below(kinds), asked=asked, schemas=schemas)


@pytest.mark.parametrize("many", KINDS)
def test_any_cut_equals_one_query(spark, tmp_path, monkeypatch, many):
    chance = random.Random(many)
    kinds = {name: sql for name, sql in KINDS[many].items() if LONG or name not in FURTHER}
    check_history(spark, make_streams(tmp_path, chance, many, kinds), chance, monkeypatch)


@pytest.mark.parametrize("seed", EXAMPLES)
@pytest.mark.parametrize(("many", "kind"), ALONE)
def test_any_history_equals_one_query(spark, tmp_path, monkeypatch, many, kind, seed):
    chance, sql = random.Random(f"{kind} {seed}"), KINDS[many][kind]
    check_history(spark, make_streams(tmp_path, chance, many, {kind: sql}), chance, monkeypatch)
