"""What a backfill reads: the landing files of a range, through a checkpoint of its own that goes when it is done."""

import re
from dataclasses import dataclass, field
from datetime import datetime

from ..errors import SpecError
from ..spec import FileSource, Pipeline, RateSource, RunRequest, SocketSource, Step, Window
from ..storage import Paths, is_remote, remove_tree
from . import LandedFile, files_in_window

_SPECIAL = re.compile(r"([\\{}\[\]*?,^])")


@dataclass(frozen=True)
class Range:
    """What a backfill of a window reads. Of files: those of the window, and the path and name globs that make Spark's file source list these alone."""

    files: list[LandedFile] = field(default_factory=list)
    path: str = ""
    pattern: str = ""
    since: datetime | None = None
    """Topics and tables: the moment from which their records may belong to the window; every one after it is looked at."""

    @property
    def is_empty(self) -> bool:
        """True when nothing can belong to the window."""
        return not self.files and self.since is None

    @property
    def bytes(self) -> int | None:
        """How much is read; None when it is not known beforehand."""
        return sum(f.size for f in self.files) if self.since is None else None


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _any_of(names: list[str]) -> str:
    return _escape(names[0]) if len(names) == 1 else "{" + ",".join(_escape(n) for n in names) + "}"


def _any_folder(folders: list[str]) -> str:
    """A glob for some folders of one store: its scheme and bucket come before the glob, because Hadoop reads them first."""
    store = "/".join([*folders[0].split("/", 3)[:3], ""]) if is_remote(folders[0]) else ""
    return store + _any_of([f"{folder}/".removeprefix(store).rstrip("/") for folder in folders])


def select_range(step: Step, window: Window) -> Range:
    """What a backfill of this window reads. Raises SourceError when the landing folder is absent, SpecError for a source that cannot be read again."""
    source = step.source
    if isinstance(source, RateSource | SocketSource):
        raise SpecError(
            "this source cannot be read again",
            where=f"{step.name}: source",
            value=source.kind,
            do="Backfill a step that reads files, a topic or a table",
        )
    if not isinstance(source, FileSource):
        if step.event_time is None:
            raise SpecError(
                "a backfill needs `event_time` to tell which rows belong to the range",
                where=step.name,
                do="Name the column that says when a row happened",
            )
        # A record is written after what it tells of, save for a clock that is ahead: by `max_future` at most, or its row is refused.
        return Range(since=window.start - step.event_time.max_future)
    files = files_in_window(source, window)
    folders = sorted({f.path.rsplit("/", 1)[0] for f in files})
    names = sorted({f.name for f in files})
    return Range(files, _any_folder(folders) if folders else "", _any_of(names) if names else "")


def remove_checkpoint(paths: Paths, pipeline: Pipeline, request: RunRequest) -> None:
    """Remove the checkpoint of a finished backfill: repeating it reads everything again, and the table's keys keep it from doubling."""
    for step in pipeline.steps:
        remove_tree(paths.checkpoint(step.name, request.backfill))
