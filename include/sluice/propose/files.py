"""Files to learn from: which there are, which are looked at, and their bytes."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from ..errors import SourceError, SpecError

FILES = 100


def find_samples(path: Path) -> list[Path]:
    """A file, or the visible files below a folder, in the order of their names.

    Raises SpecError where there are none.
    """
    if path.is_dir():
        found = sorted(
            file
            for file in path.rglob("[!._]*")
            if file.is_file()
            and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        )
    else:
        found = [path] if path.is_file() else []
    if not found:
        raise SpecError(
            "the folder holds no file" if path.is_dir() else "no such file",
            where=str(path),
            do="Name the files to look at",
        )
    return found


def spread(files: list[Path], most: int = FILES) -> list[Path]:
    """At most so many of the files, the first and the last among them."""
    if len(files) <= most:
        return files
    return [files[round(place * (len(files) - 1) / (most - 1))] for place in range(most)]


def unreadable(file: Path, format: str, error: Exception) -> SourceError:
    """What is said of a file that is not what its name says."""
    return SourceError(
        f"cannot be read as {format}: {error}",
        where=str(file),
        do="Name its format with --format, or leave the file out",
    )


def open_bytes(file: Path) -> IO[bytes]:
    """A file, unpacked by its name: .gz, .bz2, .zst."""
    if file.suffix == ".zst":
        import zstandard

        return zstandard.ZstdDecompressor().stream_reader(file.open("rb"), closefd=True)
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
    return openers.get(file.suffix, open)(file, "rb")
