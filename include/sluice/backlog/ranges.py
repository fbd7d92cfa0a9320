"""What a backfill reads, through a checkpoint of its own that goes when it is done."""

from ..errors import SpecError
from ..spec import Pipeline, RunRequest, Step, Window
from ..storage import Paths, remove_tree
from .probe import Range
from .probes import probe_of


def select_range(step: Step, window: Window) -> Range:
    """What a backfill of this window reads.

    Raises SourceError when the landing folder is absent, SpecError for a source that cannot be read
    again.
    """
    only, *others = step.streams.values()
    if others:
        raise SpecError(
            "the inputs of this step meet across the ends of any range, so rows there would miss "
            "their matches",
            where=f"{step.name}: inputs",
            value=", ".join(step.streams),
            do="Rebuild it whole: `sluice reset NAME --step "
            f"{step.name} --tables`, and run; backfill the steps before it",
        )
    return probe_of(only.source).select(step.name, step.event_time or only.event_time, window)


def refuse_doubling(pipeline: Pipeline, request: RunRequest) -> None:
    """Raise SpecError for a backfill whose rows would stand beside those that are there already: it
    reads them through a checkpoint of its own, so only keys in the target tell that they came
    before."""
    for step in pipeline.steps if request.window is not None and request.write == "merge" else ():
        if step.output_mode != "append":
            raise SpecError(
                "a backfill gathers the rows of its range alone, and would put what it finds in "
                "place of groups that have others as well",
                where=f"{pipeline.name}.{step.name}: sink",
                value=f"mode: {step.output_mode}",
                do=f"Rebuild it whole: `sluice reset {pipeline.name} --step {step.name} --tables`, "
                "and run; backfill the steps before it",
            )
        added_to = [sink.title for sink in step.sinks if sink.adds_rows]
        if added_to and not step.remembers:
            raise SpecError(
                "a backfill would write rows that are there already once more, because no table "
                "remembers their keys",
                where=f"{pipeline.name}.{step.name}",
                value=", ".join(added_to),
                do="Declare `dedup` (with `memory: table`), or replace the range: `--write replace`"
                if step.target is not None and step.event_time is not None
                else "Declare `event_time` and `dedup` and write to a Delta table",
            )


def remove_checkpoint(paths: Paths, pipeline: Pipeline, request: RunRequest) -> None:
    """Remove the checkpoint of a finished backfill: repeating it reads everything again, and the
    table's keys keep it from doubling."""
    for step in pipeline.steps:
        remove_tree(paths.checkpoint(step.name, request.backfill))
