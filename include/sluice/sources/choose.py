"""Which intake a step has: the one that is registered for its kind of source."""

from dataclasses import dataclass
from pathlib import Path

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
from .intake import Intake, Opening
from .kafka import KafkaIntake
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
    """What was found for a step before Spark started. `chosen`: of a backfill; `arrivals`: what a
    queue named."""

    chosen: Range | None = None
    arrivals: Arrivals | None = None


def choose_intake(
    pipeline: Pipeline,
    step: Step,
    paths: Paths,
    mode: Mode,
    checkpoint: Checkpoint,
    found: Found,
) -> Intake:
    """The intake of a run. Raises SourceError when the source is absent."""
    source = step.source
    if mode.replaces:
        # A range is replaced by one commit; a second batch would replace what the first wrote.
        source = source.in_one_batch()
    opening = Opening(
        source,
        pipeline.source_path(source, paths),
        pipeline.folder,
        checkpoint,
        chosen=found.chosen,
        arrivals=found.arrivals,
        named=paths.named_files(step.name),
    )
    return INTAKES[type(source)].of(opening)


def rehearse_intake(pipeline: Pipeline, step: Step, paths: Paths, landing: Path) -> Intake:
    """An intake that nothing waits in, for building a step without data; `landing` is an empty
    folder."""
    place = pipeline.source_path(step.source, paths)
    opening = Opening(step.source, place, pipeline.folder, None, landing=str(landing))
    return INTAKES[type(step.source)].of(opening)
