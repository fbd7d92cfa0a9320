"""The probe of each kind of source; a kind without one is always run."""

from datetime import UTC, datetime

from ..checkpoint.log import Checkpoint
from ..spec import EventTime, FileSource, KafkaSource, SourceKind, TableSource, Window
from .audit import note_audit
from .cleaning import archive_of, archived_path
from .delta import measure_table, read_position
from .files import LandedFile, files_in_window, list_files
from .globs import any_folder, any_name
from .kafka import describe_losses, measure_topics
from .notified import Arrivals, ask_queue, take_arrivals
from .probe import RECORD_BYTES, Probe, Range, StepBacklog, Waiting
from .recent import look_and_remember
from .unchanged import is_unchanged, note_unchanged


def count_files(
    step: str, waiting: list[LandedFile], warnings: list[str], audited: datetime | None = None
) -> StepBacklog:
    """Files as a backlog."""
    oldest = datetime.fromtimestamp(min(f.modified for f in waiting), UTC) if waiting else None
    return StepBacklog(
        step,
        files=len(waiting),
        bytes=sum(f.size for f in waiting),
        oldest=oldest,
        warnings=warnings,
        audited=audited,
    )


def range_of(files: list[LandedFile]) -> Range:
    """Some files of a folder, as a backfill reads them."""
    if not files:
        return Range()
    folders = sorted({f.path.rsplit("/", 1)[0] for f in files})
    return Range(files, any_folder(folders), any_name(sorted({f.name for f in files})))


class FileProbe(Probe[FileSource]):
    """Lists a folder, or asks the queue that names its new files."""

    def measure(self, step: str, place: str, checkpoint: Checkpoint) -> Waiting:
        """Files that no batch has read."""
        notified = self.source.queue is not None
        answer = ask_queue(self.source, checkpoint) if notified else None
        if answer is not None:
            return Waiting(count_files(step, answer.planned, answer.warnings), answer.doubt)
        if not notified and is_unchanged(self.source, checkpoint):
            return Waiting(count_files(step, [], []))
        began = datetime.now(UTC)
        look = look_and_remember(self.source, checkpoint)
        return Waiting(count_files(step, look.waiting, look.told, began))

    def take(self, checkpoint: Checkpoint, hold: int) -> Arrivals | None:
        """The new files that the queue's messages name."""
        notified = self.source.queue is not None
        return take_arrivals(self.source, checkpoint, hold) if notified else None

    def note_listing(self, checkpoint: Checkpoint, began: datetime) -> None:
        """The queue alone is asked until the next audit; or no file is looked at while the folders
        are as they are."""
        if self.source.queue is not None:
            note_audit(self.source, checkpoint, began)
        else:
            note_unchanged(self.source, checkpoint, began)

    def select(self, where: str, time: EventTime | None, window: Window) -> Range:
        """The files of the window, in the archive as well. Raises SourceError when the folder is
        absent."""
        landed, archive = files_in_window(self.source, window), archive_of(self.source)
        if archive is None:
            return range_of(landed)
        back = {archived_path(self.source, file.path) for file in landed}
        archived = [file for file in files_in_window(archive, window) if file.path not in back]
        return range_of([*landed, *archived])

    def widen(self, chosen: Range, paths: set[str]) -> tuple[Range, list[str]]:
        """Files are listed once more: the window alone says nothing of the others."""
        more = paths - {landed.path for landed in chosen.files}
        if not more:
            return chosen, []
        there = {landed.path: landed for landed in list_files(self.source)}
        found = [there[path] for path in sorted(more) if path in there]
        return range_of([*chosen.files, *found]), sorted(more - there.keys())


class TopicProbe(Probe[KafkaSource]):
    """Asks Kafka's brokers."""

    def measure(self, step: str, place: str, checkpoint: Checkpoint) -> Waiting:
        """Offsets between the checkpoint's and the brokers' last."""
        found = measure_topics(self.source, checkpoint)
        waiting = StepBacklog(
            step,
            records=found.records,
            record_bytes=found.record_bytes or RECORD_BYTES,
            oldest=found.oldest,
            warnings=describe_losses(found),
        )
        doubt = "the run has to look at what the brokers hold" if found.must_run else ""
        return Waiting(waiting, doubt)


class TableProbe(Probe[TableSource]):
    """Reads a Delta table's log."""

    def measure(self, step: str, place: str, checkpoint: Checkpoint) -> Waiting:
        """Commits since the one that was read last."""
        nothing = StepBacklog(step)
        if self.source.name is not None:
            return Waiting(nothing, "only Spark's catalog knows where the table lies")
        position = read_position(checkpoint, checkpoint.newest_commit)
        if position is not None and (why := position.why_another(place)):
            return Waiting(nothing, f"the source is not what was read before: {why}")
        found = measure_table(place, position)
        if found is None:
            return Waiting(nothing, "the table's log alone does not say what was read")
        return Waiting(
            StepBacklog(step, commits=found.commits, bytes=found.bytes, oldest=found.oldest)
        )


PROBES: dict[type[SourceKind], type[Probe]] = {
    FileSource: FileProbe,
    KafkaSource: TopicProbe,
    TableSource: TableProbe,
}


def probe_of(source: SourceKind) -> Probe:
    """What asks a source."""
    return PROBES.get(type(source), Probe)(source)
