"""What a look at a landing folder says against what its source declares, before any run."""

import os

from ..errors import SourceError, suggest
from ..spec import FileSource
from ..storage import is_remote
from .files import LandedFile, file_date, list_files, source_root


def describe_landing(source: FileSource) -> list[str]:
    """Sentences about the folder of a source on a disk: that it is not there, that no name fits
    `pattern`, or that names carry no date by `file_date`. Empty where all is well, or where the
    folder lies elsewhere and a look would cost requests."""
    if is_remote(source.path):
        return []
    try:
        files = list_files(source)
    except SourceError as error:
        return [f"source: {error}. {_nearest_folder(source.path)}".rstrip(". ")]
    if not files:
        return [f"source.pattern: no file in {source.path} has a name like {source.pattern!r} yet"]
    return _describe_dates(source, files) if source.file_date else []


def _nearest_folder(path: str) -> str:
    """`Did you mean 'landing'?` where the folder above has one of a name like the last of a
    path."""
    above, name = os.path.split(path.rstrip("/"))
    try:
        beside = [entry.name for entry in os.scandir(above or ".") if entry.is_dir()]
    except OSError:
        return ""
    return suggest(name, beside)


def _describe_dates(source: FileSource, files: list[LandedFile]) -> list[str]:
    root, pattern = source_root(source), source.file_date or ""
    without = [f.name for f in files if file_date(f.path, root, pattern) is None]
    if not without:
        return []
    many = "none" if len(without) == len(files) else f"{len(files) - len(without):,}"
    return [
        f"source.file_date: {many} of {len(files):,} file names carry a date by {pattern!r}, and a "
        f"backfill leaves the others out (first: {min(without)})"
    ]
