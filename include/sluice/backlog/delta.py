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
    return max(_versions(path), default=None)


def oldest_version(path: str) -> int | None:
    """The oldest commit that is still in a table's log; None when there is no table."""
    return min(_versions(path), default=None)


def _versions(path: str) -> list[int]:
    log = open_path(path) / "_delta_log"
    names = [p.name for p in log.iterdir()] if log.exists() else []
    numbers = [name.split(".")[0] for name in names if name.endswith(".json")]
    return [int(number) for number in numbers if number.isdigit()]


def noted_writes(path: str) -> dict[str, int] | None:
    """Application id -> the number of its newest write, as Delta noted it beside the newest commit
    (the log's checksum file); None where it noted nothing of them, or of another commit."""
    log, version = open_path(path) / "_delta_log", table_version(path) or 0
    try:
        noted = json.loads((log / f"{version:020}.crc").read_text(encoding="utf-8"))
        if noted["txnId"] != _read_info(log / f"{version:020}.json")["txnId"]:
            return None
        return {write["appId"]: int(write["version"]) for write in noted["setTransactions"]}
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def is_unwritten(path: str) -> bool:
    """True where there is no table, or one that was only made: no run has written to it."""
    version = table_version(path)
    return version is None or (version == 0 and noted_writes(path) == {})


def _read_info(commit: Path) -> dict:
    """What a commit says of itself; empty where it says nothing. Of its other actions, which may be
    many, none is taken apart. Raises FileNotFoundError."""
    lines = commit.read_text(encoding="utf-8").splitlines()
    told = (json.loads(line)["commitInfo"] for line in lines if '"commitInfo"' in line)
    return next(told, {})


def table_id(path: str) -> str | None:
    """The id that Delta gave a table when it was made; None where its first commit is cleaned from
    the log, or there is no table."""
    first = read_commit(path, 0)
    made = (action["metaData"] for action in first or () if "metaData" in action)
    return next((metadata["id"] for metadata in made), None)


def read_commit(path: str, version: int) -> list[dict] | None:
    """The actions of one commit; None where the log does not have it (any more)."""
    try:
        text = (open_path(path) / "_delta_log" / f"{version:020}.json").read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return [json.loads(line) for line in text.splitlines() if line]


def read_note(info: dict) -> dict:
    """The metadata of the writer's own in a commit's `commitInfo`, where it is a JSON object; empty
    for any other text, which people and other programs write there."""
    try:
        note = json.loads(info.get("userMetadata") or "{}")
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}


def find_commit_info(
    path: str, wanted: Callable[[dict], bool], before: int | None = None
) -> tuple[int, dict, dict[str, str]] | None:
    """The newest commit whose metadata of the writer's own is wanted. Args: before: of those with a
    lower version.

    Out: version, that metadata, the operation's metrics; None where the log has no such commit
    (any more).
    """
    log = open_path(path) / "_delta_log"
    newest = (table_version(path) or 0) if before is None else before - 1
    for version in range(newest, -1, -1):
        try:
            info = _read_info(log / f"{version:020}.json")
        except FileNotFoundError:
            return None  # cleaned away, and so is what came before it
        metadata = read_note(info)
        if wanted(metadata):
            return version, metadata, info.get("operationMetrics", {})
    return None


def is_of_run(info: dict) -> bool:
    """True for the `commitInfo` of a commit that a run made: it carries the key of its batch."""
    return bool(read_note(info).get("sluice"))


@dataclass(frozen=True)
class TablePosition:
    """How far a stream has read: up to `version` (not included), or, while it reads the table's
    first state, part of that version. `table`: the id of the table that was read; empty where
    nothing was yet."""

    version: int
    whole: bool = True
    table: str = ""

    def why_another(self, path: str) -> str:
        """Why the table of this path is not the one that was read; empty where it may be."""
        now, newest = table_id(path), table_version(path)
        if self.table and now is not None and now != self.table:
            return "the table was made anew"
        if newest is not None and newest + 1 < self.version:
            return f"the table ends at version {newest}, and was read up to {self.version - 1}"
        return ""


def read_position(checkpoint: Checkpoint, batch: int | None) -> TablePosition | None:
    """The position after a planned batch; before the first the one that is noted, else None."""
    offset = checkpoint.source_offset(batch)
    if not offset:
        start = read_start(checkpoint)
        return None if start is None else TablePosition(start)
    index, starting = offset.get("index", -1), offset.get("isStartingVersion", False)
    whole = index < 0 and not starting
    return TablePosition(offset["reservoirVersion"], whole, offset.get("reservoirId", ""))


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
        actions = read_commit(path, version)
        if actions is None:
            return None  # cleaned away: a run says what is gone
        changes = [
            change
            for action in actions
            for change in (action.get("add"), action.get("remove"))
            if change and change.get("dataChange")
        ]
        if changes:
            commits, size = commits + 1, size + sum(change.get("size", 0) for change in changes)
            file = open_path(path) / "_delta_log" / f"{version:020}.json"
            oldest = oldest or datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return TableBacklog(commits, size, oldest)
