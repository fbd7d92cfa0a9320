"""RunReport -> one self-contained HTML page: no script, no request, every value escaped by the
template engine.
"""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from .. import __version__
from . import charts, flow, lateness, summary, units, verdict
from .counts import FATES, Counts
from .hints import list_hints
from .model import RunReport, StepReport
from .step_notes import step_notes

if TYPE_CHECKING:
    from jinja2 import Environment

    from .history import RunSummary

_MAX_BATCH_ROWS = 200


def render_html(report: RunReport, last: "tuple[RunReport | RunSummary, str] | None" = None) -> str:
    """The report as a page that needs nothing but a browser.

    Args: last: for an idle run, the last report of one that was not, and the way to its page.
    """
    rules = [rule for step in report.steps for rule in step.rules]
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            last=last,
            verdict=verdict.judge(report),
            version=__version__,
            next_step=verdict.next_step(report),
            total=describe_counts(report.counts),
            steps=[describe_step(step) for step in report.steps],
            passed=summary.count_passed(rules),
            rules=rules,
            inputs=[summary.describe_input(step) for step in report.steps],
        )
    )


def describe_counts(counts: Counts) -> dict:
    """A balance in the pieces the template puts together."""
    return {
        "counts": counts,
        "lines": counts.lines,
        "flow": flow.draw_flow(counts),
        "notes": summary.balance_notes(counts),
    }


def describe_step(step: StepReport) -> dict:
    """One step in the pieces the template puts together."""
    bars = lateness.label_bars(step.lateness) if sum(step.lateness[1:]) else []
    longest = max(step.timings.values(), default=0.0) or 1.0
    changed = summary.changes_rows(step.batches)
    return {
        "step": step,
        "balance": describe_counts(step.counts),
        "rules": summary.sort_rules(step.rules),
        "hints": list(list_hints(step.refusals)),
        "chart": charts.draw_batches(step.batches),
        "batches": step.batches[:_MAX_BATCH_ROWS],
        "columns": ("read", "filtered", "made", *FATES[:-1]) if changed else ("read", *FATES),
        "hidden_batches": max(len(step.batches) - _MAX_BATCH_ROWS, 0),
        "timeline": charts.draw_timeline(step),
        "spread": summary.event_range(step.batches),
        "tables": summary.list_tables(step),
        "passed": summary.count_passed(step.rules),
        "notes": step_notes(step),
        "warnings": summary.list_warnings(step),
        "lateness": [(label, rows, 100 * rows / sum(step.lateness)) for label, rows in bars],
        "phases": [
            (phase, seconds, 100 * seconds / longest) for phase, seconds in step.timings.items()
        ],
    }


@cache
def _environment() -> "Environment":
    """Templates read as package resources, so that the page also renders from a wheel on a
    cluster."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(
            lambda name: files(__package__).joinpath(name).read_text(encoding="utf-8")
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": units.format_count,
        "size": units.format_bytes,
        "seconds": units.format_seconds,
        "time": units.format_time,
        "watermark": units.format_watermark,
        "printable": units.printable,
        "quote": units.quote_value,
        "input": summary.describe_input,
    }
    environment.globals |= {"percent": units.format_percent}
    return environment
