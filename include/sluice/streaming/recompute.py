"""A batch of a step with `groups`: what changed in its inputs says which groups are computed again,
from the whole inputs at versions that the batch's offsets pin.

Out: the records that say what changed (stage `parsed`, with their group), and the rows that were
computed (stage `entered`).
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..backlog import table_version
from ..backlog.delta import TablePosition, find_commit_info, read_position
from ..checkpoint import Checkpoint
from ..errors import SourceError
from ..report.units import format_bytes
from ..spark.columns import ENTERED, col
from ..spark.failure import SPARK_FAILED
from ..spark.history import is_feed_missing, is_history_gone
from ..spark.kept import keep_rows
from ..spark.pruning import Spans
from ..spark.tables import frame_of
from .beside import find_beside
from .changes import NO_FEED, Changes, find_changes
from .classify import mark_time
from .commits import as_records, find_touched, union_records, with_origin
from .plan import Plan
from .planned import Batch, Made
from .refresh import Refresh
from .regroup import RefreshGroups, Touched

_MOST = 0.8
"""Share of the inputs' bytes in which the touched groups lie, where they are many, from which on
it costs less not to tell them from the others."""


@contextmanager
def compute_batch(plan: Plan, batch: Batch) -> Iterator[tuple[Plan, Batch]]:
    """The batch with the rows that a step with `groups` makes of its inputs, and the plan with the
    groups that it touches; of other steps both as they are.

    Where a version cannot be read any more, because VACUUM came between the batch's plan and its
    retry, all is computed from the newest ones. Raises SourceError in place of computing all
    because of what is lost, if the step says so.
    """
    if plan.refresh is None or not isinstance(plan.target, RefreshGroups):
        yield plan, batch
        return
    before = _read_made(plan, batch)
    now = _pin_versions(plan, plan.refresh, batch, before)
    changes = _look_for_changes(plan, plan.refresh, batch, before, now)
    with ExitStack() as kept:
        try:
            found = _compute(kept, plan, plan.refresh, batch, now, changes)
        except SPARK_FAILED as error:
            again, now, lost = _do_without(plan.refresh, batch, now, error)
            found = _compute(kept, plan, plan.refresh, again, now, lost)
        touched, computed = found
        yield replace(plan, target=replace(plan.target, touched=touched)), computed


def _do_without(
    refresh: Refresh, batch: Batch, pins: Made, error: Exception
) -> tuple[Batch, Made, Changes]:
    """The batch and the versions as they are computed without the history that could not be read,
    and why. Raises the error where it tells of something else, and SourceError, see
    `compute_batch`."""
    if is_feed_missing(error):
        lost = Changes(why=NO_FEED.format(" or ".join(refresh.tables)), lost=True)
    elif is_history_gone(error):
        why = "files of the versions to be read are gone: VACUUM removed them"
        lost = Changes(why=why, lost=True)
        pins = replace(pins, versions={**pins.versions, **refresh.newest()})
        batch = replace(batch, frame=batch.frame.limit(0))
    else:
        raise error
    _refuse_lost(refresh, lost)
    return batch, pins, lost


def _read_made(plan: Plan, batch: Batch) -> Made | None:
    """What the table was made of last; None where its log does not say."""
    if batch.number == 0:
        return None
    app_id = plan.place.app_id
    found = find_commit_info(plan.target.path, lambda told: told.get("sluice") == app_id)
    told = found[1] if found is not None else {}
    return Made(told["versions"], told["query"]) if "versions" in told else None


def _pin_versions(plan: Plan, refresh: Refresh, batch: Batch, before: Made | None) -> Made:
    """Each input's version that the batch's offsets say: a replay reads the same. Never one before
    what the table was made of."""
    newest, versions = refresh.newest(), {n: t.version for n, t in refresh.statics.items()}
    for number, name in enumerate(refresh.tables):
        until = read_position(_checkpoint(plan, number), batch.number)
        had = before.versions.get(name, -1) if before is not None else -1
        pin = newest[name] if until is None else _last_version(until)
        versions[name] = max(pin, had)
    known = {name: version for name, version in versions.items() if version is not None}
    return Made(known, refresh.query, seen=table_version(plan.target.path) or 0)


def _checkpoint(plan: Plan, number: int) -> Checkpoint:
    return Checkpoint.below(plan.place.checkpoint, number)


def _last_version(position: TablePosition) -> int:
    """The last version that was read up to a position; inside of a commit that commit."""
    return position.version - 1 if position.whole else position.version


def _look_for_changes(
    plan: Plan, refresh: Refresh, batch: Batch, before: Made | None, now: Made
) -> Changes:
    """What changed since the table was made. Raises SourceError, see `compute_batch`."""
    for number, name in enumerate(refresh.tables):
        start = read_position(_checkpoint(plan, number), batch.number - 1)
        had = before.versions.get(name) if before is not None else None
        if start is not None and had is not None and _last_version(start) > had:
            return Changes(
                why=f"the table was set back to what was made of version {had} of input {name}"
            )
    if refresh.step.refresh == "never" and before is not None:
        return Changes(why="the step says `refresh: never`")
    paths = {name: table.place for name, table in refresh.tables.items()}
    changes = find_changes(batch.frame.sparkSession, before, now, paths)
    _refuse_lost(refresh, changes)
    return changes


def _refuse_lost(refresh: Refresh, changes: Changes) -> None:
    if changes.lost and refresh.step.on_lost_history == "stop":
        raise SourceError(
            f"what changed in the inputs cannot be read: {changes.why}",
            where=refresh.where,
            value="on_lost_history: stop",
            do="Write `on_lost_history: recompute` to have all computed from what the inputs hold "
            "now. So that it does not come again, keep log and files of the inputs for longer than "
            "runs lie apart, and their change feed on",
        )


def _compute(
    kept: ExitStack, plan: Plan, refresh: Refresh, batch: Batch, now: Made, changes: Changes
) -> tuple[Touched | None, Batch]:
    """The groups that are computed, None for all; and the batch, read and computed once: its rows
    are counted, compared and written afterwards. Args: now: the versions to compute from."""
    touched, beside = None, None
    inputs = refresh.read(batch.frame.sparkSession, now.versions)
    records = _collect_records(plan, refresh, batch, changes.images)
    if batch.number:  # the first batch has all rows of all inputs
        records = kept.enter_context(keep_rows(records))
    why, size = changes.why, refresh.size(batch.frame.sparkSession)
    if not why:
        beside, why = find_beside(kept, plan, now, records)
    if not why:
        told = find_touched(kept, refresh, records, inputs)
        asked = refresh.to_redo(inputs, frame_of(records.sparkSession, plan.target.path))
        told = told if asked is None else told.union(asked)
        told = told if beside is None else told.union(beside)
        groups = kept.enter_context(keep_rows(told.distinct()))
        touched = Touched(groups, Spans.of(groups))
        why = _why_whole(refresh, inputs, touched, size)
        touched = None if why else touched
    elif batch.number:
        records.count()  # so that a file that is gone is known by now
    rows = refresh.compute(inputs) if touched is None else refresh.compute_some(inputs, touched)
    computing = mark_time(with_origin(rows, ENTERED), plan.step, plan.columns)
    rows = kept.enter_context(keep_rows(computing))
    if batch.number == plan.open_batch:
        rows.count()  # as above
    frame = records.unionByName(rows, allowMissingColumns=True)
    warning = _describe_nulls(refresh, rows) if why else ""
    made = replace(now, why=why, size=size, computing=computing, warning=warning)
    return touched, replace(batch, frame=frame, made=made)


def _describe_nulls(refresh: Refresh, rows: DataFrame) -> str:
    """A sentence where every row has NULL for a group, so that nothing is told apart by it."""
    counted = rows.agg(F.count(F.lit(1)), *(F.count(col(name)) for name in refresh.groups))
    total, *told = counted.collect()[0]
    empty = [name for name, count in zip(refresh.groups, told, strict=True) if total and not count]
    said = "; ".join(
        f"{name}: {', '.join(dict.fromkeys(refresh.groups[name].values()))}" for name in empty
    )
    return f"every row has NULL for a group, which tells none apart ({said})" if said else ""


def _collect_records(
    plan: Plan, refresh: Refresh, batch: Batch, images: Mapping[str, DataFrame]
) -> DataFrame:
    records = batch.frame
    for name, rows in images.items():
        found = as_records(refresh, name, rows, plan.columns)
        records = union_records(records, mark_time(found, plan.step, plan.columns))
    return records


def _why_whole(
    refresh: Refresh, inputs: Mapping[str, DataFrame], touched: Touched, size: int
) -> str:
    """Why computing all costs less; empty where it does not. Args: size: of all inputs, bytes."""
    if refresh.step.refresh == "always" or touched.spans.all_told:
        return ""
    part = refresh.estimate(inputs, touched)
    if part < _MOST * size:
        return ""
    return (
        f"the {touched.count:,} groups that were touched lie in {format_bytes(part)} of the "
        f"inputs' {format_bytes(size)}, so it costs less to compute all"
    )
