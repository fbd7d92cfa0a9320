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
    for name, one in step.statics.items():
        if isinstance(one.source, TableSource) and one.source.name is not None:
            return f"nobody notes at which version the static input {name} is read by its name"
    for one in step.streams.values():
        source = one.source
        if source.why_trial:
            return f"source {source.kind} gives other rows each time"
        if isinstance(source, FileSource) and source.clean_source is not None:
            return "its files are taken away once they are read"
        if isinstance(source, TableSource) and source.schema_tracking:
            return "`schema_tracking` reads each commit under the columns of that time"
    return ""


def _why_memory(step: Step) -> str:
    return "" if step.target else "it writes no table that remembers what it was given"


def kept_apart(step: Step) -> frozenset[str]:
    """Why not all batches of a step can be read once more as one; empty where they can.

    `statics`: a table that is read as a whole changes. `watermark`: which rows are late hangs on
    when they came. `commits`: what the table held at first, and each commit since, is read; and not
    what it held after them.
    """
    if step.groups or step.target is None:
        return frozenset()
    found = {"statics"} if step.statics else set()
    kept = step.dedup is not None and step.dedup.memory == "state"
    if step.event_time and step.dedup and step.dedup.late != "merge" and not kept:
        found.add("watermark")
    for one in step.streams.values():
        source = one.source
        if isinstance(source, TableSource) and (
            source.change_feed or source.skip_change_commits or source.start != "earliest"
        ):
            found.add("commits")
    return frozenset(found)
