"""RunReport -> plain text for a terminal or a task log: at most 100 columns, paths aside."""

import textwrap
from collections.abc import Iterator

from .counts import FATES, Counts
from .hints import list_hints
from .lateness import label_bars
from .model import BatchReport, Outcome, Refusal, RuleResult, RunReport, StepReport
from .step_notes import step_notes
from .summary import (
    balance_notes,
    changes_rows,
    count_passed,
    describe_input,
    event_range,
    list_tables,
    list_warnings,
    sort_rules,
)
from .units import (
    format_count,
    format_percent,
    format_seconds,
    format_time,
    format_watermark,
    from_millis,
    printable,
    quote_value,
)
from .verdict import judge, next_step
from .verified import tell_verified

_WIDTH = 100
_BAR = 32
_MAX_BATCHES = 8
_OUTCOMES = {Outcome.FAILED: "FAILED", Outcome.ERROR: "NO VERDICT", Outcome.PASSED: "passed"}


def render_text(report: RunReport) -> str:
    """The report as lines of text, ending in a newline; every foreign value is made printable."""
    lines = [*_render_head(report)]
    if len(report.steps) > 1 and report.kind != "verification":
        lines += ["", *_render_balance(report.counts)]
    render = _render_verified if report.kind == "verification" else _render_step
    for step in report.steps:
        lines += ["", *render(step, len(report.steps) > 1)]
    lines += ["", *_render_cost(report)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _render_head(report: RunReport) -> Iterator[str]:
    window = f", {printable(report.window)}" if report.window else ""
    yield _fit(f"{printable(report.pipeline)}: {report.status.upper()}")
    yield _fit(f"run {printable(report.run_id)} ({report.kind}{window})")
    yield f"{format_time(report.started)} -> {format_time(report.ended)}"
    yield from textwrap.wrap(judge(report).sentence, _WIDTH)
    if report.error:
        yield ""
        for number, line in enumerate(report.error.splitlines()):
            yield from textwrap.wrap(
                printable(line),
                _WIDTH,
                initial_indent="  " if number else "Error: ",
                subsequent_indent="  ",
            )
    if step := next_step(report):
        yield from textwrap.wrap(f"Next: {step}", _WIDTH, subsequent_indent="  ")


def _render_step(step: StepReport, titled: bool) -> Iterator[str]:
    if titled:
        yield _fit(f"== step {printable(step.name)} ==")
    yield from _render_balance(step.counts)
    if step.refusals:
        yield ""
        yield from _render_refusals(step.refusals)
    yield ""
    yield from _render_rules(step.rules)
    if step.batches:
        yield ""
        yield from _render_batches(step.batches)
    yield ""
    yield from _render_time(step)
    if sum(step.lateness[1:]):
        yield from _render_lateness(step.lateness)
    for note in step_notes(step):
        yield from textwrap.wrap(note, _WIDTH, subsequent_indent="  ")
    for warning in list_warnings(step):
        yield from textwrap.wrap(f"Warning: {printable(warning)}", _WIDTH, subsequent_indent="  ")
    if step.left_for_next_run:
        yield "Left for the next run: the time budget ended before the backlog did."
    yield "Tables"
    for role, place, version in list_tables(step):
        shown = "no commit" if version is None else f"version {version}"
        yield f"  {printable(role):<11} {shown:<12} {printable(place)}"


def _render_verified(step: StepReport, titled: bool) -> Iterator[str]:
    if titled:
        yield _fit(f"== step {printable(step.name)} ==")
    for one in step.verified:
        for line in tell_verified(one):
            yield from textwrap.wrap(printable(line), _WIDTH, subsequent_indent="    ")
    for warning in step.warnings:
        yield from textwrap.wrap(f"Warning: {printable(warning)}", _WIDTH, subsequent_indent="  ")


def _render_balance(counts: Counts) -> Iterator[str]:
    lines = counts.lines
    for line in lines:
        yield from textwrap.wrap(str(line), _WIDTH, subsequent_indent="  ")
    if lines[-1].total:
        yield ""
        for fate, rows in lines[-1].became.items():
            share = format_percent(rows, lines[-1].total)
            bar = _draw_bar(rows, lines[-1].total)
            yield f"  {fate:<12}{format_count(rows):>15}  {share:>7}  {bar}"
    for note in balance_notes(counts):
        yield from textwrap.wrap(note, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _render_refusals(refusals: list[Refusal]) -> Iterator[str]:
    yield "Refused, by reason (a row may have several; a copy of a refused row is a duplicate)"
    for refusal in refusals:
        yield f"  {_cut(printable(refusal.reason), 70):<70}{format_count(refusal.rows):>12}"
        for sample in refusal.samples:
            yield " " * 16 + quote_value(sample, _WIDTH - 18)
    for hint in list_hints(refusals):
        yield from textwrap.wrap(f"Hint: {hint}.", _WIDTH, subsequent_indent="  ")


def _render_rules(rules: list[RuleResult]) -> Iterator[str]:
    if not rules:
        yield "Rules: none evaluated"
        return
    unmet = sum(rule.unmet for rule in rules)
    told = f"; {unmet} not evaluated, because no value came" if unmet else ""
    yield f"Rules: {count_passed(rules)} of {len(rules)} passed{told}"
    for rule in sort_rules(rules):
        if rule.outcome is Outcome.PASSED:
            continue
        found = ""
        if rule.unexpected is not None and rule.evaluated is not None:
            share = format_percent(rule.unexpected, rule.evaluated)
            found = f"{rule.unexpected:,} of {rule.evaluated:,} ({share})"
        room = max(_WIDTH - 30 - len(found) - 2, 20)
        name = f"{_cut(printable(rule.name), room):<{room}}"
        yield f"  {_OUTCOMES[rule.outcome]:<14}{rule.on_fail:<12}{name}  {found}"
        for label, text in (("", rule.message), ("observed ", rule.observed or "")):
            if text:
                yield from textwrap.wrap(
                    label + printable(text),
                    _WIDTH,
                    initial_indent=" " * 16,
                    subsequent_indent=" " * 16,
                    max_lines=3,
                )
        if rule.samples:
            yield _cut(
                " " * 16
                + "samples "
                + ", ".join(quote_value(sample, 24) for sample in rule.samples[:5]),
                _WIDTH,
            )


def _render_batches(batches: list[BatchReport]) -> Iterator[str]:
    columns = ("made", *FATES[:-1]) if changes_rows(batches) else FATES
    titles = "".join(f"{title:>12}" for title in ("read", *columns))
    yield f"{'batch':>8}{titles}{'files':>7}{'seconds':>9}"
    shown = batches if len(batches) <= _MAX_BATCHES else batches[: _MAX_BATCHES - 1]
    for batch in shown:
        counts = "".join(f"{getattr(batch.counts, name):>12,}" for name in ("read", *columns))
        name = f"{batch.batch_id}{'*' if batch.replayed else ''}"
        yield f"{name:>8}{counts}{batch.files:>7,}{batch.seconds:>9.2f}"
    if any(batch.replayed for batch in shown):
        yield "* replayed: committed before a crash, its counts read back from the commit"
    if left := len(batches) - len(shown):
        yield f"     ... and {left} more batches; the HTML report shows them all"


def _render_time(step: StepReport) -> Iterator[str]:
    before, after = (
        format_watermark(step.watermark_before_ms),
        format_watermark(step.watermark_after_ms),
    )
    if from_millis(step.watermark_before_ms) or from_millis(step.watermark_after_ms):
        yield f"Watermark   {before} -> {after}"
    spread = event_range(step.batches)
    if spread:
        yield f"Event time  {format_time(spread[0])} .. {format_time(spread[1])}"
    committed = " -> ".join(
        "none" if number is None else str(number)
        for number in (step.offsets_before, step.offsets_after)
    )
    yield f"Read        {describe_input(step)}; newest committed batch {committed}"
    if step.timings:
        phases = ", ".join(
            f"{printable(phase)} {format_seconds(seconds)}"
            for phase, seconds in step.timings.items()
        )
        yield from textwrap.wrap(f"Phases      {phases}", _WIDTH, subsequent_indent=" " * 12)


def _render_lateness(histogram: list[int]) -> Iterator[str]:
    yield "Behind the newest row of earlier batches"
    total = sum(histogram)
    for label, rows in label_bars(histogram):
        share = format_percent(rows, total)
        yield f"  {label:<16}{format_count(rows):>11}  {share:>7}  {_draw_bar(rows, total)}"


def _render_cost(report: RunReport) -> Iterator[str]:
    spark = dict(report.spark)
    elsewhere = spark.pop("executor_core_seconds", None)
    yield (
        f"Cost        {format_seconds(report.seconds_up)} up, {report.core_seconds:,.1f} "
        "core-seconds"
        + (f", and {printable(elsewhere)} of tasks on executors" if elsewhere else "")
    )
    if spark:
        settings = ", ".join(
            f"{printable(name)} {printable(value)}" for name, value in spark.items()
        )
        yield from textwrap.wrap(f"Spark       {settings}", _WIDTH, subsequent_indent=" " * 12)


def _draw_bar(rows: int, total: int) -> str:
    return "█" * max(round(_BAR * rows / total), 1 if rows > 0 else 0)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _fit(text: str) -> str:
    return _cut(text, _WIDTH)
