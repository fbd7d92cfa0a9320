"""Verifies the steps of a pipeline: what their tables hold against what their inputs give once
more."""

from collections.abc import Iterator

from ..errors import SpecError
from ..launch import spark_settings
from ..report import Verification
from ..spark.session import open_session
from ..spec import FileSource, Pipeline, Step, TableSource
from ..storage import Paths


def choose_steps(pipeline: Pipeline, name: str | None) -> tuple[list[Step], dict[str, str]]:
    """The step that is named, else all that can be verified; and why others cannot, by name.
    Raises SpecError where none can."""
    steps = [step for step in pipeline.steps if name in (None, step.name)]
    if not steps:
        raise SpecError(
            "the pipeline has no such step",
            where=pipeline.name,
            value=name,
            do=f"There are: {', '.join(step.name for step in pipeline.steps)}",
        )
    left_out = {step.name: why for step in steps if (why := why_unverifiable(step))}
    if len(left_out) == len(steps):
        raise SpecError(
            "; ".join(f"{name}: {why}" for name, why in left_out.items()),
            where=pipeline.name,
            do="`sluice torture` compares the tables of any step with those of undisturbed runs",
        )
    return [step for step in steps if step.name not in left_out], left_out


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
    if step.output_mode != "append" or (step.dedup and step.dedup.memory == "state"):
        return "what it keeps in state hangs on how its input was cut into batches"
    if step.event_time and step.dedup and step.dedup.late != "merge":
        return f"which rows are late (`late: {step.dedup.late}`) hangs on when they came"
    return ""


def verify_steps(
    pipeline: Pipeline, steps: list[Step], paths: Paths, share: float
) -> Iterator[Verification]:
    """What each of these steps' tables should hold against what it holds. Args: share: of the
    groups of steps with `groups`."""
    with open_session(spark_settings(pipeline, None, root=paths.root)) as spark:
        from ..streaming.replay import verify_by_replay
        from ..streaming.verifying import verify_step

        for step in steps:
            if step.groups:
                yield verify_step(spark, pipeline, step, paths, share)
            else:
                yield from verify_by_replay(spark, pipeline, step, paths)
