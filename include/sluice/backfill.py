"""What a backfill reads: the landing files of a range, through a checkpoint of its own that goes when it is done."""

import re
from dataclasses import dataclass

from .backlog import LandedFile, files_in_window
from .spec import FileSource, Paths, Pipeline, RunRequest, Window, is_remote, remove_tree

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


def _any_folder(folders: list[str]) -> str:
    """A glob for some folders of one store: its scheme and bucket come before the glob, because Hadoop reads them first."""
    store = "/".join([*folders[0].split("/", 3)[:3], ""]) if is_remote(folders[0]) else ""
    return store + _any_of([f"{folder}/".removeprefix(store).rstrip("/") for folder in folders])


def select_range(source: FileSource, window: Window) -> Range:
    """The files a backfill of this window reads. Raises SourceError when the landing folder is absent."""
    files = files_in_window(source, window)
    folders = sorted({f.path.rsplit("/", 1)[0] for f in files})
    names = sorted({f.name for f in files})
    return Range(files, _any_folder(folders) if folders else "", _any_of(names) if names else "")


def remove_checkpoint(paths: Paths, pipeline: Pipeline, request: RunRequest) -> None:
    """Remove the checkpoint of a finished backfill: repeating it reads everything again, and the table's keys keep it from doubling."""
    for step in pipeline.steps:
        remove_tree(paths.checkpoint(step.name, request.backfill))
