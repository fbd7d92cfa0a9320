"""The story of a run: its model, where it is kept, how it looks."""

from .counts import Counts
from .deliveries import Delivered, Undelivered
from .held import HeldInState
from .lateness import BOUNDS, add_histograms
from .model import (
    BatchReport,
    InputReport,
    Outcome,
    Refusal,
    RuleResult,
    RunReport,
    StepReport,
)
from .progress import UNWATCHED, Advance, Progress
from .ranges import COMMITS, merge_ranges
from .refreshed import RefreshReport, sum_refreshed
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
from .verified import Difference, Verification, tell_verified

__all__ = [
    "BOUNDS",
    "COMMITS",
    "UNWATCHED",
    "Advance",
    "BatchReport",
    "Counts",
    "Delivered",
    "Difference",
    "HeldInState",
    "InputReport",
    "Outcome",
    "Progress",
    "Refusal",
    "RefreshReport",
    "RuleResult",
    "RunReport",
    "StepReport",
    "Undelivered",
    "Verification",
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
    "sum_refreshed",
    "tell_verified",
    "told_by",
    "write_report",
]
