"""A step that has never run beside the checkpoint of one that no file names any more: it was most
likely renamed, and a run under its new name would read everything again into another table."""

from collections.abc import Iterator
from pathlib import Path

from ..checkpoint.log import Checkpoint
from ..errors import SluiceError
from ..spec import Pipeline, find_pipelines, load_pipeline
from ..storage import Paths, open_path

_WHY = "a run under the new name reads everything again, into tables of its own"


def describe_renamed(pipeline: Pipeline, paths: Paths, step: str) -> str | None:
    """A sentence where a step that has not run was most likely renamed, with what keeps its past;
    None where nothing tells of it.

    The checkpoints below the root are looked at, and only where the step has none.
    """
    checkpoint = Checkpoint.below(paths.checkpoint(step))
    if checkpoint.newest_commit is not None or checkpoint.open_batch is not None:
        return None
    home = open_path(paths.checkpoint(step)).parent
    known = {paths.uid(other.name) for other in pipeline.steps}
    left = [name for name in _list_begun(home) if name not in known]
    if left:
        return (
            f"{step} has never run, and {_join(left)}, which the file does not name any more, has: "
            f"if it was renamed, write `uid: {left[0]}` under its name before it runs; {_WHY}"
        )
    if any(name in known for name in _list_begun(home)):
        return None
    others = _find_left(pipeline, home.parent, paths.uid(step))
    if not others:
        return None
    return (
        f"{pipeline.name} has never run, and {_join(others)}, which no file names any more, has: "
        f"if it was renamed, write `uid: {others[0]}` under its name before it runs; {_WHY}"
    )


def _find_left(pipeline: Pipeline, folder: Path, step: str) -> list[str]:
    """Pipelines whose checkpoints have such a step, and that no file of the folder means."""
    named: set[str] = set()
    for file in find_pipelines(pipeline.folder):
        try:
            other = load_pipeline(file)
        except SluiceError:
            named.add(file.stem)
        else:
            named.add(other.uid or other.name)
    left = [name for name in _list_folders(folder) if name not in named]
    return [name for name in left if _has_begun(folder, name, step)]


def _has_begun(folder: Path, pipeline: str, step: str) -> bool:
    return Checkpoint.below(str(folder / pipeline / step)).newest_commit is not None


def _list_begun(home: Path) -> Iterator[str]:
    """The steps below a pipeline's checkpoints that have finished a batch."""
    return (name for name in _list_folders(home) if _has_begun(home.parent, home.name, name))


def _list_folders(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def _join(names: list[str]) -> str:
    return " or ".join(names)
