"""Small files that must be whole or absent: manifests, notes of batches, reports, leases."""

import errno
import os
import shutil
from pathlib import Path
from uuid import uuid4

from .paths import is_remote, open_path, open_remote


def replace_file(path: Path, text: str) -> None:
    """Put a whole file in place of the old one, or none: an object store does so by itself, a
    folder needs a rename. Raises OSError."""
    if is_remote(path):
        remote = open_remote(path)
        remote.fs.pipe_file(remote.path, text.encode())
        return
    unfinished = path.with_name(f".{path.name}.{uuid4().hex[:8]}.tmp")
    try:
        _write_through(unfinished, text)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def forget_checksum(path: Path) -> None:
    """Remove what Hadoop keeps beside a local file of its own, before the file is written anew or
    removed: without a checksum it checks nothing, with a wrong one it reads nothing."""
    if not is_remote(path):
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def remove_tree(path: str | os.PathLike) -> None:
    """Remove a folder and everything in it; nothing when it is not there."""
    if not is_remote(path):
        shutil.rmtree(open_path(path), ignore_errors=True)
    elif (folder := open_remote(path)).exists():
        folder.fs.rm(folder.path, recursive=True)


def create_file(path: Path, text: str) -> bool:
    """Create a whole file of a local disk; False when it is there already. Raises OSError."""
    unfinished = path.with_name(f".{path.name}.{uuid4().hex[:8]}.tmp")
    try:
        _write_through(unfinished, text)
        os.link(unfinished, path)  # unlike a rename, never replaces
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        return _create_in_place(path, text)  # a file system without links
    finally:
        unfinished.unlink(missing_ok=True)
    return True


def _create_in_place(path: Path, text: str) -> bool:
    try:
        _write_through(path, text)
    except FileExistsError:
        return False
    return True


def _write_through(path: Path, text: str) -> None:
    with open(path, "xb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
