"""What we know of a checkpoint that Spark does not keep: its generation."""

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from ..errors import PreflightError, TerminalError
from ..storage import open_path, remove_tree, replace_file

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
    judged_by: dict[str, str] | None = None
    """Digests of what decided the fates of its rows, by part; None where nobody noted them."""
    state: list[str] | None = None
    """What its query keeps in state; None where nobody noted it, or nothing is kept."""
    variables: dict[str, dict] | None = None
    """The state variables of the user's own, by name; None where there are none."""
    inputs: list[str] | None = None
    """Its streams in the order in which the checkpoint counts them; None of a step with one."""
    anew: bool = False
    """A person began it anew, knowing what the table holds."""
    shortened: dict[str, int] | None = None
    """Up to which position Spark's log of the files that were read was cut down, by the number of
    the source; None where it is whole."""
    held: dict[str, Any] | None = None
    """What its operators kept in state when a report told it last, as a `HeldBefore`."""


@dataclass(frozen=True)
class HeldBefore:
    """What the operators of a query kept, by their numbers, after a run."""

    run_id: str
    amounts: dict[str, int]


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
    return _write(checkpoint, _begin())


def note_step(checkpoint: str, manifest: Manifest, **parts: Any) -> None:
    """Note what a checkpoint belongs to, by the fields of a manifest; by what its rows are judged
    only where it is not noted yet."""
    if manifest.judged_by is not None:
        parts.pop("judged_by", None)
    told = replace(manifest, **parts)
    if told != manifest:
        _write(checkpoint, told)


def note_told(checkpoint: str, parts: dict[str, str], held: HeldBefore | None) -> None:
    """Note what a stored report tells: by what the rows are judged from now on, and what is kept in
    state; empty and None for what it does not tell. Raises OSError."""
    path = open_path(checkpoint) / "manifest.json"
    if not (parts or held) or not path.exists():
        return
    manifest = Manifest(**json.loads(path.read_text()))
    told = replace(manifest, judged_by=parts or manifest.judged_by)
    if held is not None:
        told = replace(told, held=asdict(held))
    if told != manifest:
        _write(checkpoint, told)


def note_shortened(checkpoint: str, number: int, position: int) -> None:
    """Note that Spark's log of a source will not hold the files up to a position. Raises
    OSError."""
    manifest = Manifest(**json.loads((open_path(checkpoint) / "manifest.json").read_text()))
    shortened = {**(manifest.shortened or {}), str(number): position}
    _write(checkpoint, replace(manifest, shortened=shortened))


def begin_anew(checkpoint: str) -> None:
    """Remove a checkpoint but for its lease, which the caller holds, and begin another one.

    Killed in the middle it leaves commits without a manifest, which a run refuses: never a part
    from which a run could go on. Raises TerminalError where files stay.
    """
    home = open_path(checkpoint)
    (home / "manifest.json").unlink(missing_ok=True)
    spark = home / "spark"
    for folder, kept in ((spark, "commits"), (home, "spark")):
        for entry in folder.iterdir() if folder.is_dir() else ():
            if entry.name not in (kept, "lease"):
                _remove(entry)
    remove_tree(str(spark))
    if spark.exists():
        raise TerminalError(
            "the checkpoint could not be removed",
            where=str(spark),
            do="Give this user the right to remove it, then reset again",
        )
    _write(checkpoint, replace(_begin(), anew=True))


def _remove(entry: Path) -> None:
    if entry.is_dir():
        remove_tree(str(entry))
    else:
        entry.unlink(missing_ok=True)


def _begin() -> Manifest:
    return Manifest(uuid4().hex[:12], datetime.now(UTC).isoformat(timespec="seconds"))


def _write(checkpoint: str, manifest: Manifest) -> Manifest:
    path = open_path(checkpoint) / "manifest.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    told = asdict(manifest)
    if manifest.shortened is None:  # the word stops a version that would read all files again
        del told["shortened"]
    replace_file(path, json.dumps(told))
    return manifest


def noted_generation(checkpoint: str) -> str | None:
    """A checkpoint's generation; None for one that has no manifest."""
    return _noted(checkpoint, "generation")


def noted_target(checkpoint: str) -> str | None:
    """The table that a checkpoint's batches fill; empty for none, None where nobody noted it."""
    return _noted(checkpoint, "target")


def noted_shortened(checkpoint: str, number: int) -> int:
    """Up to which position Spark's log of a source was cut down; -1 where it is whole."""
    return (_noted(checkpoint, "shortened") or {}).get(str(number), -1)


def noted_parts(checkpoint: str) -> dict[str, str] | None:
    """By what its rows were judged, part by part; None where nobody noted it."""
    return _noted(checkpoint, "judged_by")


def noted_held(checkpoint: str) -> HeldBefore | None:
    """What its operators kept when a report told it last; None where none has."""
    told = _noted(checkpoint, "held")
    return HeldBefore(**told) if told else None


def _noted(checkpoint: str, field: str) -> Any:
    path = open_path(checkpoint) / "manifest.json"
    return json.loads(path.read_text()).get(field) if path.exists() else None
