"""What we know of a checkpoint that Spark does not keep: its generation."""

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from uuid import uuid4

from ..errors import PreflightError
from ..storage import open_path, replace_file

_FORGET = (
    "Restore the manifest, or remove the whole checkpoint folder: "
    "keys in the table keep re-read rows from being doubled"
)
_FORGET_ALL = (
    "Restore the manifest from a backup. Do not remove the checkpoint alone: this step appends "
    "without `dedup`, so everything would be read and written a second time. Where there is no "
    "backup, move checkpoint and target away together: the next run fills a new table"
)


@dataclass(frozen=True)
class Manifest:
    """A checkpoint's identity. `generation`: part of every write's key, because a new checkpoint
    counts its batches from 0 again."""

    generation: str
    created: str
    target: str | None = None
    """The table its batches fill; empty for none, None where an older version did not note it."""


def open_manifest(checkpoint: str, *, remembers: bool = True) -> Manifest:
    """Read a checkpoint's manifest, or write the first one.

    Args: remembers: the step's target holds keys that keep rows from coming in twice.
    Raises PreflightError for a checkpoint that lost its manifest.
    """
    path = open_path(checkpoint) / "manifest.json"
    if path.exists():
        try:
            return Manifest(**json.loads(path.read_text()))
        except (ValueError, TypeError) as error:
            raise PreflightError(
                f"the checkpoint's manifest is damaged: {error}",
                where=str(path),
                do="Restore it; its generation keeps replayed batches from being written twice",
            ) from None
    if (open_path(checkpoint) / "spark" / "commits").exists():
        raise PreflightError(
            "the checkpoint has no manifest, so what it wrote cannot be told from what it did not",
            where=str(path),
            do=_FORGET if remembers else _FORGET_ALL,
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(uuid4().hex[:12], datetime.now(UTC).isoformat(timespec="seconds"))
    replace_file(path, json.dumps(asdict(manifest)))
    return manifest


def note_target(checkpoint: str, manifest: Manifest, target: str) -> None:
    """Note the table that a checkpoint's batches fill, where it is not noted yet."""
    if manifest.target != target:
        path = open_path(checkpoint) / "manifest.json"
        replace_file(path, json.dumps(asdict(replace(manifest, target=target))))


def noted_generation(checkpoint: str) -> str | None:
    """A checkpoint's generation; None for one that has no manifest."""
    path = open_path(checkpoint) / "manifest.json"
    return json.loads(path.read_text()).get("generation") if path.exists() else None


def noted_target(checkpoint: str) -> str | None:
    """The table that a checkpoint's batches fill; empty for none, None where nobody noted it."""
    path = open_path(checkpoint) / "manifest.json"
    return json.loads(path.read_text()).get("target") if path.exists() else None
