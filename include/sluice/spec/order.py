"""Which steps of a pipeline have to wait for which, so that the others can run at once."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from ..storage.paths import Paths
from .definition import read_code
from .pipeline import Pipeline
from .step import Step
from .trigger import trigger_kind

Before = dict[str, set[str]]
"""Step -> every earlier step that has to be done before it starts."""


def order_steps(pipeline: Pipeline, paths: Paths) -> Before:
    """The order in which the steps of a pipeline may run: a step waits for each earlier one that
    writes what it reads or writes, or that reads what it writes. In the order of the file."""
    before: Before = {}
    for number, step in enumerate(pipeline.steps):
        waits = partial(_must_wait, pipeline, paths, step)
        direct = {earlier.name for earlier in pipeline.steps[:number] if waits(earlier)}
        before[step.name] = direct.union(*(before[name] for name in direct))
    return before


def count_at_once(pipeline: Pipeline, before: Before) -> int:
    """How many steps may run at the same time, at most."""
    related = {name: {*waits_for(before, name), *before[name]} for name in before}
    free = max(len(before) - len(others) for others in related.values())
    return min(pipeline.parallel_steps, free)


def waits_for(before: Before, step: str) -> list[str]:
    """The steps that cannot start without this one, in the order of the file."""
    return [name for name, earlier in before.items() if step in earlier]


def _must_wait(pipeline: Pipeline, paths: Paths, step: Step, earlier: Step) -> bool:
    if trigger_kind(step.trigger) == "continuous":
        return True  # its tasks hold their cores until its time is over
    made, read = _written(earlier, paths), _read(pipeline, step, paths)
    makes = _written(step, paths)
    return (
        _touch(made, read | makes)
        or _touch(_read(pipeline, earlier, paths), makes)
        or _mentions(step, earlier, paths, pipeline.folder)
    )


def _written(step: Step, paths: Paths) -> set[str]:
    """The places that a step writes to."""
    further = {place for sink in step.further_sinks.values() for place in sink.writes(paths)}
    return {*further, *step.target_names(paths)}


def _read(pipeline: Pipeline, step: Step, paths: Paths) -> set[str]:
    """The places that a step reads from."""
    places = {place for source in step.sources for place in source.reads(paths)}
    named = {source.reads_step for source in step.sources}
    return places.union(*(one.target_names(paths) for one in pipeline.steps if one.name in named))


def _touch(some: Iterable[str], others: Iterable[str]) -> bool:
    """True where one place is another, or lies in it."""
    return any(
        f"{a}/".startswith(f"{b}/") or f"{b}/".startswith(f"{a}/") for a in some for b in others
    )


def _mentions(step: Step, earlier: Step, paths: Paths, folder: Path) -> bool:
    """True where the SQL or Python of a step names an earlier one's table, beside its inputs."""
    target = earlier.target
    if target is None:
        return False
    names = {*earlier.target_names(paths), paths.home(earlier.name), target.table or ""} - {""}
    texts = [read_code(folder, code) for code in step.transforms]
    return any(name in text for name in names for text in texts)
