"""A state of the user's own: every record has one fate, timers fire in the run that saw their time
pass, and what cannot be right in runs that stop is refused before a row is read."""

import random
import re
from collections import Counter

import pytest
from sluice.errors import ExitCode
from sluice.report.step_notes import step_notes
from sluice.streaming import tally as tally_module

from tests.long_runs import leave
from tests.spark.factories import Project
from tests.spark.sessions import (
    COLUMNS,
    ROWS,
    SOURCE,
    STEP,
    VARIANTS,
    find_sessions,
    lines,
)
from tests.spark.several import Ads, clicked, shown, without_size

pytestmark = pytest.mark.usefixtures("two_partitions")

LAST = ("last", "/", 100_000.0)
"""A hit so late that all others are over."""


def project(spark, folder, code: str, **step) -> Project:
    (folder / "t.py").write_text(code)
    return Project(spark, folder, SOURCE, STEP | step)


def told(report) -> list[str]:
    (step,) = report.steps
    return [*map(str, step.counts.lines), *map(without_size, step_notes(step))]


@pytest.mark.parametrize("variant", leave(VARIANTS, "pandas"))
def test_a_timer_fires_in_the_run_that_saw_its_time_pass_and_all_is_counted(
    spark, tmp_path, variant
):
    shop = project(spark, tmp_path, VARIANTS[variant])
    first = [("ann", "/", 0), ("ann", "/cart", 5), ("bob", "/", 1), (None, "/", 2)]
    shop.land("1.json", lines(*first) + "no record\n")
    assert told(shop.run()) == [
        "5 read = 1 malformed + 0 filtered + 4 entered",
        "0 made + 1 malformed = 0 written + 1 quarantined + 0 duplicate + 0 late",
        "3 keys are held in state by the step's own function.",
        "3 timers are held in state, due between 2026-01-01 12:31:00 UTC and "
        "2026-01-01 12:35:00 UTC: each fires once the watermark (now 2026-01-01 11:55:00 UTC) has "
        "passed it.",
    ]
    shop.land("2.json", lines(("ann", "/", 60)))
    assert told(shop.run())[:2] == [
        "1 read = 0 malformed + 0 filtered + 1 entered",
        "3 made + 0 malformed = 3 written + 0 quarantined + 0 duplicate + 0 late",
    ]
    assert shop.rows(*COLUMNS) == find_sessions(first)
    assert set(shop.rows("_source")) == {(None,)}
    shop.land("3.json", lines(("ann", "/", 61), ("bob", "/late", 20)))
    assert told(shop.run())[:2] == [
        "2 read = 0 malformed + 0 filtered + 2 entered",
        "1 made + 0 malformed = 0 written + 0 quarantined + 0 duplicate + 1 late",
    ]
    assert shop.run().status == "nothing new"


@pytest.mark.parametrize("variant", leave(["rows", "pandas"], "rows"))
def test_any_cut_with_deaths_gives_the_sessions_of_all_hits(spark, tmp_path, monkeypatch, variant):
    chance, note = random.Random(variant), tally_module.note_batch
    shop, hits, clock = project(spark, tmp_path, VARIANTS[variant]), [], 0.0

    def die_now_and_then(*args):
        note(*args)
        if chance.random() < 0.25:
            raise OSError("the machine is gone")

    monkeypatch.setattr(tally_module, "note_batch", die_now_and_then)
    for number in range(5):
        for part in range(chance.randint(0, 2)):
            new = []
            for _ in range(chance.randint(1, 10)):  # at most five minutes back: never late
                clock += chance.random() * 15
                name = chance.choice(["ann", "bob", "eve", None])
                new.append((name, chance.choice("/abc"), clock - chance.random() * 5))
            hits += new
            shop.land(f"{number}-{part}.json", lines(*new))
        shop.run()
    monkeypatch.setattr(tally_module, "note_batch", note)
    shop.land("last.json", lines(LAST))
    assert shop.run().error is None
    assert sum(report.counts.late for report in shop.reports) == 0
    assert shop.rows(*COLUMNS) == find_sessions(hits)


def test_keys_that_are_null_or_no_number_are_keys_like_others(spark, tmp_path):
    code = ROWS.replace('"visitor", "page"', 'F.expr("double(visitor)").alias("visitor"), "page"')
    code = code.replace("visitor string", "visitor double")
    shop = project(spark, tmp_path, code)
    names = ["NaN", "nan", None, None, "0.0", "-0.0", "Infinity"]
    shop.land("1.json", lines(*[(name, "/", n) for n, name in enumerate(names)]))
    shop.land("2.json", lines(("7", "/", 60)))
    assert shop.run().error is None
    found = Counter(
        {(str(key), hits): n for (key, hits), n in shop.rows("visitor", "hits").items()}
    )
    assert found == Counter([("nan", 2), ("None", 2), ("0.0", 2), ("inf", 1)])


RAISING = {
    "for_rows": ("self.add([", "self.missing([", "AttributeError in handleInputRows (t.py:"),
    "in_a_timer": ("yield Row(", "yield Row(x=1 // 0) if key else Row(", "ZeroDivisionError in"),
}


@pytest.mark.parametrize("case", leave(RAISING, "for_rows"))
def test_a_function_that_raises_is_named_and_the_next_run_is_exact(spark, tmp_path, case):
    old, new, said = RAISING[case]
    shop = project(spark, tmp_path, ROWS)
    hits = [("ann", "/", 0), ("bob", "/", 1), ("ann", "/", 60)]
    shop.land("1.json", lines(*hits[:2]))
    assert shop.run().error is None
    (tmp_path / "t.py").write_text(ROWS.replace(old, new))
    shop.land("2.json", lines(*hits[2:]))
    report = shop.run()
    assert report.exit_code is ExitCode.TERMINAL and said in (report.error or "")
    assert shop.rows(*COLUMNS) == Counter()
    (tmp_path / "t.py").write_text(ROWS)
    assert shop.run().error is None
    assert shop.rows(*COLUMNS) == find_sessions(hits[:2])


def _function(mode: str = "append", timeout: str = "NoTimeout", then: str = "") -> str:
    return (
        "def gather(key, frames, state):\n    yield from frames\n\n\n"
        "def sessions(rows):\n    rows = rows.withWatermark('at', '1 minute')\n"
        "    made = 'visitor string, at timestamp'\n"
        "    def gathered(rows):\n        return rows.groupBy('visitor').applyInPandasWithState("
        f"gather, made, 'n int', '{mode}', '{timeout}')\n"
        f"    return {then or 'gathered(rows)'}\n"
    )


REFUSED = {
    "timers_by_the_clock": (
        ROWS.replace('"EventTime"', '"ProcessingTime"'),
        'timers in processing time go by the clock.*would not end.*timeMode="EventTime"',
    ),
    "times_to_live": (
        ROWS.replace('"n bigint")', '"n bigint", ttlDurationMs=60_000)'),
        "state variable sessions: times to live go by the clock.*ttlDurationMs=60000.*event-time",
    ),
    "times_to_live_beside_a_megabyte_of_the_users_own": (
        ROWS.replace('"n bigint")', '"n bigint", ttlDurationMs=60_000)').replace(
            "Sessions(), MADE", "big(), MADE"
        )
        + "\n\ndef big():\n    import random\n    made = Sessions()\n"
        "    made.model = random.Random(1).randbytes(2_000_000)\n    return made\n",
        "state variable sessions: times to live",
    ),
    "a_timeout_by_the_clock": (
        _function(timeout="ProcessingTimeTimeout"),
        "timers in processing time go by the clock.*GroupStateTimeout.EventTimeTimeout",
    ),
    "event_time_without_a_watermark": (
        ROWS.replace('.withWatermark("at", "10 minutes")', ""),
        "event time has no meaning without a watermark.*withWatermark",
    ),
    "another_output_mode": (
        ROWS.replace('"Append"', '"Update"'),
        "the function says outputMode update, and the step's rows go out in mode append",
    ),
    "another_output_mode_of_a_function": (
        _function("update"),
        'the function says outputMode update.*Write outputMode="append"',
    ),
    "two_functions": (
        _function(then="gathered(gathered(rows))"),
        "Multiple applyInPandasWithState",
    ),
    "event_time_above_a_state_of_its_own": (
        _function(then="gathered(rows).withWatermark('at', '1 hour').dropDuplicates(['at'])"),
        "a watermark is declared above another one",
    ),
    "an_init_that_raises": (
        ROWS.replace("self.handle = handle", "self.handle = handle.handle"),
        "Sessions.init raised AttributeError",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_runs_that_stop_cannot_do_is_refused_before_a_row_is_read(spark, tmp_path, case):
    code, said = REFUSED[case]
    shop = project(spark, tmp_path, code)
    shop.land("1.json", lines(("ann", "/", 0)))
    report = shop.run()
    assert report.exit_code is ExitCode.TERMINAL
    assert re.search(said, report.error or "")
    assert not (tmp_path / "root" / "checkpoints" / "p" / "s" / "spark").exists()


INITIAL = (
    "rows.sparkSession.createDataFrame([('x', 1)], 'visitor string, n int').groupBy('visitor')"
)
CHANGED = {
    "the_time_mode": ('"EventTime"', '"None"', "timeMode EventTime.*timeMode NoTime"),
    "the_key": ('groupBy("visitor")', 'groupBy("page")', "by visitor string.*by page string"),
    "more_keys": ('groupBy("visitor")', 'groupBy("visitor", "page")', "Now: .*page string"),
    "the_watermark": ('"10 minutes"', '"20 minutes"', "watermark of at, 20 minutes"),
    "rows_for_pandas": ("transformWithState(", "transformWithStateInPandas(", "on pandas by"),
    "the_kind_of_a_variable": (
        'getValueState("sessions", ',
        'getListState("sessions", ',
        "sessions holds.*before: value of n bigint; now: list of n bigint",
    ),
    "a_variable_left_out": (
        'self.pages = handle.getMapState("pages", "page string", "hits bigint")',
        "pass",
        r"pages holds.*now: nothing.*handle.deleteIfExists\('pages'\)",
    ),
    "the_key_of_a_map": ('"page string", "hits', '"page bigint", "hits', "the key of a map"),
    "a_field_renamed": ('"ms bigint, page', '"moment bigint, page', "without its old content"),
    "a_field_narrowed": ('"sessions", "n bigint"', '"sessions", "n int"', "n may become wider"),
    "an_initial_state": (
        '"Append", "EventTime"',
        f'"Append", "EventTime", {INITIAL}',
        "initial state is read by the first batch.*Leave it out",
    ),
}


def test_a_state_that_would_not_fit_any_more_is_refused_with_what_was_and_what_is(spark, tmp_path):
    shop = project(spark, tmp_path, ROWS)
    shop.land("1.json", lines(("ann", "/", 0)))
    assert shop.run().error is None
    shop.land("2.json", lines(("ann", "/", 5)))
    for case, (old, new, said) in CHANGED.items():
        assert old in ROWS, case
        (tmp_path / "t.py").write_text(ROWS.replace(old, new))
        report = shop.run()
        assert report.exit_code is ExitCode.TERMINAL, case
        assert re.search(said, report.error or ""), (case, report.error)
        assert "sluice reset p --step s --tables" in report.error, case
    (tmp_path / "t.py").write_text(ROWS.replace("over, open_ = [], []", "open_, over = [], []"))
    shop.land("3.json", lines(("bob", "/", 60)))
    assert shop.run().error is None
    assert shop.rows(*COLUMNS) == find_sessions([("ann", "/", 0), ("ann", "/", 5)])


COUNTS = """
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor


class Counts(StatefulProcessor):
    def init(self, handle):
        {init}

    def handleInputRows(self, key, rows, timerValues):
        n = sum(1 for _ in rows)
        {body}
        yield Row(visitor=key[0], said=said)

    def close(self):
        pass


def sessions(rows):
    made = "visitor string, said string"
    return rows.groupBy("visitor").transformWithState(Counts(), made, "Append", "None")
"""
EVOLVED = [
    ('self.c = handle.getValueState("c", "n int")', "self.c.update((n + 4,)); said = 'begun'"),
    (
        'self.c = handle.getValueState("c", "n int, m int"); '
        'self.l = handle.getListState("l", "x float")',
        "said = str(tuple(self.c.get())); self.c.update((7, 8)); self.l.put([(1.5,)])",
    ),
    (
        'self.c = handle.getValueState("c", "m int, n bigint"); '
        'self.l = handle.getListState("l", "y string, x double")',
        "said = f'{tuple(self.c.get())} {[tuple(x) for x in self.l.get()]}'; "
        "self.c.update((8, 2**40))",
    ),
    (
        'self.c = handle.getValueState("c", "n bigint"); handle.deleteIfExists("l")',
        "said = str(tuple(self.c.get()))",
    ),
    (
        'self.c = handle.getValueState("c", "n bigint"); '
        'self.l = handle.getListState("l", "z string")',
        "said = f'{tuple(self.c.get())} {[tuple(x) for x in self.l.get()]}'",
    ),
]
"""What `init` declares and what the function does with it, from run to run."""
SAID = ["begun", "(5, None)", "(8, 7) [(None, 1.5)]", f"({2**40},)", f"({2**40},) []"]


def test_variables_and_their_fields_come_go_and_widen_and_keep_what_they_hold(spark, tmp_path):
    shop = project(spark, tmp_path, "")
    for run, (init, body) in enumerate(EVOLVED):
        (tmp_path / "t.py").write_text(COUNTS.format(init=init, body=body))
        shop.land(f"{run}.json", lines(("ann", "/", run)))
        report = shop.run()
        assert report.error is None
        assert [(kept.unit, kept.amount) for kept in report.steps[0].held] == [("key", 1)]
    assert shop.rows("said") == Counter((said,) for said in SAID)


BEGUN = COUNTS.format(
    init='self.c = handle.getValueState("c", "n int")',
    body="n += self.c.get()[0] if self.c.exists() else 0; self.c.update((n,)); said = str(n)",
).replace('"None")', f'"None", {INITIAL})')
BEGUN = BEGUN.replace(
    "    def close(",
    "    def handleInitialState(self, key, row, timerValues):\n"
    "        self.c.update((row.n,))\n\n    def close(",
)


def test_an_initial_state_is_taken_once_and_what_it_says_later_changes_nothing(spark, tmp_path):
    shop = project(spark, tmp_path, BEGUN)
    shop.land("1.json", lines(("x", "/", 0), ("ann", "/", 0)))
    assert shop.run().error is None
    (tmp_path / "t.py").write_text(BEGUN.replace("('x', 1)", "('x', 500), ('ann', 500)"))
    shop.land("2.json", lines(("x", "/", 1), ("ann", "/", 1)))
    assert shop.run().error is None
    made = shop.rows("visitor", "said")
    assert made == Counter([("x", "2"), ("ann", "1"), ("x", "3"), ("ann", "2")])


MEETING = (
    ROWS
    + """

def join(impressions, clicks):
    both = impressions.select("id", "at").unionByName(clicks.select("id", "at"))
    hits = both.selectExpr("id AS visitor", "'/' AS page", "at", "unix_millis(at) AS ms")
    return hits.groupBy("visitor").transformWithState(Sessions(), MADE, "Append", "EventTime")
"""
)


def test_rows_of_two_inputs_meet_in_one_state_under_the_watermark_of_both(spark, tmp_path):
    ads = Ads(tmp_path, MEETING, python=True)
    ads.land("impressions", shown(1, 0), shown(2, 50))
    ads.land("clicks", clicked(1, 20))
    assert ads.run().error is None
    assert ads.rows(spark, *COLUMNS) == Counter()
    ads.land("clicks", clicked(3, 300))
    assert ads.run().error is None
    ads.land("impressions", shown(4, 310))
    report = ads.run()
    assert (report.error, report.counts.late) == (None, 0)
    assert ads.rows(spark, *COLUMNS) == find_sessions(
        [("1", "/", 0), ("1", "/", 20), ("2", "/", 50)]
    )


def test_code_below_a_state_of_the_users_own_need_not_pass_the_origin_on(spark, tmp_path):
    code = ROWS.replace(
        'hits = rows.select("visitor", "page", "at", F.unix_millis("at").alias("ms"))',
        "rows = rows.mapInPandas(lambda f: f, 'visitor string, page string, at timestamp')\n"
        '    hits = rows.withColumn("ms", F.unix_millis("at"))',
    )
    shop = project(spark, tmp_path, code)
    shop.land("1.json", lines(("ann", "/", 0)))
    shop.land("2.json", lines(("bob", "/", 60)))
    assert shop.run().error is None
    assert shop.rows(*COLUMNS) == find_sessions([("ann", "/", 0)])
