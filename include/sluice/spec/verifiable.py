"""Which steps can be verified: what their inputs give once more says what their tables hold."""

from .file_source import FileSource
from .step import Step
from .table_source import TableSource


def why_unverifiable(step: Step) -> str:
    """Why what a step's inputs give once more says nothing of its tables; empty where it does."""
    if step.groups:
        return ""
    reasons = (_why_source(step), _why_memory(step))
    return next(filter(None, reasons), "")


def _why_source(step: Step) -> str:
    if step.statics:
        return "its static inputs are read in each run, as they are then"
    for one in step.streams.values():
        source = one.source
        if source.why_trial:
            return f"source {source.kind} gives other rows each time"
        if isinstance(source, FileSource) and source.clean_source is not None:
            return "its files are taken away once they are read"
        if isinstance(source, TableSource):
            asked = ("change_feed", "skip_change_commits", "schema_tracking")
            given = [name for name in asked if getattr(source, name)]
            given += ["start"] if source.start != "earliest" else []
            if given:
                return f"`{given[0]}` reads commits, and not what the table held after them"
    return ""


def _why_memory(step: Step) -> str:
    if step.target is None:
        return "it writes no table that remembers what it was given"
    kept = step.dedup is not None and step.dedup.memory == "state"
    if step.event_time and step.dedup and step.dedup.late != "merge" and not kept:
        return f"which rows are late (`late: {step.dedup.late}`) hangs on when they came"
    return ""
