"""The story of a run: its model, where it is kept, how it looks."""

from .model import BatchReport, Counts, Outcome, RuleResult, RunReport, StepReport
from .render import render_html, render_text
from .store import latest_report, list_reports, read_report, report_path, write_report

__all__ = [
    "BatchReport", "Counts", "Outcome", "RuleResult", "RunReport", "StepReport", "latest_report", "list_reports", "read_report", "render_html", "render_text",
    "report_path", "write_report",
]
