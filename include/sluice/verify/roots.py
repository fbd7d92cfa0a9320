"""What two roots of one pipeline hold, side by side."""

from pathlib import Path

from ..report import Counts, list_reports
from ..spec import Pipeline
from ..storage import Paths
from .compare import compare_tables


def count_rows(root: Path, pipeline: str) -> Counts:
    """The sum of all reports below a root. Args: pipeline: its uid."""
    reports = list_reports(Paths.under(root, pipeline).reports())
    return sum((report.counts for report in reports), Counts())


def compare_roots(pipeline: Pipeline, calm: Path, killed: Path) -> list[str]:
    """Everything in which two roots differ, a sentence each.

    Rows of the tables as multisets, and the counts of the reports.
    """
    wanted, found = (count_rows(root, pipeline.paths().pipeline) for root in (calm, killed))
    differences = (
        [] if found == wanted else [f"the reports say {found.line}, without kills {wanted.line}"]
    )
    differences += [
        f"{report.run_id} does not balance: {report.counts.line}"
        for report in list_reports(pipeline.paths(killed).reports())
        if not report.counts.balanced
    ]
    tables = zip(_list_tables(pipeline, calm), _list_tables(pipeline, killed), strict=True)
    return differences + compare_tables(list(tables), pipeline)


def _list_tables(pipeline: Pipeline, root: Path) -> list[str]:
    """Target, quarantine and late table of each step, whether or not they are there."""
    paths = pipeline.paths(root)
    return [
        path
        for step in pipeline.steps
        for path in (step.target_path(paths), paths.quarantine(step.name), paths.late(step.name))
        if path
    ]
