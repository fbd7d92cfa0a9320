"""What lands before a run of a worked pipeline, and how it gets to where the pipeline reads."""

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..report.units import format_amount, format_bytes


@dataclass(frozen=True)
class Landing:
    """What arrives together. `title`: what a person calls it; `files`: path below the landing
    folder -> bytes; `messages`: topic -> key and value of each record."""

    title: str
    files: dict[str, bytes]
    messages: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """How many records are sent."""
        return sum(map(len, self.messages.values()))

    @property
    def amount(self) -> str:
        """How much it is, for a person."""
        size = sum(map(len, self.files.values()))
        told = [f"{format_amount(len(self.files), 'file')}, {format_bytes(size)}"]
        told += [f"{len(sent):,} records to {topic}" for topic, sent in self.messages.items()]
        return "; ".join(told if self.files else told[1:])


Deliver = Callable[[Landing], None]


def pack(name: str, text: str) -> bytes:
    """A text's bytes on disk, gzipped where the name says so; a gzip header would hold the time of
    day, so it is left at zero."""
    data = text.encode()
    return gzip.compress(data, mtime=0) if name.endswith(".gz") else data


@contextmanager
def set_environment(**names: str) -> Iterator[None]:
    """Set environment variables during the block."""
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def deliver_files(root: Path) -> Iterator[Deliver]:
    """Landings become files below `<root>/landing`, which $LANDING names meanwhile."""
    folder = root / "landing"

    def deliver(landing: Landing) -> None:
        for name, content in landing.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    with set_environment(LANDING=str(folder)):
        yield deliver
