"""The verb that gives a pipeline or a step another name: rename."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ..errors import SluiceError, SpecError
from ..spec import After, Pipeline, find_pipelines, load_neighbours, load_pipeline
from ..spec.rename import rename_in_text
from ..storage import PROJECT
from .app import Root, Spec, app, load, out


@app.command()
def rename(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The pipeline.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The name it, or its step, gets.")],
    step: Annotated[
        str | None, typer.Option("--step", metavar="STEP", help="Rename this step of it instead.")
    ] = None,
    spec: Spec = None,
    root: Root = None,
) -> None:
    """Give a pipeline or a step another name; what it has written stays where it is.

    The old name stays in the file as `uid`: tables, checkpoint, reports and the keys of batches
    are known by it, so nothing is read again and nothing moves.
    """
    file, pipeline = load(name, spec)
    _refuse_taken(pipeline, file, new, step)
    text = rename_in_text(file.read_text(encoding="utf-8"), new, step)
    target = file
    if step is None and file.stem == pipeline.name:
        target = file.with_name(f"{new}{file.suffix}")
    renamed = _write(text, file, target)
    paths = renamed.paths(root)
    if step is not None:
        table = renamed.steps[[s.name for s in pipeline.steps].index(step)].target_path(paths)
        out.print(f"{pipeline.name}.{step} is now {pipeline.name}.{new}")
        out.print(f"Its checkpoint and tables stay: {table or paths.checkpoint(new)}")
        _tell_waiting(renamed, {f"{pipeline.name}.{step}"})
        return
    out.print(f"{pipeline.name} is now {new}: {target}")
    out.print(f"Its tables, checkpoints and reports stay under {paths.pipeline}")
    out.print(
        f"To Airflow {new} is another DAG, with assets of its own: what waits for those of "
        f"{pipeline.name} is to be told, and its runs so far stay there"
    )
    for other in _find_mentions(file.name):
        out.print(f"Look at {other}: it names {file.name}")
    _tell_waiting(renamed, {f"{pipeline.name}.{one.name}" for one in pipeline.steps})


def _tell_waiting(renamed: Pipeline, gone: set[str]) -> None:
    """Say which pipelines beside it run after a step of a name that is gone."""
    for other in load_neighbours(renamed, gone):
        named = other.schedule.steps if isinstance(other.schedule, After) else []
        for step in sorted(gone.intersection(named)):
            out.print(f"Look at the schedule of {other.name}: it waits for {step}")


def _refuse_taken(pipeline: Pipeline, file: Path, new: str, step: str | None) -> None:
    """Raise SpecError where something has the new name, or keeps what it made under it."""
    if step is not None:
        taken = {other.name for other in pipeline.steps}
        taken |= {other.uid for other in pipeline.steps if other.uid and other.name != step}
        where = str(file)
    else:
        taken, where = {pipeline.name}, str(file.parent)
        for path in find_pipelines(file.parent):
            taken |= _names_of(path) if path != file else set()
    if new in taken:
        raise SpecError("this name is taken", where=where, value=new, do="Choose another one")


def _names_of(path: Path) -> set[str]:
    """What a pipeline is known by; of a file that cannot be read, its name."""
    try:
        other = load_pipeline(path)
    except SluiceError:
        return {path.stem}
    return {path.stem, other.name, other.uid or other.name}


def _write(text: str, file: Path, target: Path) -> Pipeline:
    """Put the text in the file's place, under another name maybe; one that is no pipeline is not
    written. Raises SpecError."""
    trial = file.with_name(f".{file.name}.renamed")
    trial.write_text(text, encoding="utf-8")
    try:
        pipeline = load_pipeline(trial)
        os.replace(trial, file)
    finally:
        trial.unlink(missing_ok=True)
    if target != file:
        os.rename(file, target)
    return pipeline


def _find_mentions(file: str) -> list[Path]:
    """The tests that `sluice new` wrote, where they name the file that is gone."""
    tests = PROJECT / "tests" / "pipelines"
    return [path for path in sorted(tests.glob("*.py")) if file in path.read_text(encoding="utf-8")]
