"""Moves files that other programs wrote: whole, never over another file, and whatever a killed move
left behind is completed by the next one."""

import errno
import os
import shutil
from pathlib import Path

from .paths import is_remote, open_path, open_remote

_AT_ONCE = 1 << 20


def remove_file(path: str) -> None:
    """Remove a file; what is gone already is no error. Raises OSError."""
    if is_remote(path):
        remote = open_remote(path)
        remote.fs.rm(remote.path)
    else:
        Path(path).unlink(missing_ok=True)


def move_file(path: str, to: str) -> None:
    """Move a file within a disk, or between buckets of one store.

    Raises FileExistsError where another file lies there, OSError and TransientError.
    """
    if open_path(to).exists():
        # The same bytes are what a move that was killed half-way has copied.
        if not _is_same(path, to):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), to)
    elif is_remote(path):
        remote = open_remote(path)
        remote.fs.cp_file(remote.path, open_remote(to).path)
    else:
        _move_local(Path(path), Path(to))
        return
    remove_file(path)


def _move_local(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.rename(to)
        return
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    unfinished = to.with_name(f".{to.name}.tmp")  # another disk
    shutil.copy2(path, unfinished)
    with open(unfinished, "rb") as copied:
        os.fsync(copied.fileno())
    unfinished.rename(to)
    path.unlink()


def _is_same(path: str, to: str) -> bool:
    if open_path(path).stat().st_size != open_path(to).stat().st_size:
        return False
    with open_path(path).open("rb") as first, open_path(to).open("rb") as second:
        while piece := first.read(_AT_ONCE):
            if piece != second.read(len(piece)):
                return False
    return True
