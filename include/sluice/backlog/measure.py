"""The probe: how much is waiting for each step, and must Spark run? In doubt, yes."""

import logging
import operator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import reduce

from ..checkpoint import find_unreported, noted_parts, noted_target
from ..checkpoint.log import Checkpoint
from ..errors import SourceError
from ..spec import Pipeline, SourceKind, Step, never_ends, trigger_kind
from ..spec.definition import changed_parts, describe_change, digest_parts
from ..storage import Paths, delta_log, open_path
from .notified import Arrivals
from .probe import StepBacklog, Waiting
from .probes import count_files, probe_of
from .refreshed import describe_foreign, find_foreign
from .renamed import describe_renamed
from .undelivered import describe_undelivered, read_positions, why_behind
from .watch import read_mark, watch_table

_log = logging.getLogger(__name__)
_AHEAD = timedelta(hours=-1)
"""By how much the clocks of two machines may differ."""


def measure_step(
    pipeline: Pipeline, step: Step, paths: Paths, taken: dict[str, Arrivals] | None = None
) -> StepBacklog:
    """Measure one step.

    Args: taken: the new files of inputs, where the run has them from a queue. Raises SourceError
    when a source is absent; anything else that cannot be read means "run".
    """
    checkpoint = Checkpoint.below(paths.checkpoint(step.name))
    try:
        waiting = _measure_inputs(pipeline, step, paths, taken or {})
        positions = read_positions(step, paths)
        found = replace(
            waiting.found,
            open_batch=checkpoint.open_batch is not None,
            last_run=checkpoint.last_run,
            undelivered=describe_undelivered(positions),
        )
        unreported, _ = find_unreported(
            paths, step.name, paths.checkpoint(step.name), None, checkpoint.newest_commit
        )
        behind = why_behind(step, paths, checkpoint, positions)
        lost, acts = _watch(step, paths)
        found = replace(found, warnings=[*found.warnings, *acts])
    except SourceError:
        raise
    except Exception as error:  # noqa: BLE001 (law 8: a wrong "nothing new" loses data, a wrong "something new" costs cents)
        return StepBacklog(
            step.name,
            must_run=True,
            reason=f"the backlog could not be measured ({error}), so the run decides",
        )
    died = f"run {unreported[0].run_id} died before its report" if unreported else ""
    reason = _why_now(found) or waiting.doubt or died
    reason = reason or lost or behind
    reason = reason or _why_at_last(step, found, checkpoint, pipeline.idle_run_every)
    return replace(found, must_run=bool(reason), reason=reason or "nothing is new")


def _measure_inputs(
    pipeline: Pipeline, step: Step, paths: Paths, taken: dict[str, Arrivals]
) -> Waiting:
    """What waits in all of a step's inputs."""
    asked = {
        name: _measure_input(
            step.name,
            one.source,
            pipeline.source_path(one.source, paths),
            Checkpoint.below(paths.checkpoint(step.name), number),
            taken.get(name),
        )
        for number, (name, one) in enumerate(step.streams.items())
    }
    if len(asked) == 1:
        return next(iter(asked.values()))
    named = [
        replace(
            waiting.found,
            inputs={name: waiting.found.amount},
            warnings=[f"{name}: {told}" for told in waiting.found.warnings],
        )
        for name, waiting in asked.items()
    ]
    doubts = [f"{name}: {waiting.doubt}" for name, waiting in asked.items() if waiting.doubt]
    return Waiting(reduce(operator.add, named), "; ".join(doubts))


def _measure_input(
    step: str, source: SourceKind, place: str, checkpoint: Checkpoint, taken: Arrivals | None
) -> Waiting:
    _refuse_other_kind(step, source, checkpoint)
    if taken is not None:
        return Waiting(count_files(step, taken.files, taken.warnings))
    return probe_of(source).measure(step, place, checkpoint)


def _refuse_other_kind(step: str, source: SourceKind, checkpoint: Checkpoint) -> None:
    """Raise SourceError where the checkpoint's place in the source is that of another kind, which
    nobody can read as one in this."""
    before = checkpoint.source_kind
    if before is not None and source.kind in ("files", "table", "kafka") and before != source.kind:
        raise SourceError(
            "the checkpoint was begun with another kind of input, so how far it was read says "
            "nothing of this one",
            where=f"{step}: source.kind",
            value=f"before: {before}; now: {source.kind}",
            do="Write the source as it was. Or begin anew with `sluice reset` (where the table "
            "remembers no keys, with --tables), or give the new source a step of its own",
        )


def _why_now(found: StepBacklog) -> str:
    """Why there is work to do, as far as it is seen."""
    return "a batch was planned and not finished" if found.open_batch else found.headline


def _watch(step: Step, paths: Paths) -> tuple[str, tuple[str, ...]]:
    """Why a run must look: the memory of what was read is not there, so that it will refuse to go
    on, or the table of a step with `groups` is not what its query says. And what people did to the
    table, which of other steps can wait until a run tells it."""
    checkpoint = paths.checkpoint(step.name)
    filled = noted_target(checkpoint)
    if not filled:
        return "", ()
    if not open_path(delta_log(filled)).exists():
        return f"the step's table {filled} is gone", ()
    watched = watch_table(filled, read_mark(checkpoint), bool(step.groups))
    if watched is None:
        return "", ()
    if watched.another:
        return f"the step's table {filled} is another one: {watched.another}", watched.acts
    foreign = find_foreign(filled, paths.home(step.name)) if step.groups else {}
    wrote = f"somebody else wrote to the step's table ({describe_foreign(foreign)})"
    return wrote if foreign else "", watched.acts


def _why_at_last(
    step: Step, found: StepBacklog, checkpoint: Checkpoint, idle_run_every: timedelta
) -> str:
    """Why a run is due although nothing is new."""
    if never_ends(step.trigger):
        kind = trigger_kind(step.trigger)
        return f"trigger {kind} waits for rows until the time budget is spent"
    now, due = datetime.now(UTC), "nothing is new, but the last run"
    if found.last_run is None or _AHEAD <= now - found.last_run < idle_run_every:
        return ""
    looked = checkpoint.looked_at  # a run without a batch leaves no other trace of itself
    if looked is not None and _AHEAD <= now - looked < idle_run_every:
        return ""
    if now < found.last_run:
        return f"{due} was at {found.last_run:%Y-%m-%d %H:%M} by a clock that was set back since"
    return f"{due} was {(now - found.last_run).days} days ago: state and windows need a run"


def measure_pipeline(
    pipeline: Pipeline, paths: Paths, taken: dict[str, dict[str, Arrivals]] | None = None
) -> list[StepBacklog]:
    """Measure every step, in order.

    Args: taken: the new files of steps that have them from a queue; without it, the queue is only
    asked how much it holds.
    """
    found = [
        measure_step(pipeline, step, paths, (taken or {}).get(step.name)) for step in pipeline.steps
    ]
    told = [_warn_of_rename(pipeline, paths, step) for step in found]
    return [
        _look_at_change(pipeline, paths, step, backlog)
        for step, backlog in zip(pipeline.steps, told, strict=True)
    ]


def _warn_of_rename(pipeline: Pipeline, paths: Paths, found: StepBacklog) -> StepBacklog:
    """The same, with a word where a step that has not run yet was most likely renamed."""
    if found.last_run is not None or found.open_batch:
        return found
    try:
        told = describe_renamed(pipeline, paths, found.step)
    except OSError:  # it is said to help, and the run asks its own questions
        return found
    return found if told is None else replace(found, warnings=[*found.warnings, told])


def _look_at_change(
    pipeline: Pipeline, paths: Paths, step: Step, found: StepBacklog
) -> StepBacklog:
    """The same, with a word where the file says another thing of rows than when they were judged;
    the run counts them."""
    if found.last_run is None or step.target is None:
        return found
    try:
        before = noted_parts(paths.checkpoint(step.name))
        parts = changed_parts(before, digest_parts(step, pipeline.folder))
    except (OSError, ValueError):  # as above
        return found
    if not parts:
        return found
    if step.groups and not found.must_run:
        why = f"{' and '.join(parts)} were edited, so that all groups are computed"
        found = replace(found, must_run=True, reason=why)
    since = f"{found.last_run:%Y-%m-%d %H:%M:%S} UTC"
    return replace(found, redefined=describe_change(pipeline, step, parts, since))


def note_idle_audits(pipeline: Pipeline, paths: Paths, backlog: list[StepBacklog]) -> None:
    """Note the listings that found nothing, so that the next probe asks the queue alone, or the
    folders for their times; a note that cannot be written costs one listing more."""
    for step, found in zip(pipeline.steps, backlog, strict=True):
        if found.audited is None or found.amount or found.open_batch:
            continue
        try:
            for number, one in enumerate(step.streams.values()):
                checkpoint = Checkpoint.below(paths.checkpoint(step.name), number)
                probe_of(one.source).note_listing(checkpoint, found.audited)
        except Exception:  # noqa: BLE001 (a disk's or a store's; the probe has its answer all the same)
            _log.warning(
                "the listing of %s was not noted, so the next probe lists again",
                step.name,
                exc_info=True,
            )
