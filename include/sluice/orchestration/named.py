"""The pipelines of a deployment by their names, which is all that Airflow keeps of them."""

import os
from pathlib import Path

from ..errors import SluiceError, SpecError
from ..spec import Pipeline, find_pipelines, load_pipeline
from ..storage import PIPELINES, Paths


def pipelines_folder() -> Path:
    """Folder of the YAML files: `$SLUICE_PIPELINES`, else the project's."""
    return Path(os.environ.get("SLUICE_PIPELINES") or PIPELINES)


def load_named(name: str) -> Pipeline:
    """The pipeline of this name. Raises SpecError where no file has it, or it cannot be read."""
    folder = pipelines_folder()
    for path in find_pipelines(folder):
        if path.stem == name:
            return load_pipeline(path)
    raise SpecError("no pipeline has this name", where=str(folder), value=name, do="Put it back")


def paths_of(name: str) -> Paths:
    """Where the pipeline of this name keeps what it makes; its reports outlive its file."""
    try:
        return load_named(name).paths()
    except SluiceError:
        return Paths.under(None, name)
