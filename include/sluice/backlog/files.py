"""Lists a landing folder as Spark's file source would, without Spark."""

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from operator import itemgetter
from pathlib import PurePosixPath
from typing import NamedTuple

from ..errors import SourceError
from ..spec import FileSource, Window
from ..storage import in_bucket, is_remote, open_path, open_remote
from .buckets import walk_bucket
from .globs import compile_glob, expand_braces, expand_path, has_magic

_SUFFIXES = (".tmp", "._COPYING_")
_BY_AGE = itemgetter(2, 0)
"""Modified, then by path."""


class LandedFile(NamedTuple):
    """A file that lies in the landing folder. `path`: as `normalize_uri` writes it; `modified`:
    epoch seconds. A tuple, because there may be a million of them."""

    path: str
    size: int
    modified: float

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]


def is_hidden(name: str) -> bool:
    """True for names no run ever reads: hidden ones and files still being written."""
    return name.startswith((".", "_")) or name.endswith(_SUFFIXES)


def is_hidden_folder(name: str) -> bool:
    """True for folders below the landing folder that Spark does not enter: its own rule, to the
    letter."""
    hidden = (
        (name.startswith("_") and "=" not in name)
        or name.startswith(".")
        or name.endswith("._COPYING_")
    )
    return hidden and not name.startswith(("_metadata", "_common_metadata"))


def source_root(source: FileSource) -> str:
    """The source's path made absolute where it is a local one."""
    return source.path if is_remote(source.path) else os.path.abspath(open_path(source.path))


def can_be_named(source: FileSource) -> bool:
    """Whether we write a file's address as Spark does; elsewhere it may have a server's name in it,
    which we do not know."""
    root = source_root(source)
    return in_bucket(root) or not is_remote(root)


def list_files(source: FileSource) -> list[LandedFile]:
    """Every file the source would read, oldest first. Raises SourceError when the folder is absent
    or cannot be read."""
    return sort_by_age({file.path: file for file in walk_files(source)}.values())


def sort_by_age(files: Iterable[LandedFile]) -> list[LandedFile]:
    """The oldest first."""
    return sorted(files, key=_BY_AGE)


def walk_files(source: FileSource, after: str | None = None) -> Iterator[LandedFile]:
    """Every file the source would read, in no order; one to which several globs lead comes several
    times.

    Args: after: on a disk or in a bucket, only files whose paths sort after this one. Raises
    SourceError as `list_files`.
    """
    root = source_root(source)
    listed: Iterable[LandedFile]
    if in_bucket(root):
        listed = (LandedFile(*one) for one in walk_bucket(root, after))
    else:
        listed = _walk_remote(root) if is_remote(root) else _walk_local(root, after or "")
    wanted = _compile_pattern(source)
    return (file for file in listed if wanted(file.name))


def is_wanted(source: FileSource, name: str) -> bool:
    """True for a file name the source reads: not hidden, and of its pattern."""
    return _compile_pattern(source)(name)


def _compile_pattern(source: FileSource) -> Callable[[str], bool]:
    globs = (compile_glob(pattern).pattern for pattern in expand_braces(source.pattern))
    matches = re.compile("|".join(f"(?:{glob})" for glob in globs), re.DOTALL).fullmatch
    return lambda name: not is_hidden(name) and matches(name) is not None


def _walk_local(root: str, after: str) -> Iterator[LandedFile]:
    starts = expand_path(root)
    if not starts and not has_magic(root):
        raise SourceError(
            "the landing folder does not exist", where=root, do="Create it, or mend `source.path`"
        )
    if not starts and os.path.exists(root):
        raise SourceError(
            "the landing folder's name reads as a glob that matches nothing",
            where=root,
            do="Write a backslash before each of {}[]*?",
        )
    for start in starts:
        if os.path.isfile(start):
            yield from filter(None, [find_file(start)])
            continue
        if not os.access(start, os.R_OK | os.X_OK):
            raise _refused(start)
        for folder, folders, names in os.walk(start, followlinks=True, onerror=_raise_unless_gone):
            place = os.path.join(folder, "")
            folders[:] = [
                f for f in folders if not is_hidden_folder(f) and _reaches(f"{place}{f}/", after)
            ]
            for name in folders:
                _refuse_endless(start, folder, name)
            paths = (place + name for name in names)
            yield from filter(None, (find_file(path) for path in paths if path > after))


def _reaches(folder: str, after: str) -> bool:
    """True for a folder that may hold files whose paths sort after this one."""
    return folder > after or after.startswith(folder)


def _refused(folder: str) -> SourceError:
    return SourceError(
        "the landing folder cannot be read",
        where=folder,
        do="Give the user that runs the pipeline read access",
    )


def _raise_unless_gone(error: OSError) -> None:
    """A folder that cannot be read may hold new files: "nothing new" would be a guess.

    One that was removed meanwhile holds none.
    """
    if not isinstance(error, FileNotFoundError):
        raise _refused(error.filename) from error


def _refuse_endless(start: str, folder: str, name: str) -> None:
    """Raise for a link to a folder on the way to it: Spark would read each file below it forty
    times over, and two such links would never end."""
    path = os.path.join(folder, name)
    if not os.path.islink(path):
        return
    target, above = os.path.realpath(path) + "/", [start]
    for part in os.path.relpath(folder, start).split("/"):
        above.append(os.path.join(above[-1], part))
    if any((os.path.realpath(one) + "/").startswith(target) for one in above):
        raise SourceError(
            "a link leads back to a folder above it, and Spark would read every file there again "
            "and again",
            where=path,
            value=target[:-1],
            do="Remove the link",
        )


def find_file(path: str) -> LandedFile | None:
    """The file at a local path as it is now; None when it is gone, no file at all, or a link that
    ends nowhere."""
    try:
        info = os.stat(path)
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) or error.errno == errno.ELOOP:
            return None
        raise
    regular = stat.S_ISREG(info.st_mode)
    return LandedFile(path, info.st_size, info.st_mtime) if regular else None


def _walk_remote(root: str) -> Iterator[LandedFile]:
    base = open_remote(root)
    scheme = root.split("://", 1)[0]
    for path, info in base.fs.find(base.path, detail=True).items():
        modified = info.get("LastModified") or info.get("mtime") or 0
        yield LandedFile(
            f"{scheme}://{path.lstrip('/')}",
            info["size"],
            modified.timestamp() if isinstance(modified, datetime) else float(modified),
        )


_DIRECTIVES = {
    "%Y": r"\d{4}",
    "%m": r"\d{2}",
    "%d": r"\d{2}",
    "%H": r"\d{2}",
    "%M": r"\d{2}",
    "%j": r"\d{3}",
    "%y": r"\d{2}",
    "%S": r"\d{2}",
}


def file_date(path: str, root: str, pattern: str) -> datetime | None:
    """The date a file's relative path carries under a strptime pattern; None when it carries
    none."""
    relative = path.removeprefix(root).lstrip("/")
    regex = "".join(
        _DIRECTIVES.get(part, re.escape(part)) for part in re.split(r"(%[A-Za-z])", pattern)
    )
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
