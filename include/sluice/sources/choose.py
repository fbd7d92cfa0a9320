"""Which intake a step has: by the kind of its source."""

from pathlib import Path

from ..backlog import Arrivals, waiting_files
from ..backlog.ranges import Range
from ..checkpoint import Checkpoint
from ..spec import FileSource, KafkaSource, Pipeline, RunRequest, Step, TableSource
from ..storage import Paths
from .files import FileIntake
from .intake import Intake
from .kafka import KafkaIntake
from .named import NamedFileIntake
from .table import TableIntake
from .trial import TrialIntake


def choose_intake(
    pipeline: Pipeline,
    step: Step,
    paths: Paths,
    request: RunRequest,
    checkpoint: Checkpoint,
    chosen: Range | None,
    arrivals: Arrivals | None = None,
) -> Intake:
    """The intake of a run. Args: chosen: of a backfill. arrivals: what a queue named. Raises SourceError when the source is absent."""
    source = step.source
    if request.window is not None and request.write == "replace":
        source = _in_one_batch(source)
    if isinstance(source, FileSource) and chosen:
        return FileIntake(source, chosen.files, chosen.path, chosen.pattern)
    if isinstance(source, FileSource) and arrivals is not None and not arrivals.listed:
        return NamedFileIntake(source, arrivals.files, f"{paths.checkpoint(step.name)}/named")
    if isinstance(source, FileSource):
        return FileIntake(source, waiting_files(source, checkpoint)[0])
    if isinstance(source, KafkaSource):
        return KafkaIntake(
            source, pipeline.folder, checkpoint, since=chosen.since if chosen else None
        )
    if isinstance(source, TableSource):
        return TableIntake(
            source, pipeline.source_path(source, paths), checkpoint, from_start=chosen is not None
        )
    return TrialIntake(source)


def rehearse_intake(pipeline: Pipeline, step: Step, paths: Paths, landing: Path) -> Intake:
    """An intake that nothing waits in, for building a step without data; `landing` is an empty folder."""
    source = step.source
    if isinstance(source, FileSource):
        return FileIntake(source, [], path=str(landing))
    if isinstance(source, KafkaSource):
        return KafkaIntake(source, pipeline.folder, None)
    if isinstance(source, TableSource):
        return TableIntake(source, pipeline.source_path(source, paths), None)
    return TrialIntake(source)


def _in_one_batch(source: object) -> object:
    """The source without bounds: a range is replaced by one commit, and a second batch would replace the first."""
    bounds = {"maxfilespertrigger", "maxbytespertrigger", "maxoffsetspertrigger"}
    options = {k: v for k, v in source.options.items() if k.lower() not in bounds}
    none = {
        name: None
        for name in ("max_files_per_batch", "max_bytes_per_batch", "max_offsets_per_batch")
        if name in type(source).model_fields
    }
    return source.model_copy(update={**none, "options": options})
