"""Which intakes a step has: those that are registered for the kinds of its sources."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..backlog import Arrivals, Range
from ..checkpoint import Checkpoint
from ..spec import (
    FileSource,
    KafkaSource,
    Mode,
    Pipeline,
    RateSource,
    SocketSource,
    SourceKind,
    Step,
    TableSource,
)
from ..storage import Paths
from .files import FileIntake
from .inputs import Inputs, Statics
from .intake import Intake, Opening
from .kafka import KafkaIntake
from .static import StaticTable
from .static_topic import StaticTopic
from .table import TableIntake
from .trial import SocketIntake, TrialIntake

INTAKES: dict[type[SourceKind], type[Intake]] = {
    FileSource: FileIntake,
    KafkaSource: KafkaIntake,
    TableSource: TableIntake,
    RateSource: TrialIntake,
    SocketSource: SocketIntake,
}
"""Model of a source -> what a run takes from it."""


@dataclass(frozen=True)
class Found:
    """What was found for a step before Spark started. `chosen`: of a backfill; `arrivals`: what
    queues named, by input. `pinned`: up to where static inputs are read that are not read as they
    are now."""

    chosen: Range | None = None
    arrivals: Mapping[str, Arrivals] = field(default_factory=dict)
    pinned: Mapping[str, Any] = field(default_factory=dict)


def open_inputs(
    pipeline: Pipeline, step: Step, paths: Paths, mode: Mode, place: str, found: Found
) -> Inputs:
    """The inputs of a run. Args: place: of the step's checkpoint. Raises SourceError when a source
    is absent."""
    intakes = {}
    for number, (name, one) in enumerate(step.streams.items()):
        source = _as_read(step, one.source, mode)
        opening = Opening(
            source,
            pipeline.source_path(source, paths),
            pipeline.folder,
            Checkpoint.below(place, number),
            chosen=found.chosen,
            arrivals=found.arrivals.get(name),
            named=paths.named_files(step.name) + (f"-{number}" if number else ""),
        )
        intakes[name] = INTAKES[type(source)].of(opening)
    statics = find_statics(pipeline, step, paths, asks=True)
    read = {name: one.at(found.pinned.get(name)) for name, one in statics.items()}
    return Inputs(bool(step.inputs), intakes, read)


def rehearse_inputs(pipeline: Pipeline, step: Step, paths: Paths, landing: Path) -> Inputs:
    """Inputs that nothing waits in, for building a step without data; `landing` is an empty
    folder."""
    intakes = {}
    for name, one in step.streams.items():
        source, place = _as_read(step, one.source), pipeline.source_path(one.source, paths)
        opening = Opening(source, place, pipeline.folder, None, landing=str(landing))
        intakes[name] = INTAKES[type(source)].of(opening)
    return Inputs(bool(step.inputs), intakes, find_statics(pipeline, step, paths, asks=False))


def _as_read(step: Step, source: SourceKind, mode: Mode | None = None) -> SourceKind:
    if step.groups and isinstance(source, TableSource):
        return source.as_versions()
    # A range is replaced by one commit; a second batch would replace what the first wrote.
    return source.in_one_batch() if mode is not None and mode.replaces else source


def find_statics(pipeline: Pipeline, step: Step, paths: Paths, *, asks: bool) -> Statics:
    """What a step reads as a whole, as it is now.

    Args: asks: whether brokers are asked; else a topic is an empty one.
    """
    found: Statics = {}
    for name, one in step.statics.items():
        source = one.source
        if isinstance(source, TableSource):
            found[name] = StaticTable.of(source, pipeline.source_path(source, paths))
        elif isinstance(source, KafkaSource):
            folder = pipeline.folder
            topic = StaticTopic.of(source, folder) if asks else StaticTopic(source, folder, {})
            found[name] = topic
    return found
