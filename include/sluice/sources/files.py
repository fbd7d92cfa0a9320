"""Files of a folder as a source: listed by us, read by Spark, each by its own columns; a file that
nobody can read is one quarantined record."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, Self

from pyspark.sql import DataFrame, SparkSession

from ..backlog import (
    LandedFile,
    can_be_named,
    is_hidden,
    keep_unreadable,
    list_files,
    look_or_recall,
    source_root,
)
from ..checkpoint import Checkpoint
from ..errors import TransientError
from ..spark.failure import UnplannedFiles, UnreadableFile
from ..spec import FileSource
from ..storage import depth_below, in_bucket, is_remote, open_path
from .file_stream import Place, open_stream
from .intake import UNPACKED, BatchInput, Intake, Opening, Room, crowds
from .named import write_names
from .parse.headers import why_unpackable
from .parse.layouts import EMBEDDED, Layout, find_layouts, has_layouts, reads_whole_files


class FileIntake(Intake[FileSource]):
    """Files that wait in a folder. `path`, `pattern`: narrower than the source's, for a backfill;
    with `named`, `path` is where the log of the files' names is written."""

    def __init__(
        self,
        source: FileSource,
        files: list[LandedFile],
        path: str | None = None,
        pattern: str | None = None,
        named: bool = False,
    ) -> None:
        super().__init__(source)
        self.path, self.pattern, self.named = path, pattern, named
        self.unreadable: dict[str, str] = {}
        self._expect(files)

    @classmethod
    def of(cls, opening: Opening[FileSource]) -> Self:
        """The files of a backfill's range, those that a queue named, or those that a look at the
        folder finds; of a crowded one they are told to Spark, which would list it twice, and of one
        whose old files Spark does not know they have to be."""
        source, chosen, arrivals = opening.source, opening.chosen, opening.arrivals
        if opening.checkpoint is None:
            return cls(source, [], opening.landing)
        if chosen is not None:
            return cls(source, chosen.files, chosen.path, chosen.pattern)
        if arrivals is not None and not arrivals.listed:
            return cls(source, arrivals.files, opening.named, named=True)
        look = look_or_recall(source, opening.checkpoint)
        named = look.is_named and can_be_named(source)
        return cls(source, look.waiting, opening.named if named else None, named=named)

    def _expect(self, files: list[LandedFile]) -> None:
        self.files, self.sizes = files, {f.path: f.size for f in files}

    @property
    def total(self) -> int:
        """Bytes."""
        return sum(self.sizes.values())

    def cut(self, room: Room) -> bool:
        """Read in batches of so many bytes of text; of many small files in fewer bytes, because
        Spark takes one of both bounds."""
        packed = self.source.format in EMBEDDED or any(_is_compressed(f.path) for f in self.files)
        bound = room.size // UNPACKED if packed else room.size
        if len(self.files) > room.files:
            bound = min(bound, self.total * room.files // len(self.files))
        if self.source.is_bounded or not self.total > bound > 0:
            return False
        self.source = self.source.model_copy(update={"max_bytes_per_batch": bound})
        return True

    def has_overfull(self, checkpoint: Checkpoint, batch: int) -> bool | None:
        """By the number and the sizes of its files. None for those that a queue names, and where
        one is gone, which only that plan tells."""
        source, paths = self.source, [file.path for file in checkpoint.batch_files(batch)]
        if source.queue is not None or not all(path in self.sizes for path in paths):
            return None
        size = sum(self.sizes[path] for path in paths)
        most, bound = source.max_files_per_batch, source.max_bytes_per_batch
        over = (most is not None and len(paths) > most) or (bound is not None and size > bound)
        return over and len(paths) > 1

    def open(self, spark: SparkSession) -> DataFrame:
        """Every record of every file.

        Raises SpecError for an encoding Java does not know, SourceError where files contradict the
        schema.
        """
        layouts = find_layouts(self.files, self.source)
        self.warnings = _drift_warnings(layouts, self.source)
        if self.named and self.path:
            write_names(spark, self.path, self.files)
        place = Place(self.path or source_root(self.source), self.pattern or self.source.pattern)
        return open_stream(spark, self.source, layouts, self.unreadable, place)

    def inspect(self, checkpoint: Checkpoint, batch: int) -> BatchInput:
        """The files of a planned batch.

        Raises UnplannedFiles for one whose columns were not known when the stream was built.
        """
        paths = [f.path for f in checkpoint.batch_files(batch)]
        unplanned = [path for path in paths if path not in self.sizes and not _is_hidden(path)]
        if unplanned and has_layouts(self.source):
            raise UnplannedFiles(unplanned)
        size, lost = sum(self.sizes.get(path, 0) for path in paths), self._unreadable_among(paths)
        keep_unreadable(self.source, checkpoint, lost)
        return BatchInput(
            amount=size,
            files=len(paths),
            bytes=size,
            names=tuple(paths),
            scan=self._scan,
            lost=lost,
            costly=size > 0,
            large=crowds(size),
        )

    @property
    def _scan(self) -> Literal["exact", "at least", "unknown"]:
        """A line of text may be blank, a header or a comment; a whole file may hold many."""
        if self.source.format in EMBEDDED:
            return "exact"
        return "unknown" if reads_whole_files(self.source) else "at least"

    def _unreadable_among(self, paths: list[str]) -> dict[str, str]:
        """Files that cannot be read, and why: those a reader failed on, those it finds no rows in,
        and those deleted since they were listed."""
        here = set(paths)
        found = {path: why for path, why in self.unreadable.items() if path in here}
        if self.source.format not in EMBEDDED:
            found |= {
                path: why
                for path in paths
                if path not in found and not _is_hidden(path) and (why := why_unpackable(path))
            }
        # A hidden name is gone as soon as its writer gives it the real one; it was no record
        # anyway.
        named = [path for path in paths if path not in found and not _is_hidden(path)]
        with ThreadPoolExecutor(16) as pool:
            there = list(
                pool.map(
                    lambda path: (
                        open_path(path).exists() if is_remote(path) else os.path.exists(path)
                    ),
                    named,
                )
            )
        gone = [path for path, exists in zip(named, there, strict=True) if not exists]
        return found | dict.fromkeys(gone, "the file was deleted between listing and reading")

    def depth(self, path: str) -> int:
        """That of the folder; elsewhere than on a disk or in a bucket Spark may write another
        address than we."""
        source = self.source
        root = source_root(source.model_copy(update={"path": source.fixed_folder}))
        if is_remote(root) and not in_bucket(root):
            return int(is_remote(path))
        return depth_below(path, root)

    def absorb(self, error: Exception) -> None:
        """Leave out a file that no reader can read; expect one that landed meanwhile."""
        if isinstance(error, UnreadableFile):
            if error.path in self.unreadable:
                raise TransientError(
                    error.why,
                    where=error.path,
                    do="Move the file out of the landing folder if it stays so",
                ) from None
            self.unreadable[error.path] = error.why
        elif isinstance(error, UnplannedFiles):
            listed = {f.path: f for f in list_files(self.source)}
            self._expect(
                [*self.files, *(listed.get(path, LandedFile(path, 0, 0.0)) for path in error.paths)]
            )
        else:
            raise error


def _is_compressed(path: str) -> bool:
    return path.lower().endswith((".gz", ".bz2", ".zst"))


def _is_hidden(path: str) -> bool:
    return is_hidden(path.rsplit("/", 1)[-1])


def _drift_warnings(layouts: dict[Layout, list[str]], source: FileSource) -> list[str]:
    """What changed in the headers: columns that are absent read as NULL, unknown ones are
    rescued."""
    warnings = []
    for layout, paths in layouts.items():
        for names, verdict in (
            (layout.missing(source.columns), "lack and read as NULL"),
            (layout.unknown, "have beside the schema"),
        ):
            if names:
                shown = ", ".join(n if len(n) <= 80 else n[:80] + "…" for n in names[:20]) + (
                    f" and {len(names) - 20} more" if len(names) > 20 else ""
                )
                warnings.append(
                    f"columns that {len(paths)} file(s) {verdict}: {shown} (first: "
                    f"{paths[0].rsplit('/', 1)[-1]})"
                )
    return warnings
