"""Reads a Delta table's log without Spark: its newest commit, and what the commits hold that a
stream has not read yet."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ..checkpoint.log import Checkpoint
from ..storage import open_path


def table_version(path: str) -> int | None:
    """The newest version in a table's log; None when there is no table."""
    log = open_path(path) / "_delta_log"
    if not log.exists():
        return None
    return max(
        (
            int(p.name.split(".")[0])
            for p in log.iterdir()
            if p.name.endswith(".json") and p.name.split(".")[0].isdigit()
        ),
        default=None,
    )


def find_commit_info(
    path: str, wanted: Callable[[dict], bool]
) -> tuple[int, dict, dict[str, str]] | None:
    """The newest commit whose metadata of the writer's own is wanted.

    Out: version, that metadata, the operation's metrics; None where the log has no such commit
    (any more).
    """
    log = open_path(path) / "_delta_log"
    for version in range(table_version(path) or 0, -1, -1):
        try:
            lines = (log / f"{version:020}.json").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return None  # cleaned away, and so is what came before it
        info: dict = next(
            (json.loads(line)["commitInfo"] for line in lines if '"commitInfo"' in line), {}
        )
        text = info.get("userMetadata") or ""
        metadata = json.loads(text) if text.startswith("{") else {}
        if wanted(metadata):
            return version, metadata, info.get("operationMetrics", {})
    return None


@dataclass(frozen=True)
class TablePosition:
    """How far a stream has read: up to `version` (not included), or, while it reads the table's
    first state, part of that version."""

    version: int
    whole: bool = True


def read_position(checkpoint: Checkpoint, batch: int | None) -> TablePosition | None:
    """The position after a planned batch; before the first the one that is noted, else None."""
    offset = checkpoint.source_offset(batch)
    if not offset:
        start = read_start(checkpoint)
        return None if start is None else TablePosition(start)
    index, starting = offset.get("index", -1), offset.get("isStartingVersion", False)
    return TablePosition(offset["reservoirVersion"], whole=index < 0 and not starting)


def start_file(checkpoint: Checkpoint) -> Path:
    """Where the first version is noted of a stream that begins at the end of its table: Delta
    itself would look for that end anew in every run without rows."""
    return checkpoint.beside("start.json")


def read_start(checkpoint: Checkpoint) -> int | None:
    """The noted first version; None where none is."""
    file = start_file(checkpoint)
    return json.loads(file.read_text())["version"] if file.exists() else None


@dataclass(frozen=True)
class TableBacklog:
    """Commits a stream has not read. `oldest`: when the first of them was made, UTC."""

    commits: int = 0
    bytes: int = 0
    oldest: datetime | None = None


def measure_table(path: str, position: TablePosition | None) -> TableBacklog | None:
    """What waits in a table, from its log alone; commits that only rearrange files do not count.

    None where the log does not say, so that a run has to look.
    """
    newest = table_version(path)
    if newest is None or position is None or not position.whole:
        return None
    commits, size, oldest = 0, 0, None
    for version in range(position.version, newest + 1):
        file = open_path(path) / "_delta_log" / f"{version:020}.json"
        if not file.exists():
            return None  # cleaned away: Delta decides whether it can still be read
        actions = [
            json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line
        ]
        changes = [
            change
            for action in actions
            for change in (action.get("add"), action.get("remove"))
            if change and change.get("dataChange")
        ]
        if changes:
            commits, size = commits + 1, size + sum(change.get("size", 0) for change in changes)
            oldest = oldest or datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return TableBacklog(commits, size, oldest)
