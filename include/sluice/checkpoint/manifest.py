"""What we know of a checkpoint that Spark does not keep: its generation."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from uuid import uuid4

from ..errors import PreflightError
from ..storage import open_path, replace_file


@dataclass(frozen=True)
class Manifest:
    """A checkpoint's identity. `generation`: part of every write's key, because a new checkpoint counts its batches from 0 again."""

    generation: str
    created: str


def open_manifest(checkpoint: str) -> Manifest:
    """Read a checkpoint's manifest, or write the first one. Raises PreflightError for a checkpoint that lost its manifest."""
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
            do="Restore the manifest, or remove the whole checkpoint folder: keys in the table keep re-read rows from being doubled",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(uuid4().hex[:12], datetime.now(UTC).isoformat(timespec="seconds"))
    replace_file(path, json.dumps(asdict(manifest)))
    return manifest
