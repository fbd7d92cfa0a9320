"""The story of a run: its model, where it is kept, how it looks."""

from .counts import Counts
from .deliveries import Delivered, Undelivered
from .held import HeldInState
from .lateness import BOUNDS, add_histograms
from .model import (
    COMMITS,
    BatchReport,
    InputReport,
    Outcome,
    Refusal,
    RuleResult,
    RunReport,
    StepReport,
    merge_ranges,
)
from .progress import UNWATCHED, Advance, Progress
from .render import render_html, render_text
from .store import (
    kept_reports,
    latest_report,
    latest_worked,
    list_reports,
    read_report,
    report_path,
    told_by,
    write_report,
)

__all__ = [
    "BOUNDS",
    "COMMITS",
    "UNWATCHED",
    "Advance",
    "BatchReport",
    "Counts",
    "Delivered",
    "HeldInState",
    "InputReport",
    "Outcome",
    "Progress",
    "Refusal",
    "RuleResult",
    "RunReport",
    "StepReport",
    "Undelivered",
    "add_histograms",
    "kept_reports",
    "latest_report",
    "latest_worked",
    "list_reports",
    "merge_ranges",
    "read_report",
    "render_html",
    "render_text",
    "report_path",
    "told_by",
    "write_report",
]
