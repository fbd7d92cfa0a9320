"""Real data, where it is there: in $SLUICE_SHARED_DATA, or in `shared/data` beside the project."""

import os
from pathlib import Path


def find_shared(name: str) -> Path | None:
    """A file or folder of the shared data; None where it is not there."""
    project = Path(__file__).resolve().parents[1]
    folders = (
        Path(os.environ.get("SLUICE_SHARED_DATA") or "/nonexistent"),
        project.parent / "shared" / "data",
    )
    return next((path for folder in folders if (path := folder / name).exists()), None)
