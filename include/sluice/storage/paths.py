"""The only place that joins paths: tables, checkpoints and reports under one root."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, cast

from .buckets import in_bucket

if TYPE_CHECKING:
    from upath import UPath

PROJECT = Path(os.environ.get("SLUICE_PROJECT") or Path(__file__).resolve().parents[3])
PIPELINES = PROJECT / "include" / "pipelines"


def is_remote(path: str | os.PathLike) -> bool:
    """True for `s3a://...` and the like; a folder of this machine otherwise."""
    return "://" in str(path) and not str(path).startswith("file:")


def depth_below(path: str, folder: str) -> int:
    """How long the name of a folder is that a file lies below, or is; 0 for another file. How a
    store is called (`s3`, `s3a`) does not count."""
    file, above = (text.partition("://")[2] or text for text in (path, folder.rstrip("/")))
    same = is_remote(path) == is_remote(folder)
    return 1 + len(above) if same and f"{file}/".startswith(f"{above}/") else 0


def open_remote(path: str | os.PathLike) -> "UPath":
    """A handle of a path in a bucket or another store, with its file system."""
    text = str(path)
    from upath import UPath

    if in_bucket(text):
        from fsspec import register_implementation

        from .bucket_files import BucketFileSystem

        # Only `s3a`: what else the process does with `s3` stays as it is.
        register_implementation("s3a", BucketFileSystem, clobber=True)
    return UPath(text.replace("s3://", "s3a://", 1))


def open_path(path: str | os.PathLike) -> Path:
    """A pathlib-like handle: `Path` for local paths, `UPath` for any other store (`s3://` is shown
    as `s3a://`)."""
    text = str(path)
    if is_remote(text):
        return cast(Path, open_remote(text))
    return Path(
        text.removeprefix("file://") if text.startswith("file://") else text.removeprefix("file:")
    )


def resolve_path(path: str, root: str) -> str:
    """A path as the user wrote it, below the root when it is relative; without a slash at its
    end."""
    if not is_remote(path) and not os.path.isabs(open_path(path)):
        path = f"{root}/{path}"
    return path.rstrip("/") if is_remote(path) else os.path.abspath(open_path(path))


def shares_files(path: str, other: str) -> bool:
    """True for two folders of which one is the other, or lies within it."""
    first, second = (
        f"{resolve_path(one, os.getcwd()).replace('s3://', 's3a://', 1)}/" for one in (path, other)
    )
    return first.startswith(second) or second.startswith(first)


def lease_folder(table: str) -> str:
    """Where the lease of a table lies: beside it, because a folder within belongs to Delta."""
    return _beside(table.rstrip("/"), "_leases")


def batches_folder(folder: str, name: str) -> str:
    """Where the plans of a folder's batches lie: beside it. A mount point has no beside that files
    could be renamed from: there it lies within."""
    mounted = not is_remote(folder) and os.path.ismount(folder)
    return f"{folder}/_batches/{name}" if mounted else f"{_beside(folder, '_batches')}/{name}"


def _beside(folder: str, kind: str) -> str:
    """A folder of ours for one of the user's: `a/b` -> `a/<kind>/b`."""
    parent, _, name = folder.rpartition("/")
    return f"{parent}/{kind}/{name}"


def spark_folder(checkpoint: str) -> str:
    """Spark's own part of a step's checkpoint: its offsets, commits and state."""
    return f"{checkpoint}/spark"


def delta_log(table: str) -> str:
    """Where a Delta table keeps its commits."""
    return f"{table}/_delta_log"


@dataclass(frozen=True)
class Paths:
    """Where one pipeline keeps what it makes. `root`: folder or URI; relative folders are made
    absolute. `pipeline`: its uid. `uids`: of those steps that have another than their name."""

    root: str
    pipeline: str
    uids: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def under(
        cls,
        root: str | os.PathLike | None,
        pipeline: str,
        uids: Mapping[str, str] | None = None,
    ) -> "Paths":
        """Paths below a root; by default `$SLUICE_ROOT`, else `.sluice` in the project."""
        text = str(root or os.environ.get("SLUICE_ROOT") or PROJECT / ".sluice")
        place = text.rstrip("/") if is_remote(text) else os.path.abspath(text)
        return cls(place, pipeline, uids or {})

    def _join(self, *parts: str) -> str:
        for part in parts:
            if ".." in part.split("/"):
                raise ValueError(f"{part!r} would leave the root {self.root}")
        return "/".join((self.root, *parts))

    def uid(self, step: str) -> str:
        """What a step's places are named by, below the pipeline's."""
        return self.uids.get(step, step)

    def home(self, step: str) -> str:
        """`pipeline/step`, by which the keys of a step's batches begin."""
        return f"{self.pipeline}/{self.uid(step)}"

    def table(self, step: str, name: str | None = None) -> str:
        """The target of a step."""
        if name and (name.startswith("/") or "://" in name):
            return name
        return self._join("tables", name or self.home(step))

    def quarantine(self, step: str) -> str:
        """The quarantine table of a step."""
        return self._join("tables", self.pipeline, f"{self.uid(step)}__quarantine")

    def late(self, step: str) -> str:
        """The late table of a step."""
        return self._join("tables", self.pipeline, f"{self.uid(step)}__late")

    def trial(self, run_id: str) -> "Paths":
        """Paths of a trial: a root of its own, below `dev/`, that no other run knows."""
        return Paths(self._join("dev", run_id), self.pipeline, self.uids)

    def verdicts(self) -> str:
        """Folder of the reports of runs that verify, beside those of the runs that read."""
        return f"{self.reports()}/verified"

    def verification(self) -> "Paths":
        """Paths below which steps are run once more, to be compared with what they are."""
        return Paths(self._join("verify", self.pipeline), self.pipeline, self.uids)

    def lease(self, step: str, backfill: str | None = None) -> str:
        """Where the lease of a step's checkpoint lies."""
        return f"{self.checkpoint(step, backfill)}/lease"

    def checkpoint(self, step: str, backfill: str | None = None) -> str:
        """Folder that holds `spark/` (Spark's own checkpoint), our manifest and the lease."""
        return (
            self._join("backfills", self.pipeline, backfill, self.uid(step))
            if backfill
            else self._join("checkpoints", self.home(step))
        )

    def named_files(self, step: str) -> str:
        """Where the files that a queue named are told to Spark."""
        return f"{self.checkpoint(step)}/named"

    def position(self, step: str, sink: str) -> str:
        """The file that says what a further sink has got. Args: sink: its title."""
        readable = re.sub(r"[^A-Za-z0-9._-]+", "-", sink).strip("-")[:80]
        unique = sha256(sink.encode()).hexdigest()[:8]
        return f"{self.positions(step)}/{readable}-{unique}.json"

    def positions(self, step: str) -> str:
        """Folder of the positions of a step's further sinks; their lease lies there as well."""
        return self._join("positions", self.home(step))

    def every_position(self) -> str:
        """Folder of the positions of all pipelines and steps."""
        return self._join("positions")

    def reports(self) -> str:
        """Folder with one JSON and one HTML file a run."""
        return self._join("reports", self.pipeline)
