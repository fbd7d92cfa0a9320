"""What people did to a step's table between two runs, from the table's log alone.

The table is the memory of what was read, and further sinks follow it. So a run notes how far its
log is accounted for, and the next one looks at the commits since: runs write under a key, people do
not.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from ..errors import PreflightError
from ..storage import open_path, replace_file
from .delta import is_of_run, read_commit, read_note, table_id, table_version

_COUNTS = {
    "deleted": ("numDeletedRows", "numTargetRowsDeleted"),
    "changed": ("numUpdatedRows", "numTargetRowsUpdated"),
    "written in their place": ("numOutputRows",),
}
"""What was done to rows -> the metrics of Delta's that count them, in the order they are asked."""


class Mark(BaseModel):
    """Up to where a table's log is accounted for. `id`: of the table; None where the log did not
    tell it any more when the mark was made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str | None
    version: int


@dataclass(frozen=True)
class Watched:
    """What a look at a table found. `mark`: what accounts for all of it. `acts`: a sentence for
    each commit by which somebody took rows away or changed them. `another`: why it is not the table
    of the mark; empty where it is."""

    mark: Mark
    acts: tuple[str, ...] = ()
    another: str = ""


def watch_table(path: str, mark: Mark | None, refreshed: bool = False) -> Watched | None:
    """What was done to a table since it was marked; None where there is no table. Args: refreshed:
    a run computes again what was taken from it."""
    newest = table_version(path)
    if newest is None:
        return None
    now = table_id(path)
    if mark is None:
        return Watched(Mark(id=now, version=newest))
    if mark.id is not None and now is not None and now != mark.id:
        return Watched(mark, another="it was made anew since")
    if newest < mark.version:
        found = f"it ends at version {newest}, and the last run left it at {mark.version}"
        return Watched(mark, another=found)
    acts = tuple(_find_acts(path, mark.version, newest, refreshed))
    return Watched(Mark(id=mark.id or now, version=newest), acts)


def mark_behind(path: str | None, before: Watched | None) -> Mark | None:
    """What accounts for a table behind a run; None where there is none. What was done to it while
    the run lasted is left to the next one, also of a table that the run has made.

    Args: before: what was found as the run began; None where there was no table.
    """
    mark = before.mark if before else Mark(id=None, version=0)
    since = watch_table(path, mark) if path else None
    if since is None:
        return before.mark if before else None
    return mark if since.acts or since.another else since.mark


def read_mark(checkpoint: str) -> Mark | None:
    """The mark beside a checkpoint; None where there is none yet, or a power cut damaged it: the
    next run makes it anew."""
    file = open_path(checkpoint) / "target.json"
    try:
        return Mark.model_validate_json(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def write_mark(checkpoint: str, mark: Mark) -> None:
    """Note a mark beside a checkpoint. Raises OSError."""
    replace_file(open_path(checkpoint) / "target.json", mark.model_dump_json())


def refuse_another(path: str, watched: Watched | None, checkpoint: str) -> None:
    """Raise PreflightError where another table lies in the place of the one that a step's finished
    batches have filled."""
    if watched is not None and watched.another:
        raise PreflightError(
            f"this is not the table that the step has filled: {watched.another}",
            where=path,
            value=f"checkpoint {checkpoint}",
            do="Put the table back that the step has filled; or, where this one has the same rows "
            f"(a clone, a rewritten copy), remove {checkpoint}/target.json; or remove the whole "
            "checkpoint: the next run then reads the source from its start into this one (of a "
            "topic, what the brokers still hold)",
        )


def _find_acts(path: str, after: int, newest: int, refreshed: bool) -> Iterator[str]:
    """A sentence for each commit that took rows away or changed them, and that no run made."""
    for version in range(after + 1, newest + 1):
        actions = read_commit(path, version)
        if actions is None:
            continue  # cleaned from the log: it is older than any run looks back
        info: dict = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        if not is_of_run(info) and any(_takes_rows(action) for action in actions):
            said = f"{_describe(path, version, info, refreshed)} (version {version} of the target)"
            yield f"{said}; what it changed is computed again" if refreshed else said


def _key_of(info: dict) -> str | None:
    """The batch key under which a run wrote a commit; None for what no run wrote."""
    note = read_note(info)
    home = note.get("sluice")
    return f"{home.removeprefix('sluice/')}/{note.get('number')}" if home else None


def _takes_rows(action: dict) -> bool:
    """True where rows of a file go: the file is removed, or gets a vector of deleted rows."""
    if action.get("remove", {}).get("dataChange"):
        return True
    return bool(action.get("add", {}).get("dataChange") and action["add"].get("deletionVector"))


def _describe(path: str, version: int, info: dict, refreshed: bool) -> str:
    """One act in a sentence. Predicates are left out: they may quote a value."""
    operation, told = info.get("operation", "a commit"), info.get("operationParameters", {})
    metrics = info.get("operationMetrics", {})
    if operation == "RESTORE" and refreshed:
        return f"RESTORE to version {told.get('version', '?')} by somebody"
    if operation == "RESTORE":
        return _describe_restore(path, version, str(told.get("version", "")))
    for verb, names in _COUNTS.items():
        if rows := sum(int(metrics.get(name, 0)) for name in names):
            return f"{operation} by somebody: {rows:,} row(s) {verb}"
    return f"{operation} by somebody: rows were taken away"


def _describe_restore(path: str, version: int, back_to: str) -> str:
    if not back_to.isdigit():
        return "RESTORE by somebody: rows of later versions are gone"
    keys = []
    for lost in range(int(back_to) + 1, version):
        actions = read_commit(path, lost) or []
        keys += [_key_of(action["commitInfo"]) for action in actions if "commitInfo" in action]
    batches = [key for key in keys if key is not None]
    if not batches:
        return f"RESTORE to version {back_to} by somebody"
    shown = ", ".join(batches[:3]) + (", …" if len(batches) > 3 else "")
    return (
        f"RESTORE to version {back_to} by somebody: the rows of {len(batches):,} finished "
        f"batch(es) are gone ({shown}); further sinks keep them, and the source is not read again. "
        f"RESTORE to version {version - 1} undoes it; once a run has written behind it, a backfill "
        "with `--write merge` brings them back, which further sinks then get as new rows"
    )
