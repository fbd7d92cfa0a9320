"""What a run refuses before it reads or writes anything of a step."""

from contextlib import suppress

from pyspark.sql.types import StructType

from ..checkpoint import find_namesakes, followed_sinks
from ..errors import SluiceError, SpecError
from ..spec import RuleSpec, Step, find_pipelines, load_neighbours, load_pipeline
from ..spec.columns import why_incomparable, why_unhashable
from ..storage import open_path
from .run import Run

_MARKS = ("update", "complete", "groups")
"""What stands in the file of a pipeline that replaces rows of its tables."""
_MERGE = "Backfill with `--write merge`: only rows that are missing are written"


def check_places(run: Run, step: Step) -> None:
    """Raise SpecError where what a step would write lies in another's place, or what it has written
    in a place that its file does not name any more."""
    _refuse_shared(run)
    _refuse_second_writer(run, step)
    _refuse_sending_twice(run, step)
    _refuse_renamed(run, step)


def _refuse_sending_twice(run: Run, step: Step) -> None:
    """Raise SpecError for a replaced range that a further sink cannot follow: it would get its
    rows once more, and keep those that are gone. One that was taken out would on its return."""
    if not run.mode.replaces:
        return
    folder = run.paths.positions(step.name)
    twice = list(step.followers)
    out = [title for title in followed_sinks(folder) if title not in twice]
    if twice or out:
        gone = f"; where {', '.join(out)} shall not come back as it is, remove its file in {folder}"
        raise SpecError(
            "replacing a range would send its rows again, and leave in the sink those that the "
            "range no longer has",
            where=f"{step.name}: sink",
            value=", ".join([*twice, *(f"{title} (taken out)" for title in out)]),
            do=f"{_MERGE}{gone if out else ''}",
        )


def _refuse_renamed(run: Run, step: Step) -> None:
    """Raise SpecError for a sink that keeps every row and got them from a pipeline or step that is
    not there any more: under another name all of them would come once more."""
    for title in [title for title, sink in step.followers.items() if sink.adds_rows]:
        own = open_path(run.paths.position(step.name, title))
        others = {} if own.exists() else find_namesakes(run.paths.every_position(), own.name)
        living = _find_living(run) if others else set()
        for (pipeline, name), file in others.items():
            if living.isdisjoint({(pipeline, name), (pipeline, None)}):
                raise SpecError(
                    f"this sink got its rows from step {name} of pipeline {pipeline}, which is not "
                    "there any more: renamed, it would send all of them once more",
                    where=f"{run.where(step)}: sink",
                    value=title,
                    do=f"Write `uid: {pipeline}` under the pipeline's name and `uid: {name}` under "
                    "the step's: they go on where they were. Where the rows shall come again, "
                    f"because the sink was emptied or both fill it, copy {file} to {own}",
                )


def _refuse_shared(run: Run) -> None:
    """Raise SpecError where another pipeline of the folder keeps what it makes in the same place:
    both would work on one checkpoint."""
    for file in find_pipelines(run.pipeline.folder):
        if run.paths.pipeline not in file.read_text(encoding="utf-8", errors="replace"):
            continue  # most are not worth being read as YAML
        try:
            other = load_pipeline(file)
        except SluiceError:
            continue  # it runs nothing
        if other.name != run.pipeline.name and other.paths().pipeline == run.paths.pipeline:
            raise SpecError(
                "two pipelines keep what they make under one uid, so both would work on the same "
                "checkpoints",
                where=f"{run.pipeline.name}, {file}",
                value=run.paths.pipeline,
                do="Leave it to the one that has filled the tables, and give the other a name and "
                "`uid` of its own",
            )


def _refuse_second_writer(run: Run, step: Step) -> None:
    """Raise SpecError where a table that is replaced as a whole, or group by group, gets rows of
    another step as well: the one would take the other's for its own, and put its own in their
    place."""
    mine = step.target_names(run.paths)
    of_groups = step.output_mode != "append" or bool(step.groups)
    others = load_neighbours(run.pipeline, ("",) if of_groups else _MARKS)
    for pipeline in (run.pipeline, *others) if mine else ():
        own = pipeline is run.pipeline
        paths = run.paths if own else pipeline.paths(run.paths.root)
        for other in pipeline.steps:
            same = own and other.name == step.name
            modes = {_replacing(step), _replacing(other)} - {""}
            if modes and not same and not mine.isdisjoint(other.target_names(paths)):
                raise SpecError(
                    f"a table with {min(modes)} has rows of one step, and two write this one: each "
                    "would replace what the other has written",
                    where=f"{run.where(step)}: sink",
                    value=f"also written by {pipeline.name}.{other.name}",
                    do="Give each a table of its own, or unite their inputs in one step",
                )


def _replacing(step: Step) -> str:
    """What a step says by which it replaces rows of its table; empty for one that does not."""
    if step.groups:
        return "`groups`"
    return f"`mode: {step.output_mode}`" if step.output_mode != "append" else ""


def _find_living(run: Run) -> set[tuple[str, str | None]]:
    """Every pipeline of the folder with each of its steps, and with None where its file cannot be
    read."""
    found: set[tuple[str, str | None]] = set()
    for file in find_pipelines(run.pipeline.folder):
        try:
            pipeline = load_pipeline(file)
        except SluiceError:
            found.add((file.stem, None))
        else:
            uid = pipeline.uid or pipeline.name
            found |= {(uid, step.uid or step.name) for step in pipeline.steps}
    return found


def refuse_unjudged(run: Run, step: Step, rules: list[RuleSpec]) -> None:
    """Raise SpecError for rules that need the table of a step that writes none: the file tells most
    by their type, others only once the types of the columns are known."""
    if step.target is None:
        raise SpecError(
            "this rule looks at the whole table, and the step writes none",
            where=f"{run.where(step)}: rule {rules[0].type}",
            do="Add `{kind: delta}` to the step's sinks, or write a rule that looks at single rows",
        )


def refuse_incomparable(run: Run, step: Step, keys: list[str], columns: StructType) -> None:
    """Raise SpecError for columns that a transform makes and that Spark cannot compare as keys, or
    cannot tell rows of one key apart by; of a step without one the file alone tells."""
    known_by = step.target.keys if step.target is not None else []
    for field in columns.fields if step.dedup is not None or known_by else ():
        kind = field.dataType.simpleString()
        why = why_incomparable(kind) if field.name in (*keys, *known_by) else None
        if why is None and step.remembers:
            why = why_unhashable(kind)
        if why is not None:
            raise SpecError(
                f"rows are compared by column {field.name!r}, and {why}",
                where=f"{run.where(step)}: {'sink.keys' if known_by else 'dedup'}",
                value=kind,
                do="Name other columns as `keys`, or write to_json in the transform",
            )


def refuse_replacing(run: Run, step: Step, gathers: bool) -> None:
    """Raise SpecError for a range that cannot be replaced in one commit.

    Args: gathers: the transform keeps state, so its rows come in later batches, or not at all.
    """
    if not run.mode.replaces:
        return
    if gathers or (step.dedup is not None and step.dedup.memory == "state"):
        raise SpecError(
            "a step that keeps state gives its rows in later batches than the one that replaces "
            "the range, which would be left empty",
            where=run.where(step),
            do=f"{_MERGE}, or rebuild this step from its start: move its checkpoint and table away",
        )
    if readers := _find_readers(run, step):
        raise SpecError(
            "the range is replaced by deleting rows, and a step that reads this table as a stream "
            "of new rows would stop there for good",
            where=run.where(step),
            value=f"read by {', '.join(readers)}",
            do=_MERGE,
        )


def refuse_newest_first(run: Run, step: Step, gathers: bool) -> None:
    """Raise SpecError for a state that rows reach in another order than they came in.

    Args: gathers: the transform keeps state.
    """
    if gathers and any(source.newest_first for source in step.sources):
        raise SpecError(
            "with `latest_first` the newest files move the watermark first, and the rows of older "
            "ones would be dropped as late by what the transform keeps in state",
            where=f"{run.where(step)}: source.latest_first",
            value=step.transform,
            do="Leave `latest_first` out, or gather the rows in a step of its own behind this one",
        )


def _find_readers(run: Run, step: Step) -> list[str]:
    """Steps that read a step's table as a stream of new rows: of its pipeline, and of the others in
    the folder. A file that cannot be read runs nothing."""
    found = [
        other.name
        for other in run.pipeline.steps
        if not other.groups
        and step.name in [one.source.reads_step for one in other.streams.values()]
    ]
    places = step.target_names(run.paths)
    for file in find_pipelines(run.pipeline.folder):
        with suppress(SluiceError):
            pipeline = load_pipeline(file)
            paths = pipeline.paths(run.paths.root)
            found += [
                f"{pipeline.name}.{other.name}"
                for other in pipeline.steps
                for one in other.streams.values()
                if one.source.place(paths) in places and not one.source.outlives_deletes
                if not other.groups
            ]
    return found
