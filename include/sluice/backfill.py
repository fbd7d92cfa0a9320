"""What a backfill reads: the landing files of a range, through a checkpoint of its own that goes when it is done."""

import re
import shutil
from dataclasses import dataclass

from .backlog import LandedFile, files_in_window
from .spec import FileSource, Paths, Pipeline, RunRequest, Window, is_remote, open_path

_SPECIAL = re.compile(r"([\\{}\[\]*?,^])")


@dataclass(frozen=True)
class Range:
    """The files of a window, and the path and name globs that make Spark's file source list these alone."""

    files: list[LandedFile]
    path: str
    pattern: str


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _any_of(names: list[str]) -> str:
    return _escape(names[0]) if len(names) == 1 else "{" + ",".join(_escape(n) for n in names) + "}"


def select_range(source: FileSource, window: Window) -> Range:
    """The files a backfill of this window reads. Raises SourceError when the landing folder is absent."""
    files = files_in_window(source, window)
    folders = sorted({f.path.rsplit("/", 1)[0] for f in files})
    names = sorted({f.name for f in files})
    return Range(files, _any_of(folders) if folders else "", _any_of(names) if names else "")


def remove_checkpoint(paths: Paths, pipeline: Pipeline, request: RunRequest) -> None:
    """Remove the checkpoint of a finished backfill: repeating it reads everything again, and the table's keys keep it from doubling."""
    for step in pipeline.steps:
        folder = paths.checkpoint(step.name, request.backfill)
        if is_remote(folder):
            open_path(folder).rmdir(recursive=True)
        else:
            shutil.rmtree(folder, ignore_errors=True)
