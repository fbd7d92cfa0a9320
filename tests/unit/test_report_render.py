"""The report as people see it: nothing of the data gets power over terminal or browser, nothing bad
looks good.
"""

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest
from sluice.errors import ExitCode
from sluice.report import (
    BatchReport,
    Counts,
    Outcome,
    RuleResult,
    RunReport,
    StepReport,
    render_html,
    render_text,
)
from sluice.report.counts import FATES
from sluice.report.flow import draw_flow
from sluice.report.history import summarize_run
from sluice.report.units import (
    format_bytes,
    format_percent,
    format_seconds,
    format_watermark,
    printable,
    quote_value,
)

GOLDEN = Path(__file__).parents[1] / "golden"
EVIL = '<img src=x onerror="alert(1)">&\'"\x1b[2J\u202e'
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Tags, attributes and visible text of a page; raises on tags that do not nest."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.words, self.open = [], [], [], []
        self.feed(html)
        assert self.open == []
        self.text = " ".join("".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)


@pytest.fixture
def example() -> RunReport:
    return RunReport.model_validate_json((GOLDEN / "run_report.json").read_bytes())


def make_evil() -> RunReport:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    rule = RuleResult(
        name=EVIL,
        type=EVIL,
        level="table",
        on_fail="stop",
        outcome="failed",
        observed=EVIL,
        message=EVIL,
        samples=[EVIL],
        evaluated=2,
        unexpected=1,
    )
    batch = BatchReport(
        batch_id=0,
        counts=Counts(read=1, entered=1, made=1, written=1),
        event_time_min=moment,
        event_time_max=moment,
    )
    step = StepReport(
        name=EVIL,
        target=EVIL,
        quarantine=EVIL,
        counts=Counts(read=2, entered=2, made=2, written=2),
        batches=[batch, batch],
        rules=[rule],
        versions={EVIL: 1},
        warnings=[EVIL],
        timings={EVIL: 1.0},
        left_for_next_run=True,
    )
    return RunReport(
        pipeline=EVIL,
        run_id=EVIL,
        kind="backfill",
        window=EVIL,
        started=moment,
        ended=moment,
        status="failed",
        exit_code=6,
        error=EVIL,
        steps=[step, step],
        spark={EVIL: EVIL},
    )


def test_every_value_is_escaped_in_the_page(example):
    html = render_html(make_evil())
    page, plain = Page(html), Page(render_html(example))
    assert "<img" not in html and "img" not in page.tags
    assert not set(page.tags) - set(plain.tags) - {"ul", "li", "pre"}
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "\x1b" not in html and "\u202e" not in html
    assert page.text.count("<img src=x onerror=") >= 12


def test_no_value_moves_the_terminal_or_becomes_a_formula(example):
    text = render_text(make_evil())
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", text)
    example.steps[0].rules[0].samples = ["=1+1", "+cmd", "@x", "a\nb"]
    shown = render_text(example)
    assert '"=1+1", "+cmd", "@x", "a\\nb"' in shown
    assert not [
        line for line in shown.splitlines() if line.lstrip().startswith(("=1+1", "+cmd", "@x"))
    ]
    assert '"=1+1"' in Page(render_html(example)).text


def test_the_balance_line_is_what_both_forms_lead_with(example):
    line = "33,460 read = 32,111 written + 223 quarantined + 1,066 duplicate + 0 late + 60 filtered"
    assert example.counts.line == line
    assert line in render_text(example)
    assert line in Page(render_html(example)).text


def test_the_page_needs_no_network_and_no_script(example):
    html = render_html(example)
    assert not re.search(r"https?://|//cdn|\bsrc=|@import|url\(|<script|javascript:", html)
    assert {value for name, value in Page(html).attributes if name == "href"} == {"data:,"}
    assert "default-src 'none'" in html


def test_a_failing_rule_is_visible_before_the_passed_ones(example):
    text, page = render_text(example), Page(render_html(example)).text
    assert re.search(r"FAILED +quarantine +amount_not_negative +203 of 33,361 \(0\.61%\)", text)
    assert '"-3.00"' in text and '"-3.00"' in page
    assert page.index("failed amount_not_negative") < page.index("passed order_id_present")


def test_law_5_a_rule_that_could_not_be_evaluated_is_not_shown_as_passed(example):
    example.steps[0].rules = [
        RuleResult(
            name="mix",
            type="expect_mix",
            level="table",
            on_fail="warn",
            outcome=Outcome.ERROR,
            message="no weights",
        )
    ]
    text, page = render_text(example), Page(render_html(example)).text
    assert "NO VERDICT" in text and "0 of 1 passed" in text and "no weights" in text
    for shown in (" ".join(text.split()), page):
        assert "Every row is accounted for" not in shown
        assert "No rule could be evaluated" in shown and "downstream is held back" in shown
    assert "could not evaluate mix" in page and "0 of 1 passed" in page and "no weights" in page
    assert "passed mix" not in page and "All" not in page
    assert "done, downstream held" in page


def test_an_unbalanced_run_never_looks_fine(example):
    example.steps[0].counts.written -= 3
    text, page = render_text(example), Page(render_html(example)).text
    assert "33,460 read != 32,108 written" in text and "3 rows without a fate" in text
    assert "33,460 read \u2260 32,108 written" in page and "3 rows without a fate" in page
    assert "Every row is accounted for" not in text + page


@pytest.mark.parametrize(
    ("counts", "gap"),
    [
        ({"written": 4, "duplicate": -1}, "duplicate is -1"),
        ({"written": 5}, "2 rows with more than one fate"),
        ({"read": 4, "written": 3}, "1 row read, but neither malformed nor filtered nor entered"),
        ({"read": 1, "written": 3}, "2 rows entered or left out but never read"),
        ({"written": 3, "removed": -7}, "removed is -7"),
    ],
)
def test_a_report_that_does_not_balance_says_so_and_which_number_it_is(example, counts, gap):
    step = example.steps[0]
    step.counts = Counts(**({"read": 3, "entered": 3, "made": 3} | counts))
    for text in (render_text(example), Page(render_html(example)).text):
        said = " ".join(text.split())
        assert f"The report DOES NOT BALANCE: {gap} in orders. Keep the landing files" in said
        assert f"DOES NOT BALANCE: {gap}." in said
        assert "Every row is accounted for" not in said


def test_a_batch_that_does_not_balance_is_named_though_the_sum_does(example):
    first, second, _ = example.steps[0].batches
    first.counts.written, second.counts.written = 13_402, 11_532
    assert example.steps[0].counts.balanced
    for text in (render_text(example), Page(render_html(example)).text):
        said = " ".join(text.split())
        assert (
            "DOES NOT BALANCE: 1 row with more than one fate in batch 3 of orders; "
            "1 row without a fate in batch 4 of orders." in said
        )


def read_titles(html: str) -> list[str]:
    """The columns of the table of batches."""
    return re.findall(r"<th scope=\"col\"[^>]*>([^<]+)</th>", html.split("Table of batches")[1])


EXPLODED = Counts(
    read=1020,
    malformed=10,
    filtered=20,
    entered=990,
    made=1980,
    written=1900,
    quarantined=30,
    duplicate=60,
)


def test_a_transform_that_makes_rows_gets_a_line_of_records_and_one_of_rows(example):
    step = example.steps[0]
    step.counts, step.batches = EXPLODED, [BatchReport(batch_id=7, counts=EXPLODED)]
    text, html = render_text(example), render_html(example)
    for shown in (text, Page(html).text):
        assert "1,020 read = 10 malformed + 20 filtered + 990 entered" in shown
        assert (
            "1,980 made + 10 malformed = 1,900 written + 30 quarantined + 60 duplicate + 0 late"
            in shown
        )
    assert re.search(r"batch +read +made +written +quarantined +duplicate +late +files", text)
    titles = ["Read", "Filtered", "Made", "Written", "Quarantined", "Duplicate", "Late", "Files"]
    assert read_titles(html)[1:9] == titles


def test_what_a_where_left_out_is_a_fate_of_its_own_everywhere(example):
    text, html = render_text(example), render_html(example)
    page = Page(html).text
    assert re.search(r"\n  filtered +60 +0\.18%  █\n", text)
    for shown in (" ".join(text.split()), page):
        assert "60 filtered: the transform's WHERE left them out; they are in no table." in shown
    assert read_titles(html)[5:8] == ["Late", "Filtered", "Files"]
    line = "7,460 read = 7,177 written + 31 quarantined + 192 duplicate + 0 late + 60 filtered"
    assert f"<title>batch 5: {line}</title>" in html
    assert f'aria-label="{example.counts.line}"' in html
    assert html.count('class="ribbon fill-filtered"') == 1


@pytest.mark.parametrize(
    "counts",
    [
        EXPLODED,
        Counts(read=10**6, filtered=10**5, entered=9 * 10**5, made=7, written=7),
        Counts(read=10, filtered=10, made=3, written=3),
        Counts(made=3, written=2, late=1),
        Counts(read=10**9, filtered=1, entered=10**9 - 1, made=10**9 - 1, written=10**9 - 1),
    ],
    ids=["made", "gathered", "only from state", "nothing read", "one line"],
)
def test_the_flow_is_drawn_inside_its_box(counts):
    flow = draw_flow(counts)
    for band in flow.bands:
        heights = re.findall(r",(-?[\d.]+)|V(-?[\d.]+)", band.path)
        assert all(0 <= float(one or other) <= flow.height for one, other in heights)
        assert 0 <= band.x <= band.x + band.width <= 100
    assert {band.fate for band in flow.bands} - {""} == {f for f in FATES if getattr(counts, f)}
    ends = [slot.top for slot in flow.slots] + [flow.height]
    assert [slot.top + slot.height for slot in flow.slots] == pytest.approx(ends[1:])
    assert len(flow.bars) == (2 if counts.read and len(counts.lines) == 2 else 1)


def test_nothing_is_drawn_of_numbers_that_do_not_add_up():
    assert draw_flow(Counts(read=3, entered=3, made=3, written=4, duplicate=-1)) is None
    assert draw_flow(Counts()) is None


def test_rows_that_a_replaced_range_lost_are_told(example):
    example.steps[0].counts.removed = 1200
    for text in (render_text(example), Page(render_html(example)).text):
        assert "1,200 rows of the range were removed, and these came in their place." in " ".join(
            text.split()
        )


def test_a_warning_of_a_batch_is_told_once(example):
    step = example.steps[0]
    sentence = "batch 4 had been begun over another input"
    assert step.batches[1].warnings[0].startswith(sentence) and len(step.warnings) == 2
    for warnings in (step.warnings, step.warnings[:1]):
        step.warnings = warnings
        assert " ".join(render_text(example).split()).count(f"Warning: {sentence}") == 1
        assert Page(render_html(example)).text.count(sentence) == 1


STOP = RuleResult(
    name="few_rows", type="expect_x", level="table", on_fail="stop", outcome=Outcome.FAILED
)


@pytest.mark.parametrize(
    ("written", "error", "sentence", "step"),
    [
        (
            None,
            "stopped by few_rows",
            "A stop rule refused a batch: nothing of it was written, and the checkpoint stayed "
            "where it was; downstream is held back.",
            "the same batch is read once more",
        ),
        (
            4,
            "stopped by few_rows",
            "A stop rule refused a batch: nothing of it was written, and the checkpoint is before "
            "it. 4 rows of earlier batches are written and stay in the table; downstream is held "
            "back.",
            "the same batch is read once more",
        ),
        (
            4,
            None,
            "A stop rule that is judged at the end, on all rows of the run, did not pass: 4 rows "
            "are written and stay in the table; downstream is held back.",
            "The next run reads only what came after them.",
        ),
        (
            0,
            None,
            "did not pass: no row was written; downstream is held back.",
            "The next run reads only what came after them.",
        ),
    ],
    ids=["first batch", "later batch", "after all batches", "nothing written"],
)
def test_a_stop_says_what_was_written_and_stays(example, written, error, sentence, step):
    counts = Counts(read=4, entered=4, made=4, written=written or 0, duplicate=4 - (written or 0))
    batches = [] if written is None else [BatchReport(batch_id=0, counts=counts)]
    told = StepReport(name="orders", target="/t", quarantine="/q", batches=batches, rules=[STOP])
    told.counts = sum((batch.counts for batch in batches), Counts())
    stop = {"status": "stopped by a rule", "exit_code": ExitCode.STOPPED_BY_RULE, "error": error}
    report = example.model_copy(update={**stop, "steps": [told]})
    assert report.blocks
    for text in (render_text(report), Page(render_html(report)).text):
        said = " ".join(text.split())
        assert sentence in said and step in said


def test_a_run_with_nothing_new_says_so_in_sentences(example):
    step = StepReport(name="orders", target="/t", quarantine="/q")
    report = example.model_copy(
        update={"status": "nothing new", "exit_code": ExitCode.NOTHING_NEW, "steps": [step]}
    )
    text, page = render_text(report), Page(render_html(report)).text
    for sentence in (
        "Nothing new was waiting",
        "No batch ran",
        "No rule was evaluated",
        "no batch was read",
        "no commit yet",
    ):
        assert sentence in page
    assert "not set yet" not in page  # nobody looked at the watermark
    assert "Nothing new was waiting" in text and "0 read = 0 written" in text
    assert "What went wrong" not in page
    assert "sluice plan orders" in Page(render_html(report.model_copy(update={"steps": []}))).text


def _judged(*evaluated):
    kind = "expect_column_values_to_be_between"
    told = {"type": kind, "level": "row", "on_fail": "warn", "outcome": Outcome.PASSED}
    return [RuleResult(name=f"rule_{n}", evaluated=n, unexpected=0, **told) for n in evaluated]


@pytest.mark.parametrize(
    ("rules", "sentence", "count"),
    [
        (_judged(0), "No value reached the rule, so it was not evaluated.", "0 of 1 passed; 1 not"),
        (_judged(0, 0), "No value reached the 2 rules, so none was evaluated.", "0 of 2 passed"),
        (
            _judged(7, 0),
            "1 of 2 rules passed; 1 was not evaluated: no value came.",
            "1 of 2 passed",
        ),
        (_judged(7, 9), "All 2 rules passed.", "2 of 2 passed"),
    ],
)
def test_a_rule_that_no_value_reached_is_not_counted_as_passed(example, rules, sentence, count):
    step = example.steps[0].model_copy(update={"rules": rules})
    report = example.model_copy(update={"steps": [step]})
    text, page = " ".join(render_text(report).split()), Page(render_html(report)).text
    assert sentence in text and sentence in page and count in text
    assert count.partition(";")[0] in page
    assert ("no value came" in page) is any(rule.unmet for rule in rules)
    assert summarize_run(report).rules == sum(rule.evaluated > 0 for rule in rules)


def test_a_run_that_stood_back_says_nothing_of_the_pipeline_s_state(example):
    error = "run r1 (process 7 on h) holds it since 12:00. Wait for it to end"
    ended = {"status": "held back", "exit_code": ExitCode.TRANSIENT, "error": error, "steps": []}
    report = example.model_copy(update=ended)
    assert report.blocks
    for said in (render_text(report), Page(render_html(report)).text):
        told = " ".join(said.split())
        assert "held back" in told.casefold() and "changed nothing" in told and error in told
        assert "Wait for the run that the message names" in told
        assert "The run failed" not in told and "accounted for" not in told
    later = report.model_copy(update={"steps": example.steps})
    assert "stood back in the middle" in " ".join(render_text(later).split())


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        ("failed", ExitCode.TRANSIENT, "Run it again"),
        ("failed", ExitCode.TERMINAL, "Mend what the message names"),
        ("stopped by a rule", ExitCode.STOPPED_BY_RULE, "change the rule in the pipeline's YAML"),
    ],
)
def test_a_run_that_went_wrong_names_the_next_step(example, status, code, words):
    report = example.model_copy(
        update={"status": status, "exit_code": code, "error": "orders.yaml: it broke.\nMend it."}
    )
    text, page = " ".join(render_text(report).split()), Page(render_html(report)).text
    assert "Error: orders.yaml: it broke. Mend it." in text and words in text
    assert "orders.yaml: it broke. Mend it." in page and words in page


def test_what_is_left_for_the_next_run_is_said(example):
    example.steps[0].left_for_next_run = True
    assert "Left for the next run" in render_text(example)
    assert "sluice run orders" in Page(render_html(example)).text


def test_the_text_fits_a_terminal(example):
    step, long = example.steps[0], "word " * 60 + "x" * 300
    step.rules.append(
        RuleResult(
            name=long,
            type=long,
            level="row",
            on_fail="quarantine",
            outcome="failed",
            evaluated=10**10,
            unexpected=10**9,
            message=long,
            samples=[long] * 9,
        )
    )
    step.warnings, step.timings, step.counts = (
        [long],
        {long: 1.0},
        Counts(read=10**10, entered=10**10, made=10**10 + 1, written=10**10 + 1),
    )
    text = render_text(
        example.model_copy(
            update={
                "error": long,
                "run_id": long,
                "window": long,
                "status": "failed",
                "exit_code": 6,
            }
        )
    )
    assert "word" in text
    assert [line for line in text.splitlines() if len(line) > 100] == []


def test_the_golden_example_renders_to_the_golden_text(example):
    golden = (GOLDEN / "run_report.txt").read_text(encoding="utf-8")
    assert render_text(example) == golden, (
        "if that is meant, run `python tests/golden/regenerate.py` and commit the diff"
    )


@pytest.mark.parametrize("batches", [1, 2, 24, 25, 500])
def test_a_page_with_many_batches_stays_small_and_drawn_inside_its_box(example, batches):
    start = datetime(2026, 1, 1, tzinfo=UTC)
    counts = Counts(read=10**7, entered=10**7, made=10**7, written=10**7 - 1, late=1)
    step = example.steps[0]
    step.batches = [
        BatchReport(
            batch_id=i,
            counts=counts,
            event_time_min=start + timedelta(days=i),
            event_time_max=start + timedelta(days=i + 2),
        )
        for i in range(batches)
    ]
    step.counts = sum((batch.counts for batch in step.batches), Counts())
    html = render_html(example)
    page = Page(html)
    assert len(html) < 300_000
    assert all(
        0 <= float(value[:-1]) <= 100
        for _, value in page.attributes
        if value and re.fullmatch(r"-?[\d.]+%", value)
    )
    assert "<0.01%" in page.text and ">99.99%" in page.text
    if batches > 200:
        assert "300 more batches are in the .json file" in page.text


def test_charts_and_tables_can_be_read_by_a_screen_reader(example):
    html = render_html(example)
    for svg in re.findall(r"<svg[^>]*>", html):
        assert "aria-hidden" in svg or "aria-label" in svg or "preserveAspectRatio" in svg
    assert all("scope=" in header for header in re.findall(r"<th\b[^>]*>", html))


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (0, 9, "0%"),
        (9, 9, "100%"),
        (1, 10**6, "<0.01%"),
        (10**6 - 1, 10**6, ">99.99%"),
        (1, 3, "33.3%"),
        (51, 10_000, "0.51%"),
        (0, 0, "0%"),
        (9985, 10_000, "99.85%"),
    ],
)
def test_a_share_is_never_rounded_to_none_or_all(part, whole, shown):
    assert format_percent(part, whole) == shown


def test_sizes_durations_and_watermarks_read_well():
    assert [format_bytes(n) for n in (0, 999, 12_400_000, 999_960)] == [
        "0 B",
        "999 B",
        "12.4 MB",
        "1.0 MB",
    ]
    assert [format_seconds(s) for s in (0.02, 41.23, 99.97, 192, 7500)] == [
        "0.02 s",
        "41.2 s",
        "1 min 40 s",
        "3 min 12 s",
        "2 h 05 min",
    ]
    assert [format_watermark(ms) for ms in (None, 0, 1_767_225_600_000, 10**18)] == [
        "not set yet",
        "not set yet",
        "2026-01-01 00:00:00 UTC",
        f"{10**18} ms",
    ]
    assert (
        printable("a\tb\u200e\ud800") == "a\\tb\\u200e\\ud800"
        and printable("Ärger 日本") == "Ärger 日本"
    )
    assert quote_value("x" * 99, 10) == '"xxxxxxx..."'


def test_what_tasks_cost_on_executors_is_said_apart(example):
    example.core_seconds, example.spark["executor_core_seconds"] = 19.1, "60.2"
    assert "19.1 core-seconds, and 60.2 of tasks on executors" in render_text(example)
    assert "Core-seconds on executors</dt><dd>60.2" in render_html(example)
