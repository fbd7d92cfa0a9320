"""Rows that were judged by what a step said before its file was edited."""

from ..checkpoint import Checkpoint, noted_parts
from ..report.units import format_time
from ..spark.table_setup import table_exists
from ..spark.tables import frame_of
from ..spec.definition import changed_parts, describe_change, digest_parts
from .plan import Plan
from .run import Run


def describe_redefined(run: Run, plan: Plan) -> list[str]:
    """A sentence where rows of the table were judged by other rules, another transform, event time
    or dedup; it is told by one report."""
    last = Checkpoint.below(plan.place.checkpoint).last_run
    if run.mode.kind != "scheduled" or not plan.target.exists or last is None or plan.refresh:
        return []
    now = digest_parts(plan.step, plan.place.folder)
    parts = changed_parts(noted_parts(plan.place.checkpoint), now)
    asked = parts and table_exists(run.spark, plan.target.path)
    rows = frame_of(run.spark, plan.target.path).count() if asked else 0
    if not rows:
        return []
    return [describe_change(run.pipeline, plan.step, parts, format_time(last), rows)]
