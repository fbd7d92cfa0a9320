"""Lists a landing folder as Spark's file source would, without Spark."""

import glob
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from ..errors import SourceError
from ..spec import FileSource, Window, is_remote, open_path

_SUFFIXES = (".tmp", "._COPYING_")


@dataclass(frozen=True)
class LandedFile:
    """A file that lies in the landing folder. `path`: as `normalize_uri` writes it; `modified`: epoch seconds."""

    path: str
    size: int
    modified: float

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]


def expand_braces(pattern: str) -> list[str]:
    """`a{b,c}` -> `ab`, `ac`: Hadoop's globs know braces, Python's do not."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if match is None:
        return [pattern]
    return [p for part in match[1].split(",") for p in expand_braces(pattern[: match.start()] + part + pattern[match.end() :])]


def is_hidden(name: str) -> bool:
    """True for names no run ever reads: hidden ones and files still being written."""
    return name.startswith((".", "_")) or name.endswith(_SUFFIXES)


def source_root(source: FileSource) -> str:
    """The source's path made absolute where it is a local one."""
    return source.path if is_remote(source.path) else os.path.abspath(source.path.removeprefix("file://"))


def list_files(source: FileSource) -> list[LandedFile]:
    """Every file the source would read, oldest first. Raises SourceError when the folder is absent or cannot be read."""
    root = source_root(source)
    walk = _walk_remote if is_remote(root) else _walk_local
    patterns = expand_braces(source.pattern)
    found = {f.path: f for f in walk(root) if not is_hidden(f.name) and any(fnmatchcase(f.name, p) for p in patterns)}
    return sorted(found.values(), key=lambda f: (f.modified, f.path))


def _walk_local(root: str) -> Iterator[LandedFile]:
    starts = [p for pattern in expand_braces(root) for p in ([pattern] if os.path.exists(pattern) else glob.glob(pattern))]
    if not starts and not glob.has_magic(root):
        raise SourceError("the landing folder does not exist", where=root, do="Create it, or mend `source.path`")
    for start in starts:
        if os.path.isfile(start):
            yield _stat(start)
            continue
        if not os.access(start, os.R_OK | os.X_OK):
            raise SourceError("the landing folder cannot be read", where=start, do="Give the user that runs the pipeline read access")
        visited: set[str] = set()
        for folder, folders, names in os.walk(start, followlinks=True):
            real = os.path.realpath(folder)
            if real in visited:  # a symlink back up would never end
                folders.clear()
                continue
            visited.add(real)
            folders[:] = [f for f in folders if not f.startswith(".") and (not f.startswith("_") or "=" in f)]  # as Spark hides them
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    yield _stat(path)


def _stat(path: str) -> LandedFile:
    info = os.stat(path)
    return LandedFile(path, info.st_size, info.st_mtime)


def _walk_remote(root: str) -> Iterator[LandedFile]:
    base = open_path(root)
    scheme = root.split("://", 1)[0]
    for path, info in base.fs.find(base.path, detail=True).items():
        modified = info.get("LastModified") or info.get("mtime") or 0
        yield LandedFile(f"{scheme}://{path.lstrip('/')}", info["size"], modified.timestamp() if isinstance(modified, datetime) else float(modified))


_DIRECTIVES = {"%Y": r"\d{4}", "%m": r"\d{2}", "%d": r"\d{2}", "%H": r"\d{2}", "%M": r"\d{2}", "%j": r"\d{3}", "%y": r"\d{2}", "%S": r"\d{2}"}


def file_date(path: str, root: str, pattern: str) -> datetime | None:
    """The date a file's relative path carries under a strptime pattern; None when it carries none."""
    relative = path.removeprefix(root).lstrip("/")
    regex = "".join(_DIRECTIVES.get(part, re.escape(part)) for part in re.split(r"(%[A-Za-z])", pattern))
    for text in (relative, PurePosixPath(relative).name):
        match = re.search(rf"(?<!\d){regex}(?!\d)", text)
        if match:
            try:
                return datetime.strptime(match[0], pattern)
            except ValueError:
                continue
    return None


def files_in_window(source: FileSource, window: Window) -> list[LandedFile]:
    """The files whose date lies in a window; every file when the source declares no `file_date`."""
    files, root = list_files(source), source_root(source)
    if source.file_date is None:
        return files
    start, end = window.start.replace(tzinfo=None), window.end.replace(tzinfo=None)
    dated = ((f, file_date(f.path, root, source.file_date)) for f in files)
    return [f for f, date in dated if date is not None and start <= date < end]
