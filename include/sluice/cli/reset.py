"""The verb that begins a step anew: reset."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Annotated

import typer

from ..backlog import table_version
from ..backlog.delta import is_unwritten
from ..backlog.probes import probe_of
from ..checkpoint import Checkpoint, begin_anew, find_unreported, hold_lease
from ..errors import SluiceError, SpecError, TerminalError
from ..query import count_rows, tables_of
from ..spec import Pipeline, Step
from ..storage import Paths, delta_log, lease_folder, remove_tree
from .app import Name, Root, Spec, app, load, out


@app.command()
def reset(
    name: Name = None,
    *,
    step: Annotated[str, typer.Option("--step", metavar="STEP", help="The step to begin anew.")],
    tables: Annotated[
        bool, typer.Option("--tables", help="Remove its target, quarantine and late tables too.")
    ] = False,
    append: Annotated[
        bool,
        typer.Option(
            "--append",
            help="Of a step without `dedup`: write what is read again beside the rows there are.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    spec: Spec = None,
    root: Root = None,
) -> None:
    """Begin a step anew: the next run reads its source from the start.

    Says what will be lost and asks. The tables stay unless --tables says otherwise; where the
    target remembers keys, rows that come again are duplicates.
    """
    _, pipeline = load(name, spec)
    found, paths = _find(pipeline, step), pipeline.paths(root)
    _refuse_doubling(pipeline, found, paths, tables or append)
    with ExitStack() as held:
        held.enter_context(hold_lease(paths.lease(step), f"reset {pipeline.name}.{step}"))
        for line in _describe(pipeline, found, paths, tables):
            out.print(line)
        if not yes:
            _ask()
        if tables:  # first: a run refuses a checkpoint whose table is gone, and not the other way
            target = found.target_path(paths)
            if target:
                held.enter_context(hold_lease(lease_folder(target), f"reset {step}", wait=60.0))
            for table in (target, paths.quarantine(step), paths.late(step)):
                if table:
                    _remove_table(table)
        begin_anew(paths.checkpoint(step))
    out.print(f"{pipeline.name}.{step} begins anew: `sluice run {pipeline.name}`")


def _remove_table(table: str) -> None:
    """Remove a table, its log first, so that what is left of it is none. Raises TerminalError where
    it stays."""
    remove_tree(delta_log(table))
    if table_version(table) is not None:
        raise TerminalError(
            "the table could not be removed",
            where=table,
            do="Give this user the right to remove it, then reset again",
        )
    remove_tree(table)


def _find(pipeline: Pipeline, name: str) -> Step:
    for step in pipeline.steps:
        if step.name == name:
            return step
    names = ", ".join(step.name for step in pipeline.steps)
    raise SpecError("no step has this name", where="--step", value=name, do=f"There are: {names}")


def _refuse_doubling(pipeline: Pipeline, step: Step, paths: Paths, meant: bool) -> None:
    """Raise SpecError where rows that are read again would stand beside those there are."""
    target = step.target_path(paths)
    if meant or step.remembers or step.groups or not target or is_unwritten(target):
        return
    raise SpecError(
        "this step keeps no keys of its rows, so all that it reads again would be there twice",
        where=f"{pipeline.name}.{step.name}",
        do="Write --tables to fill new tables, or --append where the source holds none of the rows "
        "any more",
    )


def _describe(pipeline: Pipeline, step: Step, paths: Paths, tables: bool) -> Iterator[str]:
    """What will be lost and what will come, a line each."""
    folder = paths.checkpoint(step.name)
    checkpoint = Checkpoint.below(folder)
    newest = checkpoint.newest_commit
    place = "no batch yet" if newest is None else f"{newest + 1:,} batch(es)"
    yield f"{pipeline.name}.{step.name}: its checkpoint goes ({place}): {folder}"
    if checkpoint.open_batch is not None:
        yield "  a batch was planned and not finished: its rows are read again"
    lost, _ = find_unreported(paths, step.name, folder, None, newest)
    if lost:
        read = sum(entry.batch.counts.read for entry in lost)
        yield f"  no report will tell of {read:,} record(s): the run that read them died before it"
    for table in tables_of(pipeline, paths.root):
        if table.step == step and table.exists:
            count = count_rows(table)
            rows = "its rows" if count is None else f"{count:,} row(s)"
            yield f"  {'goes' if tables else 'stays'}: {table.name}, {rows}: {table.path}"
    if step.groups and not tables:
        yield "  the next run computes all groups, and writes those that differ from the table's"
    else:
        yield f"  the next run reads {_measure(pipeline, step, paths)} from the start of the source"
    for title in step.followers if step.target is not None else step.further_sinks:
        yield f"  {title} keeps what it has; {_describe_follower(pipeline, step, tables)}"
    for other in pipeline.steps if tables else ():
        if step.name in [source.reads_step for source in other.sources]:
            yield f"  step {other.name} reads its table: reset it as well"


def _describe_follower(pipeline: Pipeline, step: Step, tables: bool) -> str:
    if step.groups and tables:
        return f"`sluice deliver {pipeline.name} --all` makes it what the table is then"
    if step.groups:
        return "it gets what comes out otherwise"
    if tables or step.target is None:
        return "it gets every row once more, so empty it where it only appends"
    return "it gets the rows that are new to the table"


def _measure(pipeline: Pipeline, step: Step, paths: Paths) -> str:
    """How much the source holds, in words."""
    none = Checkpoint.below(f"{paths.checkpoint(step.name)}/none")
    amounts = []
    for one in step.streams.values():
        place = pipeline.source_path(one.source, paths)
        try:
            amounts.append(probe_of(one.source).measure(step.name, place, none).found.amount)
        except SluiceError:
            return "what there is"
    return ", ".join(filter(None, amounts)) or "what there is"


def _ask() -> None:
    """Raise SpecError without a terminal, typer.Abort for a no."""
    if not sys.stdin.isatty():
        raise SpecError("nobody is there to be asked", where="sluice reset", do="Write --yes")
    typer.confirm("Begin anew?", abort=True)
