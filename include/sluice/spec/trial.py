"""What a trial may read and write, and which steps run in nothing but a trial."""

from ..errors import SpecError
from .pipeline import Pipeline
from .step import Step


def check_trial(pipeline: Pipeline, trial: bool) -> None:
    """Raise SpecError for a trial source outside a trial, and for a trial whose rows would leave
    the trial's own root.

    A pipeline with a trial source is a trial itself, so its sinks are taken as they are written.
    """
    of_trials = [
        (step, source) for step in pipeline.steps for source in step.sources if source.why_trial
    ]
    if of_trials and not trial:
        step, source = of_trials[0]
        raise SpecError(
            f"source {source.kind} is for trials: {source.why_trial}",
            where=f"{pipeline.name}.{step.name}: source",
            do="Start it with `sluice run --dev`",
        )
    for step in () if of_trials or not trial else pipeline.steps:
        _refuse_far_sinks(pipeline, step)


def _refuse_far_sinks(pipeline: Pipeline, step: Step) -> None:
    far = [sink.kind for sink in step.sinks if not sink.stays_below_root]
    if far:
        raise SpecError(
            "a trial reads everything once more, and this sink lies outside the trial's own root",
            where=f"{pipeline.name}.{step.name}: sink",
            value=", ".join(far),
            do="Try a copy of the file with `sink: {kind: console}`, or with a Delta table without "
            "`name` and with a relative `table`",
        )
