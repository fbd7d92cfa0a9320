"""Reads a Spark checkpoint without Spark: which batches were planned and committed, the watermark,
the files seen.

Layout (Spark 4.2): `offsets/N` and `commits/N` hold `v1`, then JSON lines, of offsets one a source;
`sources/S/K` holds one JSON line a file of source S, compacted into `K.compact`.
"""

import json
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from ..storage import open_path, replace_file, spark_folder
from .seen import SeenArchive, SeenFile, list_folder, normalize_uri, numbered

_LOOKED = "looked.json"


def _json_lines(path: Path) -> list[dict]:
    """The JSON lines after the version line; `-` stands for a source without an offset."""
    text = path.read_text(encoding="utf-8").removeprefix(
        "\0"
    )  # Kafka's source begins its note with one, for the sake of Spark 2.1
    lines = text.split("\n")  # names may hold what splitlines takes for a line break
    if not lines or not lines[0].startswith("v"):
        raise ValueError(f"{path} does not start with a version line")
    told = ["{}" if line == "-" else line for line in lines[1:] if line]
    return json.loads(f"[{','.join(told)}]")  # at once: a third of the time of one by one


class Checkpoint:
    """A snapshot of one checkpoint folder (`<checkpoint>/spark`); an absent folder reads as an
    empty checkpoint. `number`: of the source that is asked about, in the order of a step's
    streams."""

    def __init__(self, folder: str | Path, number: int = 0) -> None:
        self.folder, self.number = open_path(folder), number

    @classmethod
    def below(cls, checkpoint: str, number: int = 0) -> "Checkpoint":
        """Spark's own part of a step's checkpoint."""
        return cls(spark_folder(checkpoint), number)

    def of_source(self, number: int) -> "Checkpoint":
        """The same as it is now, asked about another source."""
        return Checkpoint(self.folder, number)

    def beside(self, name: str) -> Path:
        """A file of ours beside Spark's folder, of this source."""
        return self.folder.parent / self._own(name)

    def within(self, name: str) -> Path:
        """A place of ours within Spark's folder, of this source."""
        return self.folder / self._own(name)

    def _own(self, name: str) -> str:
        """The first source's places are named as those of a step that has one alone."""
        stem, dot, suffix = name.partition(".")
        return f"{stem}-{self.number}{dot}{suffix}" if self.number else name

    @property
    def _source_log(self) -> Path:
        return self.folder / "sources" / str(self.number)

    @cached_property
    def offsets(self) -> dict[int, Path]:
        """Planned batches."""
        return numbered(list_folder(self.folder / "offsets"))

    @cached_property
    def commits(self) -> dict[int, Path]:
        """Finished batches."""
        return numbered(list_folder(self.folder / "commits"))

    @property
    def newest_commit(self) -> int | None:
        """Id of the newest finished batch; None before the first."""
        return max(self.commits, default=None)

    @property
    def open_batch(self) -> int | None:
        """Id of a batch that was planned and not finished; None when there is none."""
        newest = max(self.offsets, default=None)
        return newest if newest is not None and newest not in self.commits else None

    @property
    def watermark_ms(self) -> int | None:
        """The watermark the next batch starts from, epoch milliseconds; None before the first
        batch."""
        if self.newest_commit is None:
            return None
        lines = _json_lines(self.commits[self.newest_commit])
        return lines[0].get("nextBatchWatermarkMs") if lines else None

    @property
    def last_run(self) -> datetime | None:
        """When the newest batch was finished, UTC."""
        if self.newest_commit is None:
            return None
        return datetime.fromtimestamp(self.commits[self.newest_commit].stat().st_mtime, UTC)

    @property
    def looked_at(self) -> datetime | None:
        """When a run last found that it had no batch to make, UTC; None where none has noted it."""
        try:
            return datetime.fromisoformat(json.loads(self.beside(_LOOKED).read_text())["at"])
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError):
            return None

    def note_look(self) -> None:
        """Note that a run found no batch to make. Raises OSError."""
        if self.newest_commit is not None:
            replace_file(self.beside(_LOOKED), json.dumps({"at": datetime.now(UTC).isoformat()}))

    def batch_watermark_ms(self, batch: int) -> int:
        """The watermark in force in a planned batch; 0 before any event was seen."""
        return _json_lines(self.folder / "offsets" / str(batch))[0]["batchWatermarkMs"]

    @property
    def settings(self) -> dict[str, str]:
        """Spark's settings that the newest planned batch goes by, whatever the session says; empty
        before the first."""
        newest = max(self.offsets, default=None)
        if newest is None:
            return {}
        told = _json_lines(self.offsets[newest])[0].get("conf")
        return {name: str(value) for name, value in (told or {}).items()}

    def source_offset(self, batch: int | None) -> dict:
        """Where the source stands after a planned batch, as the source wrote it; empty before the
        first, or when it wrote nothing."""
        if batch is None or batch < 0:
            return {}
        lines = _json_lines(self.folder / "offsets" / str(batch))
        return lines[1 + self.number] if len(lines) > 1 + self.number else {}

    @property
    def source_kind(self) -> str | None:
        """The kind of source that the newest planned batch was read from, by the look of its
        offset; None before the first, and of a kind that nobody keeps."""
        offset = self.source_offset(max(self.offsets, default=None))
        if not isinstance(offset, dict) or not offset:
            return None
        for mark, kind in (("logOffset", "files"), ("reservoirVersion", "table")):
            if mark in offset:
                return kind
        return "kafka" if all(isinstance(parts, dict) for parts in offset.values()) else None

    def initial_offset(self) -> dict | None:
        """Where a Kafka source began, as it wrote it; None before its first run."""
        path = self._source_log / "0"
        lines = _json_lines(path) if path.exists() else []
        return lines[0] if lines else None

    def log_offset(self, batch: int | None) -> int:
        """The file source's position after a batch; -1 before the first."""
        return self.source_offset(batch).get("logOffset", -1)

    @cached_property
    def archive(self) -> SeenArchive:
        """The files that were read and that the source's log does not hold any more."""
        return SeenArchive(self.within("seen"))

    def all_notes(self) -> list[Path]:
        """Every file of the source's log, also those that another has packed."""
        return [
            p for p in list_folder(self._source_log) if p.name.removesuffix(".compact").isdigit()
        ]

    def notes(self, after: int = -1) -> list[Path]:
        """The files of the source's log that count. Args: after: only those of later positions;
        then most often only the last ones."""
        files = self.all_notes()
        compacts = {int(p.stem): p for p in files if p.suffix == ".compact"}
        base = max(compacts, default=-1)
        packed = [compacts[base]] if base > after else []
        return packed + [p for n, p in sorted(numbered(files).items()) if n > max(base, after)]

    def noted_files(self, after: int = -1) -> list[SeenFile]:
        """Every file in the source's log. Args: after: only those of later positions."""
        return [
            SeenFile(normalize_uri(e["path"]), e["timestamp"], e["batchId"])
            for path in self.notes(after)
            for e in _json_lines(path)
            if e["batchId"] > after
        ]

    def seen_files(self, after: int = -1) -> list[SeenFile]:
        """Every file the source has taken note of, read or about to be read. Args: after: only
        those of later positions."""
        noted = self.noted_files(after)  # first: what is moved meanwhile is then in both
        archived = self.archive.read(after)
        if not archived:
            return noted
        return list({file.path: file for file in (*archived, *noted)}.values())

    def batch_files(self, batch: int) -> list[SeenFile]:
        """The files of a planned batch."""
        low, high = self.log_offset(batch - 1), self.log_offset(batch)
        plain = [self._source_log / str(n) for n in range(low + 1, high + 1)]
        if all(p.exists() for p in plain):
            parts = [_json_lines(p) for p in plain]
            if all(parts):  # one without a file was shortened, or taken back
                return [
                    SeenFile(normalize_uri(e["path"]), e["timestamp"], e["batchId"])
                    for part in parts
                    for e in part
                ]
        return [f for f in self.seen_files() if low < f.log_id <= high]
