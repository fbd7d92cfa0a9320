"""What a trial may read and write, and which steps run in nothing but a trial."""

from typing import TYPE_CHECKING

from ..errors import SpecError
from ..storage.paths import is_remote
from .sink import ConsoleSink, DeltaSink, FilesSink, MemorySink
from .source import RateSource, SocketSource

if TYPE_CHECKING:
    from .model import Spec
    from .pipeline import Pipeline, Step

_WHY = {
    "socket": "a socket cannot be read again after a crash, and knows no availableNow",
    "rate": "rate makes rows as time passes and knows no availableNow, so no run is ever done",
    "rate-micro-batch": "rate-micro-batch makes rows for ever and keeps none of them, so no run is ever done",
}
"""Kind of a source -> why no scheduled run reads it."""


def is_trial_source(source: "Spec") -> bool:
    """True for sources that run in nothing but a trial."""
    return isinstance(source, RateSource | SocketSource)


def why_trial(source: "Spec") -> str:
    """Why a source is for trials."""
    return _WHY[source.kind]


def check_trial(pipeline: "Pipeline", trial: bool) -> None:
    """Raise SpecError for a trial source outside a trial, and for a trial whose rows would leave the trial's own root.

    A pipeline with a trial source is a trial itself, so its sinks are taken as they are written.
    """
    of_trials = [step for step in pipeline.steps if is_trial_source(step.source)]
    if of_trials and not trial:
        step = of_trials[0]
        raise SpecError(
            f"source {step.source.kind} is for trials: {why_trial(step.source)}",
            where=f"{pipeline.name}.{step.name}: source",
            do="Start it with `sluice run --dev`",
        )
    for step in () if of_trials or not trial else pipeline.steps:
        _refuse_far_sinks(pipeline, step)


def _refuse_far_sinks(pipeline: "Pipeline", step: "Step") -> None:
    far = [sink.kind for sink in step.sinks if not _stays_below_root(sink)]
    if far:
        raise SpecError(
            "a trial reads everything once more, and this sink lies outside the trial's own root",
            where=f"{pipeline.name}.{step.name}: sink",
            value=", ".join(far),
            do="Try a copy of the file with `sink: {kind: console}`, or with a Delta table without `name` and with a relative `table`",
        )


def _stays_below_root(sink: "Spec") -> bool:
    if isinstance(sink, DeltaSink):
        return sink.name is None and not _is_absolute(sink.table or "")
    if isinstance(sink, FilesSink):
        return not _is_absolute(sink.path)
    return isinstance(sink, ConsoleSink | MemorySink)


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "file:")) or is_remote(path)
